// Request headers that a client could forge: the edge and the host's proxy drop them, or check who sends them.

/** The longest body that every hop to a tag server passes on, 8 MiB: the edge, the hosts' proxies and gateways. */
export const MAX_BODY_OCTETS = 8 * 1_048_576;

/** Carries the hop secret, which proves that a request comes from our own proxy or from the edge. */
export const HOP_HEADER = 'x-tagyard-hop-secret';

/**
 * The header's name in the previous version: still accepted, no longer sent. Cloudflare's logs hide the values of
 * headers whose names contain "secret", which this name doesn't.
 */
export const OLD_HOP_HEADER = 'x-tagyard-hop';

/**
 * What a domain's own server sends with a request that it forwards: its token, the visitor's address and place (ISO 3166-1
 * and -2, where the server knows it), the page's host, and the scheme where that isn't https. Names of our own, because
 * Cloudflare rewrites `x-forwarded-*`.
 */
export const FORWARDER_HEADERS = {
  token: 'x-tagyard-forwarder-token',
  visitor: 'x-tagyard-visitor',
  country: 'x-tagyard-country',
  region: 'x-tagyard-region',
  host: 'x-tagyard-host',
  scheme: 'x-tagyard-scheme',
} as const;

/**
 * Matches headers that claim an address, a host, a scheme, a place, a path or the hop secret. Each platform has its own
 * names, and a tag server trusts those of Google's front ends. Separators other than hyphens are replaced by hyphens
 * first, because CGI and its successors treat all separators alike.
 */
const CLAIM = new RegExp(
  [
    // Names that begin like those of a platform or of a proxy.
    '^(?:x-)?(?:akamai|appengine|device-|geo|gclb|origina|stape-user|tagyard)',
    '^(?:x-)?(?:azure|cdn|cf|cloud-trace|cloudfront|edge|envoy|fastly|fd|fly|gfe|google|netlify|nf|real|rewrite-url|vercel)\\b',
    // Words anywhere in a name: what is forwarded, the host, the scheme and the port of the request, hops, a place.
    'forward',
    '\\b(?:host|https|port|proto|protocol|proxy|scheme|ssl|tls|via)\\b',
    '\\b(?:ip)?(?:continent|country(?:code|name|region)?|region|subdivision|city(?:latlong)?|latitude|longitude|geo)\\b',
    '\\b(?:location|postal-?code)\\b',
    // A name of an address, alone or joined with the name of its owner: `client-ip`, `remoteaddr`.
    '\\b(?:(?:true)?client|connecting|proxy(?:user)?|peer|real|remote|socket|source|user|viewer|visitor)?(?:ip(?:v?[46]|addr|address)?|addr|address)\\b',
  ].join('|'),
);

/**
 * The headers in which the edge states the visitor's place to a tag server (place.ts). The proxy in front of the
 * containers accepts them from the edge only.
 */
export const PLACE_HEADERS = [
  'x-forwarded-country',
  'x-forwarded-region',
  'x-gclb-country',
  'x-gclb-region',
  'x-geo-country',
  'x-geo-region',
] as const;

/**
 * The headers in which plugins tell a tag server something of the visitor. As with the place, the proxy accepts them
 * from the edge only.
 */
export const TOLD_HEADERS = [
  'x-geo-city',
  'x-device-bot',
  'x-device-bot-score',
  'x-device-type',
  'x-device-os',
  'x-device-browser',
  'x-device-browser-version',
  'x-tagyard-user-id',
  'x-stape-user-id',
] as const;

/** The headers of a debug session: the only `x-gtm-*` headers that clients may send. */
export const DEBUG_HEADERS = ['x-gtm-auth', 'x-gtm-debug', 'x-gtm-preview', 'x-gtm-server-preview'] as const;
const OF_PREVIEW: ReadonlySet<string> = new Set(DEBUG_HEADERS);
/** GTM templates trust these as headers of the hosting company: one may hold a URL to call, another its API key. */
const FROM_CONTAINER_HOST = /^x-gtm-/;

/** True if a client must not send a header of this name (lower case) to a container. */
export function isClaim(name: string): boolean {
  const plain = name.replaceAll(/[^a-z0-9]/g, '-');
  return CLAIM.test(plain) || (FROM_CONTAINER_HOST.test(plain) && !OF_PREVIEW.has(plain));
}

/**
 * The common headers that a client must not send, for a proxy that can drop headers only by exact name. `isClaim`
 * covers each of them. `forwarded` and the `x-forwarded-*` that the proxy sets are not in the list: it handles those
 * itself.
 */
export const COMMON_CLAIMS = [
  'x-forwarded',
  'forwarded-for',
  'forwarded-host',
  'forwarded-proto',
  'x-forward-for',
  'x-forwarded-by',
  'x-forwarded-client-cert',
  'x-forwarded-countryregion',
  'x-forwarded-ip',
  'x-forwarded-path',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-scheme',
  'x-forwarded-server',
  'x-forwarded-ssl',
  'x-forwarded-uri',
  'z-forwarded-for',
  'x-original-host',
  'x-original-forwarded-for',
  'x-original-url',
  'x-rewrite-url',
  'x-originating-ip',
  'x-host',
  'x-http-host-override',
  'x-proxy-host',
  'x-real-host',
  'x-edge-location',
  'x-scheme',
  'x-url-scheme',
  'front-end-https',
  'x-cloud-trace-context',
  'via',
  'x-real-ip',
  'x-client-ip',
  'x-clientip',
  'x-cluster-client-ip',
  'x-proxyuser-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-source-ip',
  'x-user-ip',
  'x-visitor-ip',
  'client-ip',
  'remote-addr',
  'true-client-ip',
  'wl-proxy-client-ip',
  'x-envoy-external-address',
  'x-country',
  'x-country-code',
  'x-region',
  'x-city',
  'x-client-city',
  'x-client-country',
  'x-client-geo-location',
  'x-client-region',
  'x-akamai-edgescape',
  'akamai-client-ip',
  'ali-cdn-real-ip',
  'x-appengine-country',
  'x-appengine-region',
  'x-appengine-city',
  'x-appengine-citylatlong',
  'x-appengine-user-ip',
  'x-arr-clientip',
  'x-azure-clientip',
  'x-azure-socketip',
  'cdn-requestcountrycode',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-ipcity',
  'cf-ipcountry',
  'cf-iplatitude',
  'cf-iplongitude',
  'cf-pseudo-ipv4',
  'cf-region',
  'cf-region-code',
  'cloudfront-viewer-address',
  'cloudfront-viewer-city',
  'cloudfront-viewer-country',
  'cloudfront-viewer-country-region',
  'do-connecting-ip',
  'eo-client-ip',
  'eo-client-ipcountry',
  'eo-connecting-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'fly-region',
  'x-gclb-country',
  'x-gclb-region',
  'x-geo-city',
  'x-geo-country',
  'x-geo-ip',
  'x-geo-region',
  'geoip-country-code',
  'incap-client-ip',
  'x-nf-client-connection-ip',
  'x-nf-geo',
  'x-sucuri-clientip',
  'x-sucuri-country',
  'x-vercel-forwarded-for',
  'x-vercel-ip-city',
  'x-vercel-ip-country',
  'x-vercel-ip-country-region',
  'x-vercel-proxied-for',
] as const;
