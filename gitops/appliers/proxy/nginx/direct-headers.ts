import { DEBUG_HEADERS } from '../../../../edge/http/request-headers.ts';

/**
 * The only request headers that nginx passes to a container if the request lacks the hop secret. nginx can't drop
 * headers by pattern, and Tag Manager's templates trust any `x-gtm-*` header as set by the host (for example the
 * address to call and its API key). With the hop secret, the edge has already judged each header.
 */
export const DIRECT_HEADERS = [
  'accept',
  'accept-encoding',
  'accept-language',
  'access-control-request-headers',
  'access-control-request-method',
  'authorization',
  'cache-control',
  'content-encoding',
  'content-language',
  'content-type',
  'cookie',
  'dnt',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-unmodified-since',
  'origin',
  'pragma',
  'purpose',
  'range',
  'referer',
  'sec-ch-ua',
  'sec-ch-ua-arch',
  'sec-ch-ua-bitness',
  'sec-ch-ua-full-version',
  'sec-ch-ua-full-version-list',
  'sec-ch-ua-mobile',
  'sec-ch-ua-model',
  'sec-ch-ua-platform',
  'sec-ch-ua-platform-version',
  'sec-ch-ua-wow64',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-fetch-user',
  'sec-gpc',
  'sec-purpose',
  'service-worker',
  'trace-id',
  'traceparent',
  'tracestate',
  'user-agent',
  'x-api-key',
  ...DEBUG_HEADERS,
  'x-request-id',
  'x-requested-with',
  'x-sgtm-healthz',
] as const;

/**
 * Headers that nginx passes to a preview server in addition. The tag server sends the visited host in `forwarded`, and
 * the preview's pages need it.
 */
export const PREVIEW_HEADERS = ['forwarded'] as const;
