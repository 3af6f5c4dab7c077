import type { RestoredCookie } from '../contract.ts';

/** 400 days, the longest life that browsers allow. */
export const LONGEST_LIFE_SECONDS = 34_560_000;

/** The values of a cookie in a `cookie` header (RFC 6265bis 5.8.3: pairs split at `;`, surrounding space dropped). */
export function cookieValues(header: string | null, name: string): string[] {
  return (header?.split(';') ?? []).flatMap((pair) => {
    const at = pair.indexOf('=');
    return at !== -1 && pair.slice(0, at).trim() === name ? [pair.slice(at + 1).trim()] : [];
  });
}

/** The first value of a cookie. Browsers put longer paths first, then older cookies. */
export const readCookie = (header: string | null, name: string): string | undefined =>
  cookieValues(header, name)[0];

/** The attributes that differ between the cookies of the edge. `maxAge` in seconds; `domain` is null for a host-only cookie. */
export type CookieToSet = Pick<RestoredCookie, 'name' | 'value' | 'maxAge' | 'domain'>;

/** A `set-cookie` value. The caller has checked name and value. */
export function serializeCookie({ name, value, maxAge, domain }: CookieToSet): string {
  const scope = domain === null ? '' : `; Domain=${domain}`;
  return `${name}=${value}; Path=/; Max-Age=${maxAge}${scope}; Secure; SameSite=Lax`;
}
