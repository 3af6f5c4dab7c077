import {
  type CryptoKey,
  createLocalJWKSet,
  createRemoteJWKSet,
  type ExportedJWKSCache,
  errors,
  type FlattenedJWSInput,
  type JWSHeaderParameters,
  jwksCache,
} from 'jose';

export interface JwksOptions {
  /** Milliseconds after a fetch in which an unknown `kid` doesn't cause another one. */
  readonly cooldownMs?: number;
  /** Milliseconds after which the keys are fetched again: as long as a withdrawn key goes on counting. */
  readonly maxAgeMs?: number;
  /** Milliseconds for which keys outlive an issuer that can't be reached. */
  readonly staleMs?: number;
  /** Milliseconds after a fetch that failed in which none is tried. */
  readonly pauseMs?: number;
}

/** The key that counts now for a token with this header; the same object for as long as the keys aren't fetched again. */
export type KeySource = (header?: JWSHeaderParameters, token?: FlattenedJWSInput) => Promise<CryptoKey>;

/**
 * The issuer's keys from its one address; a token's `kid` is compared with theirs and is nothing else. Known keys go on
 * counting through an outage, for an hour. Throws jose's errors; one that isn't about the token means that the keys
 * can't be had.
 */
export function createKeySource(url: URL, options: JwksOptions = {}): KeySource {
  const { cooldownMs = 30_000, maxAgeMs = 600_000, staleMs = 3_600_000, pauseMs = 5_000 } = options;
  // jose fills it in, and reads it only where it is full.
  const cache: Partial<ExportedJWKSCache> = {};
  const remote = createRemoteJWKSet(url, {
    cooldownDuration: cooldownMs,
    cacheMaxAge: maxAgeMs,
    [jwksCache]: cache as ExportedJWKSCache, // its type for an empty one forbids filling it
  });
  let outage: { readonly since: number; readonly error: unknown } | null = null;

  return async (header, token) => {
    if (outage === null || performance.now() - outage.since >= pauseMs) {
      try {
        const key = await remote(header, token);
        outage = null;
        return key;
      } catch (error) {
        if (isOfToken(error)) throw error;
        outage = { since: performance.now(), error };
      }
    }
    const { jwks, uat = 0 } = cache;
    if (jwks === undefined || Date.now() - uat > staleMs) throw outage.error;
    try {
      return await createLocalJWKSet(jwks)(header, token);
    } catch (error) {
      // It may be a key that the issuer has published since: nobody can say now.
      throw error instanceof errors.JWKSNoMatchingKey ? outage.error : error;
    }
  };
}

function isOfToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}
