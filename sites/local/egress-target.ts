import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';

/**
 * Splits an absolute request target; `null`: not absolute, or with a user name. The path stays as written: a URL parser
 * would resolve its dots and re-encode it.
 */
export function parseTarget(url: string) {
  const match = /^(https?:)\/\/([^/?#]+)([^#]*)$/i.exec(url);
  const parsed = match === null ? null : URL.parse(`${match[1]}//${match[2]}`);
  if (match === null || parsed === null || parsed.username !== '') return null;
  const rest = match[3] ?? '';
  return {
    protocol: parsed.protocol === 'https:' ? ('https:' as const) : ('http:' as const),
    hostname: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: parsed.port === '' ? (parsed.protocol === 'https:' ? 443 : 80) : Number(parsed.port),
    authority: match[2] ?? '',
    path: rest.startsWith('/') ? rest : `/${rest}`,
  };
}

/** The address of a proxied name without an origin: packets to it are dropped (RFC 6666). */
export const DISCARDED = '100::';

/**
 * Resolves by `resolve` first and by the system last. A name without an origin (`DISCARDED`) is resolved by the
 * system, as for a visitor. (A request that a worker passes on to such a name never gets here, because the egress
 * proxy doesn't connect for it.) `*.localhost` is loopback (RFC 6761, 6.3).
 */
export function lookupWith(resolve: (host: string) => string | null): LookupFunction {
  return (hostname, options, callback) => {
    const found = resolve(hostname);
    const known = found === DISCARDED ? null : found;
    const address = known ?? (hostname.endsWith('.localhost') ? '127.0.0.1' : null);
    if (address === null) {
      systemLookup(hostname, options, callback);
      return;
    }
    const family = isIP(address);
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
