import type { BootDraft, RestoredCookie } from '../contract.ts';
import { isFirstParty, type StoredCookie } from '../profile.ts';
import { endCookie, serializeCookie, setsId } from './cookie-header.ts';

interface AnswerCookies {
  readonly restored: readonly RestoredCookie[];
  /** The cookies that the visitor has denied. */
  readonly ended: readonly StoredCookie[];
  /** The ids in the request's own `cookie` header, whatever its host. */
  readonly cookieIds: readonly string[];
  readonly now: number;
}

/**
 * The `Set-Cookie` lines of a bootstrap's answer on `host`. The id is set on any host, unless the browser has sent it:
 * setting it again would extend its life. Its cookie is for the whole domain if `host` is under the domain, else for
 * `host` only. Other cookies are set only if `host` is under the domain.
 */
export function answerCookies(
  host: string,
  { domain: pageDomain, id, endsAt, setCookies }: BootDraft,
  { restored, ended, cookieIds, now }: AnswerCookies,
): string[] {
  const { cookieDomain } = pageDomain;
  const firstParty = cookieDomain !== null && isFirstParty(host, pageDomain);
  const domain = firstParty ? cookieDomain : null;
  const isSent = id === null || cookieIds.includes(id);
  const lines: string[] = [];
  if (!isSent) {
    const maxAge = Math.max(0, Math.ceil((endsAt - now) / 1000));
    lines.push(serializeCookie({ name: '_fpid', value: id, maxAge, domain }));
  }
  if (!firstParty) return lines;
  // No plugin may set the id cookie: only this function sets it, to the visitor's own id.
  const add = (line: string) => setsId(line) || lines.push(line);
  for (const cookie of ended) add(endCookie(cookie, domain));
  for (const cookie of restored) add(serializeCookie(cookie));
  for (const line of setCookies) add(line);
  return lines;
}
