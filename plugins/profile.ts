import type { RegistryDomain } from './document.ts';

/**
 * One stored cookie of a profile; times in milliseconds since the epoch. `attributes` is the rest of the `Set-Cookie` line
 * of a cookie that only the tag server's answers set, without its lifetime.
 */
export interface StoredCookie {
  readonly name: string;
  readonly value: string;
  readonly setAt: number;
  readonly expiresAt: number;
  readonly attributes?: string | undefined;
}

/**
 * The value of the cookie store under `<siteId>:<key>`, where the key is the visitor's id or one that a plugin derives.
 * `lastSeenAt` decides whether the session is idle. The identity ends a fixed time after `startedAt`, which records of
 * earlier versions don't have. `browsers`: the ids (their first digits) that a derived key was seen with, and when.
 * `isShared`: there were too many, so the key doesn't belong to a single visitor, and nothing is kept under it.
 */
export interface ProfileRecord {
  version: 1;
  session: { id: string; lastSeenAt: number } | null;
  cookies: StoredCookie[];
  startedAt?: number | undefined;
  browsers?: { id: string; at: number }[] | undefined;
  isShared?: boolean | undefined;
}

/** Whether a JSON value is a record. Not checked by a schema, which would cost a bootstrap a twentieth of its time. */
export function isProfileRecord(value: unknown): value is ProfileRecord {
  const { version, session, cookies, startedAt = 0, browsers = [], isShared = false } = Object(value);
  return (
    version === 1 &&
    (session === null || isSession(session)) &&
    typeof startedAt === 'number' &&
    typeof isShared === 'boolean' &&
    isListOf(isStoredCookie, cookies) &&
    isListOf(isBrowser, browsers)
  );
}

function isSession(session: unknown): boolean {
  const { id, lastSeenAt } = Object(session);
  return typeof id === 'string' && typeof lastSeenAt === 'number';
}

function isStoredCookie(cookie: unknown): boolean {
  const { name, value, attributes = '', setAt, expiresAt } = Object(cookie);
  return (
    typeof name === 'string' &&
    typeof value === 'string' &&
    typeof attributes === 'string' &&
    typeof setAt === 'number' &&
    typeof expiresAt === 'number'
  );
}

function isBrowser(browser: unknown): boolean {
  const { id, at } = Object(browser);
  return typeof id === 'string' && typeof at === 'number';
}

const isListOf = (isOne: typeof isBrowser, list: unknown) => Array.isArray(list) && list.every(isOne);

/** When the record's identity began, in milliseconds since the epoch: at the latest when its first cookie was stored. */
export const startOf = ({ startedAt, cookies }: ProfileRecord, now: number): number =>
  startedAt ?? Math.min(now, ...cookies.map(({ setAt }) => setAt));

/** The profiles of one site. No method rejects: if the store fails, nothing is read, stored or deleted. */
export interface ProfileStore {
  /** `undefined`: the store can't be read. `null`: it has no record of that id. */
  read(id: string): Promise<ProfileRecord | null | undefined>;
  /** Stores the record until `endsAt` (milliseconds since the epoch). */
  write(id: string, record: ProfileRecord, endsAt: number): Promise<void>;
  delete(id: string): Promise<void>;
}

/** The cookies by which a request identifies its visitor. */
export interface NamedCookies {
  /** The page's own, as the bootstrap's body contains them. */
  readonly sent: Readonly<Record<string, string>>;
  /** The request's `cookie` header on a first-party host; null elsewhere. */
  readonly header: string | null;
}

/** The values of a cookie in a `cookie` header (RFC 6265bis 5.8.3: pairs split at `;`, surrounding space dropped). */
export function cookieValues(header: string | null, name: string): string[] {
  const values: string[] = [];
  for (const pair of header?.includes(name) ? header.split(';') : []) {
    if (nameOf(pair) === name) values.push(pair.slice(pair.indexOf('=') + 1).trim());
  }
  return values;
}

/** The names in a `cookie` header. */
export function namesOfCookies(header: string | null): string[] {
  const names: string[] = [];
  for (const pair of header?.split(';') ?? []) {
    const name = nameOf(pair);
    if (name !== undefined) names.push(name);
  }
  return names;
}

/** Undefined for a text without a name, which browsers send for a nameless cookie. */
function nameOf(pair: string): string | undefined {
  const at = pair.indexOf('=');
  return at === -1 ? undefined : pair.slice(0, at).trim();
}

/** True if cookies that `host` sets for the domain reach the domain's pages. */
export function isFirstParty(host: string, { domain, cookieDomain }: RegistryDomain): boolean {
  const own = cookieDomain ?? domain;
  return host === own || host.endsWith(`.${own}`);
}
