import {
  type CryptoKey,
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type ExportedJWKSCache,
  errors,
  type FetchImplementation,
  type FlattenedJWSInput,
  type JWSHeaderParameters,
  jwksCache,
} from 'jose';
import { type Clock, systemClock } from '../../base/clock.ts';
import { usableKeys } from './usable-keys.ts';

export interface JwksOptions {
  /** Milliseconds after a fetch during which an unknown `kid` causes no further fetch. */
  readonly cooldownMs?: number;
  /** Milliseconds until the keys are fetched again. Without an outage, a withdrawn key works at most this long. */
  readonly maxAgeMs?: number;
  /** Milliseconds for which known keys are used while the issuer can't be reached. */
  readonly staleMs?: number;
  /** Milliseconds after a failed fetch before the next attempt. */
  readonly pauseMs?: number;
  readonly clock?: Clock;
  /** Called for published keys that can't be used, once until they change. */
  readonly onNotice?: (message: string) => void;
}

/** Resolves to the current key for a token with this header: without an outage, the same object until a new fetch. */
type KeySource = (header?: JWSHeaderParameters, token?: FlattenedJWSInput) => Promise<CryptoKey>;

/**
 * The issuer's keys, fetched from its one URL; a token's `kid` only selects among them. While the issuer can't be
 * reached, known keys are used for an hour. Published keys that can't be used count as unknown. Throws jose's errors.
 * An error that isn't about the token means that the keys can't be fetched.
 */
export function createKeySource(url: URL, options: JwksOptions = {}): KeySource {
  const { cooldownMs = 30_000, maxAgeMs = 600_000, staleMs = 3_600_000, pauseMs = 5_000 } = options;
  const { clock = systemClock, onNotice = () => undefined } = options;
  // jose fills this cache, and reads it only when it is complete.
  const cache: Partial<ExportedJWKSCache> = {};
  const remote = createRemoteJWKSet(url, {
    cooldownDuration: cooldownMs,
    cacheMaxAge: maxAgeMs,
    [customFetch]: fetchUsable(onNotice),
    [jwksCache]: cache as ExportedJWKSCache, // jose's type for an empty one forbids filling it
  });
  let outage: { readonly since: number; readonly error: unknown } | null = null;

  return async (header, token) => {
    if (outage === null || clock.now() - outage.since >= pauseMs) {
      try {
        const key = await remote(header, token);
        outage = null;
        return key;
      } catch (error) {
        if (isTokenFault(error)) throw error;
        outage = { since: clock.now(), error };
      }
    }
    const { jwks, uat = 0 } = cache;
    if (jwks === undefined || clock.date().getTime() - uat > staleMs) throw outage.error;
    try {
      return await createLocalJWKSet(jwks)(header, token);
    } catch (error) {
      // The issuer may have published the key since the last fetch, which can't be checked during the outage.
      throw error instanceof errors.JWKSNoMatchingKey ? outage.error : error;
    }
  };
}

/** Fetches a JWKS and omits the keys that can't be used, so that one faulty key doesn't fail the fetch. */
function fetchUsable(onNotice: (message: string) => void): FetchImplementation {
  let known = '';
  return async (url, init) => {
    const answer = await fetch(url, init);
    if (answer.status !== 200) return answer;
    const { set, faults } = await usableKeys(await answer.json());
    const message = faults.join('; ');
    if (message !== known && message !== '') onNotice(`${url}: ${message}`);
    known = message;
    return Response.json(set);
  };
}

function isTokenFault(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}
