import { cookieValues, type NamedCookies, type ProfileRecord } from '../profile.ts';

const MIN_BITS = 128;
/** A value with fewer different characters is a pattern rather than a random value. */
const MIN_DISTINCT = 8;
const MAX_LENGTH = 1024;

/** Random bits of a character, by the smallest of these sets that has all characters of the value. */
const ALPHABETS: readonly (readonly [RegExp, bits: number])[] = [
  [/^\d+$/, Math.log2(10)],
  [/^[\da-f]+$/i, 4],
  [/^[\da-z]+$/, Math.log2(36)],
  [/^[\dA-Z]+$/, Math.log2(36)],
  [/^[\w+/=-]+$/, 6],
];
const UUID = /^[\da-f]{8}-[\da-f]{4}-([\da-f])[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/i;
/** The only UUID version that is wholly random; the others contain a time or a name (RFC 9562). */
const RANDOM_UUID = '4';

/** A browser that has lost its id gets a new one. Up to this many ids in a month may belong to one visitor. */
const MAX_BROWSERS = 10;
const MONTH_MS = 30 * 86_400_000;
/** How long a new value restores nothing to other browsers: by then, a value that many visitors have is noticed. */
const TRIAL_MS = 86_400_000;

/** The value of the master cookie, if it can be a random value that only this visitor has. */
export function masterValue(name: string, { sent, header }: NamedCookies): string | undefined {
  const value = cookieValues(header, name)[0] ?? (Object.hasOwn(sent, name) ? sent[name] : undefined);
  return value !== undefined && isUnguessable(value) ? value : undefined;
}

/** Whether one part of a value can have 128 random bits, by its length and its characters. */
function isUnguessable(value: string): boolean {
  return value.length <= MAX_LENGTH && value.split(/[^\w+/=-]+/).some(isRandom);
}

function isRandom(part: string): boolean {
  const [, version = RANDOM_UUID] = UUID.exec(part) ?? [];
  const text = UUID.test(part) ? part.replaceAll('-', '') : part;
  const bits = ALPHABETS.find(([alphabet]) => alphabet.test(text))?.[1] ?? 0;
  return version === RANDOM_UUID && text.length * bits >= MIN_BITS && new Set(text).size >= MIN_DISTINCT;
}

/**
 * The key of a visitor's record: HMAC-SHA256 of the value for this site, so that the store doesn't contain the cookie's
 * value.
 */
export async function masterKey(siteId: string, value: string): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(siteId), algorithm, false, ['sign']);
  const signature = await crypto.subtle.sign('HMAC', key, encoder.encode(value));
  return `master:${new Uint8Array(signature).toHex()}`;
}

/** What a record's key may be used for after a browser has sent it. */
export type MasterUse = 'restore' | 'store' | 'refuse';

/**
 * Counts the browser and decides. A browser that was seen with the key before gets its cookies back at once, any other
 * only when the key is a day old. After too many browsers, none gets any.
 */
export function countBrowser(record: ProfileRecord, id: string, now: number): MasterUse {
  const short = id.slice(0, 8);
  const recent = (record.browsers ?? []).filter(({ at }) => now - at < MONTH_MS);
  const isKnown = recent.some((browser) => browser.id === short);
  record.browsers = isKnown ? recent : [...recent, { id: short, at: now }];
  if (record.browsers.length > MAX_BROWSERS) return 'refuse';
  return isKnown || now - (record.startedAt ?? now) >= TRIAL_MS ? 'restore' : 'store';
}
