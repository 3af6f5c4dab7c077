import type { RestoredCookie } from '../contract.ts';
import type { StoredCookie } from '../profile.ts';

/** The attributes that differ between the cookies of the edge. `maxAge` in seconds; `domain` is null for a host-only cookie. */
type CookieToSet = Pick<RestoredCookie, 'name' | 'value' | 'maxAge' | 'domain'>;

/** Matches a pair or line that sets the visitor's id. Browsers send the nameless cookie `=_fpid=…` like one named `_fpid`. */
const SETS_ID = /^[ \t]*=?[ \t]*_fpid[ \t]*=/;

export const setsId = (line: string): boolean => SETS_ID.test(line);

/** A `set-cookie` value. The caller has checked name and value. */
export function serializeCookie({ name, value, maxAge, domain }: CookieToSet): string {
  const scope = domain === null ? '' : `; Domain=${domain}`;
  return `${name}=${value}; Path=/; Max-Age=${maxAge}${scope}; Secure; SameSite=Lax`;
}

/**
 * The line that deletes a cookie in the browser. It has the scope in which the cookie was restored, or which the tag
 * server gave it.
 */
export function endCookie({ name, attributes }: StoredCookie, domain: string | null): string {
  if (attributes === undefined) return serializeCookie({ name, value: '', maxAge: 0, domain });
  return [`${name}=`, 'Max-Age=0', ...(attributes ? [attributes] : [])].join('; ');
}
