import type { Consent } from '../consent.ts';
import type { RestoredCookie } from '../contract.ts';
import type { StoredCookie } from '../profile.ts';

/**
 * Cookies that count a session's hits, so that their values change with every page view. A stored value is not replaced
 * within half an hour, because that would cost one write per page view. If it is restored, it continues the count of
 * the earlier session.
 */
const COUNTER = /^_ga_/;
const COUNTER_MS = 30 * 60_000;

/** Limits of one profile. Enough for all names of the default list, with dozens of names `_ga_<stream>`. */
const MAX_COOKIES = 50;
const MAX_PROFILE_OCTETS = 16_384;

/** Browsers ignore longer pairs (RFC 6265bis 5.6). */
const MAX_PAIR_OCTETS = 4096;

const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Printable ASCII without `;`, so that a value can't end the pair or the header. */
const VALUE = /^(?! )[\x20-\x3a\x3c-\x7e]*(?<! )$/;
/** Prefixes with conditions, all refused: a domain-wide cookie meets only those of `__Secure-` (RFC 6265bis 4.1.3). */
const RESERVED_PREFIX = /^__(?:host|secure|http|host-http)-/i;

/** True if `name` is one of the patterns, or starts with a pattern that ends in `*`. */
function isListed(name: string, patterns: readonly string[]): boolean {
  for (const pattern of patterns) {
    if (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern) return true;
  }
  return false;
}

/**
 * True if the cookie may be stored and a browser accepts it in `Set-Cookie`. False for the visitor's id, even if it is
 * listed.
 */
export function isStorable(name: string, value: string): boolean {
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
  /** When the identity ends, and every cookie with it. */
  readonly endsAt: number;
}

/**
 * Merges the `held` and the `sent` cookies into those to store: they are allowed by list and consent, not expired, and
 * within a profile's limits. Of two with the same name, the newer one stays. Each ends with the identity: otherwise a
 * restored cookie would never expire. The tag server's ids (`FPID`, `FPLC`) need not be listed.
 */
export function mergeCookies(
  held: readonly StoredCookie[],
  sent: Readonly<Record<string, string>>,
  { patterns, consent, now, endsAt }: MergeRules,
): StoredCookie[] {
  const may = (name: string) => isListed(name, patterns) && consent.allows(name);
  const stays = ({ name, attributes, expiresAt }: StoredCookie) =>
    expiresAt > now && (attributes === undefined ? may(name) : consent.allows(name));
  const kept = held.filter(stays);
  const isKept = (name: string, value: string) =>
    kept.some((own) => own.name === name && own.value === value);
  const changed = Object.entries(sent).filter(([name, value]) => !isKept(name, value));
  // Most pages change nothing, and stored cookies are already sorted and within the limits. But an earlier version
  // stored some names twice.
  if (changed.length === 0 && new Set(kept.map(({ name }) => name)).size === kept.length) return kept;
  const byName = new Map(kept.map((cookie) => [cookie.name, cookie]));
  for (const [name, value] of changed) {
    if (!may(name) || !isStorable(name, value)) continue;
    const known = byName.get(name);
    if (known && COUNTER.test(name) && now - known.setAt < COUNTER_MS) continue;
    byName.set(name, { name, value, setAt: now, expiresAt: endsAt });
  }
  return withinLimits([...byName.values()]);
}

/**
 * The stored cookies, in which those of the tag server's answer replace older ones. For each name, its last valid
 * `Set-Cookie` counts.
 */
export function withHttpCookies(
  held: readonly StoredCookie[],
  passed: readonly StoredCookie[],
  now: number,
): StoredCookie[] {
  const others = held.filter(({ name }) => !passed.some((cookie) => cookie.name === name));
  const valid = passed.filter(({ expiresAt }) => expiresAt > now);
  const byName = new Map(valid.map((cookie) => [cookie.name, cookie]));
  return withinLimits([...others, ...byName.values()]);
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

/** A cookie as a bootstrap's answer contains it, with its remaining lifetime. */
export function restored(cookie: StoredCookie, domain: string | null, now: number): RestoredCookie {
  return {
    name: cookie.name,
    value: cookie.value,
    maxAge: Math.ceil((cookie.expiresAt - now) / 1000),
    domain,
    path: '/',
    sameSite: 'Lax',
    secure: true,
  };
}
