import type { RegistryDomain } from '../../plugins/document.ts';
import { FORWARDER_HEADERS } from './request-headers.ts';

/** The domains whose own servers forward a prefix, by that prefix (`/m3trics1`). */
export type Prefixes = ReadonlyMap<string, readonly RegistryDomain[]>;

export function prefixesOf(domains: readonly RegistryDomain[]): Prefixes {
  const forwarded = domains.filter(({ sameOrigin }) => sameOrigin !== undefined);
  return Map.groupBy(forwarded, ({ sameOrigin }) => sameOrigin?.path ?? '');
}

/** The prefix of a path: its first segment, if it is one of `prefixes`. */
export function prefixOf(pathname: string, prefixes: Prefixes): string | null {
  if (prefixes.size === 0) return null;
  const end = pathname.indexOf('/', 1);
  const first = end === -1 ? pathname : pathname.slice(0, end);
  return prefixes.has(first) ? first : null;
}

/**
 * True where a path is below a prefix only in another spelling (`/M3trics1/`, `/%6d3trics1/`, `//m3trics1/`,
 * `/x/..%2Fm3trics1/`): a domain's own server may ignore case or decode the path to match it, yet forward it as it
 * came.
 */
export function isMisspelt(pathname: string, prefixes: Prefixes): boolean {
  if (prefixes.size === 0) return false;
  if (!/%|\/\//.test(pathname)) return prefixOf(pathname.toLowerCase(), prefixes) !== null;
  const decoded = pathname
    .replaceAll(/%([2-7][0-9a-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    // These were encoded, so none of them is a delimiter.
    .replaceAll(/[?#\\]/g, '_')
    .toLowerCase()
    .replaceAll(/\/+/g, '/');
  return prefixOf(new URL(decoded, 'https://edge').pathname, prefixes) !== null;
}

/** Decides by name whether a cookie passes. */
export type PassesCookie = (name: string) => boolean;

/** `patterns` are names, or prefixes of names; a prefix ends with `*`. */
export function cookieFilter(patterns: readonly string[]): PassesCookie {
  const names = new Set(patterns);
  const starts = patterns.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));
  return (name) => names.has(name) || starts.some((start) => name.startsWith(start));
}

/** The headers that a request loses with its prefix, in lower case. */
export const DROPPED: readonly string[] = ['authorization', ...Object.values(FORWARDER_HEADERS)];

/**
 * The request as if there were no prefix. The browser addressed it to the pages' own server, so the credentials for
 * that server and the forwarder's headers are removed, and of the cookies only those that `passes` accepts are kept.
 * Takes over a body that has not been read, except that of a GET or HEAD, which means nothing (RFC 9110, 9.3.1).
 * `isSlashless`: also without the slash at the end of the path.
 */
export function withoutPrefix(
  request: Request,
  prefix: string,
  passes: PassesCookie,
  isSlashless: boolean,
): Request {
  const { method, bodyUsed } = request;
  const body = bodyUsed || method === 'GET' || method === 'HEAD' ? null : request.body;
  const headers = new Headers(request.headers);
  for (const name of DROPPED) headers.delete(name);
  keepCookies(headers, passes);
  const url = strippedUrl(request.url, prefix);
  return new Request(isSlashless ? url.replace(/\/(?=\?|$)/, '') : url, { method, headers, body });
}

export function keepCookies(headers: Headers, passes: PassesCookie): void {
  const kept = passedCookies(headers.get('cookie'), passes);
  if (kept === null) headers.delete('cookie');
  else headers.set('cookie', kept);
}

/**
 * The pairs of a `cookie` header that pass; null if there are none. Pairs without a name are dropped, too: browsers send the
 * value of a nameless cookie alone.
 */
export function passedCookies(header: string | null, passes: PassesCookie): string | null {
  const kept = header
    // The runtime joins several lines by a comma and a space, which no value contains.
    ?.split(/;|,\s/)
    .filter((pair) => pair.includes('=') && passes(pair.slice(0, pair.indexOf('=')).trim()))
    .map((pair) => pair.trim())
    .join('; ');
  return kept || null;
}

/** Keeps path and query as they were sent, unless the prefix appears only after the URL has been normalised. */
function strippedUrl(url: string, prefix: string): string {
  const { origin, pathname, search } = new URL(url);
  const sent = url.slice(origin.length);
  const asSent = sent.startsWith(prefix) && /^(?:[/?]|$)/.test(sent.slice(prefix.length));
  const target = (asSent ? sent : pathname + search).slice(prefix.length);
  return `${origin}${target.startsWith('/') ? '' : '/'}${target}`;
}
