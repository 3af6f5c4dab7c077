import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, CONNECT_SECONDS, cookieNames, nameOf, preamble } from './parts.ts';

const VARIABLE = 'PMUSER_TAGYARD_COOKIES';

/**
 * A rule for the end of the property's rule tree, and the variable that it needs. The variable has only the allowed
 * cookies; a cookie's name begins at the start of the header or after a separator.
 */
export function akamaiSnippet(forwarder: Forwarder): string {
  const { edge, path, token, cookies } = forwarder;
  const rule = {
    name: nameOf(forwarder),
    comments: preamble(
      forwarder,
      'Add the variable to the variables of the default rule, and this rule as the last of its children.',
    ).join(' '),
    criteria: [
      {
        name: 'path',
        options: {
          matchOperator: 'MATCHES_ONE_OF',
          values: [`${path}/*`],
          matchCaseSensitive: true,
          normalize: false,
        },
      },
    ],
    criteriaMustSatisfy: 'all',
    behaviors: [
      { name: 'origin', options: origin(edge) },
      { name: 'caching', options: { behavior: 'NO_STORE' } },
      { name: 'downstreamCache', options: { behavior: 'TUNNEL_ORIGIN' } },
      { name: 'allowPost', options: { enabled: true, allowWithoutContentLength: true } },
      { name: 'connectTimeout', options: { value: `${CONNECT_SECONDS}s` } },
      { name: 'readTimeout', options: { value: `${ANSWER_SECONDS}s` } },
      {
        name: 'setVariable',
        options: {
          variableName: VARIABLE,
          valueSource: 'EXTRACT',
          extractLocation: 'CLIENT_REQUEST_HEADER',
          headerName: 'Cookie',
          transform: 'SUBSTITUTE',
          regex: `(?<![^;])(?! *(?:${cookieNames(cookies)})=)[^;]+`,
          replacement: '',
          globalSubstitution: true,
          caseSensitive: true,
        },
      },
      remove('Cookie'),
      remove('Authorization'),
      set('x-tagyard-forwarder-token', token),
      set('x-tagyard-visitor', '{{builtin.AK_CLIENT_REAL_IP}}'),
      remove('x-tagyard-country'),
      remove('x-tagyard-region'),
      set('x-tagyard-host', '{{builtin.AK_HOST}}'),
      set('x-tagyard-scheme', '{{builtin.AK_SCHEME}}'),
    ],
    children: [
      {
        name: `${nameOf(forwarder)}_cookies`,
        criteria: [
          { name: 'matchVariable', options: { variableName: VARIABLE, matchOperator: 'IS_NOT_EMPTY' } },
        ],
        criteriaMustSatisfy: 'all',
        behaviors: [
          header(
            { action: 'ADD', standardAddHeaderName: 'OTHER', headerValue: `{{user.${VARIABLE}}}` },
            'Cookie',
          ),
        ],
        children: [],
      },
    ],
  };
  const description = 'The cookies that Tagyard gets';
  const variables = [{ name: VARIABLE, value: '', description, hidden: false, sensitive: true }];
  return `${JSON.stringify({ variables, rules: [rule] }, null, 2)}\n`;
}

function origin({ host, port, isTls }: Forwarder['edge']): object {
  return {
    originType: 'CUSTOMER',
    hostname: host,
    forwardHostHeader: 'ORIGIN_HOSTNAME',
    cacheKeyHostname: 'ORIGIN_HOSTNAME',
    compress: true,
    enableTrueClientIp: false,
    httpPort: isTls ? 80 : port,
    httpsPort: isTls ? port : 443,
    originSni: true,
    verificationMode: 'PLATFORM_SETTINGS',
    originCertificate: '',
    ports: '',
    ipVersion: 'IPV4',
  };
}

function header(options: object, customHeaderName: string): object {
  return { name: 'modifyOutgoingRequestHeader', options: { ...options, customHeaderName } };
}

function remove(name: string): object {
  return header({ action: 'DELETE', standardDeleteHeaderName: 'OTHER' }, name);
}

function set(name: string, newHeaderValue: string): object {
  return header(
    { action: 'MODIFY', standardModifyHeaderName: 'OTHER', newHeaderValue, avoidDuplicateHeaders: true },
    name,
  );
}
