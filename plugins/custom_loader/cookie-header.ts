import type { RestoredCookie } from '../contract.ts';

/** 400 days in seconds: the longest life that browsers grant. */
export const LONGEST_LIFE = 34_560_000;

/** The first value of a cookie in a `cookie` header, by RFC 6265bis 5.8.3: pairs split at `;`, space around dropped. */
export function readCookie(header: string | null, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=');
    if (at !== -1 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}

/** What differs between the cookies that the edge sets; `maxAge` in seconds, `domain` null for a host-only one. */
export type CookieToSet = Pick<RestoredCookie, 'name' | 'value' | 'maxAge' | 'domain'>;

/** A `set-cookie` value. The attributes are the edge's own; name and value must have been checked before. */
export function serializeCookie({ name, value, maxAge, domain }: CookieToSet): string {
  const scope = domain === null ? '' : `; Domain=${domain}`;
  return `${name}=${value}; Path=/; Max-Age=${maxAge}${scope}; Secure; SameSite=Lax`;
}
