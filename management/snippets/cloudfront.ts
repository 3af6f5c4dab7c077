import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, CONNECT_SECONDS, comment, cookieNames, indent, nameOf, preamble } from './parts.ts';

/** AWS' own policies: Managed-CachingDisabled and Managed-AllViewerExceptHostHeader. */
const CACHING_DISABLED = '4135ea2d-6df8-44a3-9df3-4b5a84be39ad';
const ALL_BUT_HOST = 'b689b0a8-53d0-40ab-baf2-68738e2966ac';

/** Parts of a CloudFormation template. The token is in a header of the origin, so the function's code doesn't contain it. */
export function cloudfrontSnippet(forwarder: Forwarder): string {
  const { edge, path, token } = forwarder;
  const name = nameOf(forwarder);
  const port = edge.isTls
    ? `OriginProtocolPolicy: https-only
              HTTPSPort: ${edge.port}
              OriginSSLProtocols: [TLSv1.2]`
    : `OriginProtocolPolicy: http-only
              HTTPPort: ${edge.port}`;
  return `${comment('#', [
    ...preamble(
      forwarder,
      'CloudFormation: add the function, and the origin and the behavior to your distribution.',
    ),
  ])}Resources:
  TagyardForwarder:
    Type: AWS::CloudFront::Function
    Properties:
      Name: ${name}
      AutoPublish: true
      FunctionConfig:
        Comment: Tagyard
        Runtime: cloudfront-js-2.0
      FunctionCode: |
${indent(functionCode(forwarder), 8)}
  # Your distribution.
  Distribution:
    Type: AWS::CloudFront::Distribution
    Properties:
      DistributionConfig:
        Origins:
          - Id: ${name}
            DomainName: ${edge.host}
            ConnectionAttempts: 2
            ConnectionTimeout: ${CONNECT_SECONDS}
            CustomOriginConfig:
              ${port}
              OriginReadTimeout: ${ANSWER_SECONDS}
            OriginCustomHeaders:
              - HeaderName: x-tagyard-forwarder-token
                HeaderValue: ${token}
        CacheBehaviors:
          - PathPattern: ${path}/*
            TargetOriginId: ${name}
            ViewerProtocolPolicy: https-only
            AllowedMethods: [GET, HEAD, OPTIONS, PUT, PATCH, POST, DELETE]
            Compress: false
            # Managed-CachingDisabled
            CachePolicyId: ${CACHING_DISABLED}
            # Managed-AllViewerExceptHostHeader
            OriginRequestPolicyId: ${ALL_BUT_HOST}
            FunctionAssociations:
              - EventType: viewer-request
                FunctionARN: !GetAtt TagyardForwarder.FunctionMetadata.FunctionARN
`;
}

/** The function's code, in ECMAScript 5.1 with the parts of later editions that cloudfront-js-2.0 has. */
function functionCode({ cookies }: Forwarder): string {
  return `const COOKIES = /^(?:${cookieNames(cookies)})$/;

function handler(event) {
  const request = event.request;
  const headers = request.headers;
  // Only these cookies are passed on.
  Object.keys(request.cookies).forEach((name) => {
    if (!COOKIES.test(name)) delete request.cookies[name];
  });
  delete headers.authorization;
  delete headers['x-tagyard-country'];
  delete headers['x-tagyard-region'];
  headers['x-tagyard-visitor'] = { value: event.viewer.ip };
  headers['x-tagyard-host'] = { value: headers.host.value };
  headers['x-tagyard-scheme'] = { value: 'https' };
  return request;
}
`;
}
