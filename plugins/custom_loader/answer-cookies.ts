import type { BootDraft, RestoredCookie } from '../contract.ts';
import type { RegistryDomain } from '../document.ts';
import { type CookieToSet, LONGEST_LIFE_SECONDS, readCookie } from './cookie-header.ts';

interface KnownCookies {
  /** The visitor's id; null without consent. */
  readonly id: string | null;
  readonly restored: readonly RestoredCookie[];
  /** The request's own `cookie` header. */
  readonly cookieHeader: string | null;
}

/** True if cookies that `host` sets for the domain reach the domain's pages. */
export function isFirstParty(host: string, { domain, cookieDomain }: RegistryDomain): boolean {
  const own = cookieDomain ?? domain;
  return host === own || host.endsWith(`.${own}`);
}

/**
 * The cookies that a bootstrap's answer on `host` sets. The id on any host: for the domain where `host` is under it, else
 * host-only. Restored cookies on a host under the domain only.
 */
export function answerCookies(
  host: string,
  { domain: pageDomain, sentCookies }: BootDraft,
  { id, restored, cookieHeader }: KnownCookies,
): CookieToSet[] {
  const { cookieDomain } = pageDomain;
  const firstParty = cookieDomain !== null && isFirstParty(host, pageDomain);
  const domain = firstParty ? cookieDomain : null;
  // A cookie that the page has and the browser does not send to this host belongs to the page's host alone. Setting it
  // for the domain would create a second cookie of that name.
  const maySet = ({ name }: CookieToSet) =>
    !Object.hasOwn(sentCookies, name) || readCookie(cookieHeader, name) !== undefined;
  return [
    ...(id === null ? [] : [{ name: '_fpid', value: id, maxAge: LONGEST_LIFE_SECONDS, domain }]),
    ...(firstParty ? restored.filter(maySet) : []),
  ];
}
