import type { Consent, RestoredCookie, StoredCookie } from '../contract.ts';

/** 400 days: Chromium's upper limit, and the one of RFC 6265bis. */
const MAX_AGE_SECONDS = 34_560_000;

/** Limits of one profile. Enough for every name of the default list with dozens of streams. */
const MAX_COOKIES = 50;
const MAX_PROFILE_OCTETS = 16_384;

/** Browsers ignore longer pairs (RFC 6265bis 5.6). */
const MAX_PAIR_OCTETS = 4096;

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Printable ASCII without `;`, so that a value can't end the pair or the header. */
const VALUE = /^(?! )[\x20-\x3a\x3c-\x7e]*(?<! )$/;
/** Prefixes with conditions that a restored, domain-wide cookie does not meet (RFC 6265bis 4.1.3). */
const RESERVED_PREFIX = /^__(?:host|secure|http|host-http)-/i;

/** True where `name` is one of the patterns, or starts with one that ends in `*`. */
function isListed(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}

/** True if a browser accepts the pair in a `Set-Cookie`. The visitor's id is never restored, even if it is listed. */
function isStorable(name: string, value: string): boolean {
  return (
    NAME.test(name) &&
    name !== '_fpid' &&
    !RESERVED_PREFIX.test(name) &&
    VALUE.test(value) &&
    name.length + value.length <= MAX_PAIR_OCTETS
  );
}

interface MergeRules {
  readonly patterns: readonly string[];
  readonly consent: Consent;
  readonly now: number;
}

/**
 * The cookies to store, of the `held` and the `sent` ones: allowed by list and consent, not expired, the newer of two
 * with one name, within a profile's limits. A value that is stored already keeps its expiry, or a restored cookie would
 * never expire.
 */
export function mergeCookies(
  held: readonly StoredCookie[],
  sent: Readonly<Record<string, string>>,
  { patterns, consent, now }: MergeRules,
): StoredCookie[] {
  const may = (name: string) => isListed(name, patterns) && consent.allows(name);
  const byName = new Map(
    held.filter(({ name, expiresAt }) => may(name) && expiresAt > now).map((cookie) => [cookie.name, cookie]),
  );
  for (const [name, value] of Object.entries(sent)) {
    if (!may(name) || !isStorable(name, value) || byName.get(name)?.value === value) continue;
    byName.set(name, { name, value, setAt: now, expiresAt: now + MAX_AGE_SECONDS * 1000 });
  }
  return withinLimits([...byName.values()]);
}

function withinLimits(cookies: readonly StoredCookie[]): StoredCookie[] {
  let octets = 0;
  return cookies
    .toSorted((a, b) => b.setAt - a.setAt || (a.name < b.name ? -1 : 1))
    .slice(0, MAX_COOKIES)
    .filter(({ name, value }) => {
      octets += name.length + value.length;
      return octets <= MAX_PROFILE_OCTETS;
    });
}

/** A cookie as the answer of a bootstrap contains it, with its remaining life. */
export function restored(cookie: StoredCookie, domain: string | null, now: number): RestoredCookie {
  return {
    name: cookie.name,
    value: cookie.value,
    maxAge: Math.min(MAX_AGE_SECONDS, Math.ceil((cookie.expiresAt - now) / 1000)),
    domain,
    path: '/',
    sameSite: 'Lax',
    secure: true,
  };
}
