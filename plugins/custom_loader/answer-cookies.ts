import type { BootDraft } from '../contract.ts';
import { type CookieToSet, LONGEST_LIFE, readCookie } from './cookie-header.ts';

/**
 * What a bootstrap's answer on `host` sets: the id on any host, host-only where it can't be the domain's; restored
 * cookies on a first-party host only. `header` is what the browser sent along by itself.
 */
export function answerCookies(
  host: string,
  { domain: { cookieDomain }, restoreCookies, sentCookies }: BootDraft,
  id: string | undefined,
  header: string | null,
): CookieToSet[] {
  const firstParty = cookieDomain !== null && (host === cookieDomain || host.endsWith(`.${cookieDomain}`));
  const domain = firstParty ? cookieDomain : null;
  // What the page has and the browser didn't send along is of the page's host alone: set for the domain as well, it
  // would be there twice.
  const mayCome = ({ name }: CookieToSet) =>
    !Object.hasOwn(sentCookies, name) || readCookie(header, name) !== undefined;
  return [
    ...(id === undefined ? [] : [{ name: '_fpid', value: id, maxAge: LONGEST_LIFE, domain }]),
    ...(firstParty ? restoreCookies.filter(mayCome) : []),
  ];
}
