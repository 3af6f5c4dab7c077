import { cookieValues, type StoredCookie } from '../profile.ts';
import { isStorable } from './cookies.ts';

/**
 * The tag server's own ids: `FPID`, which scripts don't see, and `FPLC`, a hash of it that scripts read for links to
 * other domains (docs/facts.md, Cookies and browsers). An `FPID` without `HttpOnly` is not kept: a script may have set
 * it.
 */
const isKept = (name: string, isHttpOnly: boolean) => name === 'FPLC' || (name === 'FPID' && isHttpOnly);

interface Passing {
  /** The request's `cookie` header. */
  readonly header: string | null;
  readonly now: number;
  /** When the identity ends. */
  readonly endsAt: number;
}

/**
 * The tag server's ids that the `Set-Cookie` lines set, with their attributes. Omits a cookie that the browser has sent
 * with the same value, because it is known already. If a line deletes a cookie, the result has it as expired.
 */
export function httpCookies(lines: readonly string[], { header, now, endsAt }: Passing): StoredCookie[] {
  return lines.flatMap((line): StoredCookie[] => {
    const [pair = '', ...given] = line.split(';').map((part) => part.trim());
    const at = pair.indexOf('=');
    if (at < 1) return [];
    const [name, value] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    const isHttpOnly = given.some((one) => /^httponly$/i.test(one));
    if (!isKept(name, isHttpOnly) || !isStorable(name, value)) return [];
    const expiresAt = Math.min(endOf(given, now) ?? endsAt, endsAt);
    if (expiresAt > now && cookieValues(header, name).includes(value)) return [];
    const attributes = given.filter((one) => one !== '' && !/^(?:max-age|expires)\s*=/i.test(one)).join('; ');
    return [{ name, value, setAt: now, expiresAt, attributes }];
  });
}

/** Browsers take only dates with a time (RFC 6265bis 5.1.1); `Date.parse` also takes numbers. */
const TIME_OF_DAY = /\d{1,2}:\d{1,2}:\d{1,2}/;

/** When the cookie expires (RFC 6265bis 5.7: `Max-Age` before `Expires`); undefined for one that ends with the browser. */
function endOf(attributes: readonly string[], now: number): number | undefined {
  const values = (name: string) =>
    attributes.flatMap((one) => new RegExp(`^${name}\\s*=\\s*(.*)$`, 'i').exec(one)?.[1] ?? []);
  // Browsers ignore an attribute whose value they can't read.
  const maxAge = values('max-age').findLast((value) => /^-?\d+$/.test(value));
  if (maxAge !== undefined) return now + Number(maxAge) * 1000;
  return values('expires')
    .map((value) => (TIME_OF_DAY.test(value) ? Date.parse(value) : Number.NaN))
    .findLast((time) => !Number.isNaN(time));
}

/** The `Set-Cookie` line that restores a cookie with its remaining life. */
export function setCookieLine({ name, value, attributes, expiresAt }: StoredCookie, now: number): string {
  const maxAge = Math.ceil((expiresAt - now) / 1000);
  return [`${name}=${value}`, `Max-Age=${maxAge}`, ...(attributes ? [attributes] : [])].join('; ');
}
