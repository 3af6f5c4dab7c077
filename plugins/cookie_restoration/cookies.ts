import type { Consent, RestoredCookie, StoredCookie } from '../contract.ts';

/** 400 days in seconds: what Chromium clamps to and RFC 6265bis advises. */
const MAX_AGE = 34_560_000;

/** What one profile may hold: enough for every name of the default list with dozens of streams. */
const MAX_COOKIES = 50;
const MAX_PROFILE_OCTETS = 16_384;

/** RFC 6265bis 5.6: longer pairs are ignored by browsers as a whole. */
const MAX_PAIR_OCTETS = 4096;

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Printable ASCII without `;`: nothing that could end the pair or the header. */
const VALUE = /^(?! )[\x20-\x3a\x3c-\x7e]*(?<! )$/;
/** Prefixes that a browser ties to conditions which a restored, domain-wide cookie doesn't meet (6265bis 4.1.3). */
const RESERVED_PREFIX = /^__(?:host|secure|http|host-http)-/i;

/** True where `name` is one of the patterns, or begins as one that ends in `*` does. */
export function isListed(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}

/** True where a browser would take the pair from a `Set-Cookie`. */
export function isStorable(name: string, value: string): boolean {
  return (
    NAME.test(name) &&
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
 * What to keep of `held` and `sent`: allowed by list and consent, not past its life, the newer of two by time, within
 * a profile's caps. A value that is held already keeps the life it has: a restored cookie mustn't live for ever.
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
    byName.set(name, { name, value, setAt: now, expiresAt: now + MAX_AGE * 1000 });
  }
  return withinCaps([...byName.values()]);
}

function withinCaps(cookies: readonly StoredCookie[]): StoredCookie[] {
  let octets = 0;
  return cookies
    .toSorted((a, b) => b.setAt - a.setAt || (a.name < b.name ? -1 : 1))
    .slice(0, MAX_COOKIES)
    .filter(({ name, value }) => {
      octets += name.length + value.length;
      return octets <= MAX_PROFILE_OCTETS;
    });
}

/** As the answer of a bootstrap names a cookie, with the life that it has left. */
export function restored(cookie: StoredCookie, domain: string | null, now: number): RestoredCookie {
  return {
    name: cookie.name,
    value: cookie.value,
    maxAge: Math.min(MAX_AGE, Math.ceil((cookie.expiresAt - now) / 1000)),
    domain,
    path: '/',
    sameSite: 'Lax',
    secure: true,
  };
}
