import type { CallLimit } from './call-limit.ts';

/** Limits of the API, and how late its writes arrive (docs/facts.md, Cloudflare Workers, and Cloudflare API). */
export interface ApiLimits {
  readonly calls: CallLimit;
  /** Whether calls for the objects of buckets count, too. */
  readonly countsObjects: boolean;
  /** Workers routes in a zone. */
  readonly routes: number;
  /** Custom domains of Workers in a zone. */
  readonly customDomains: number;
  /** DNS records in a zone. */
  readonly records: number;
  /** The shortest time between two writes of one key. */
  readonly kvWriteMs: number;
  /** How long a write through the API may take to be seen by the worker. */
  readonly kvDelayMs: number;
  /** How long the worker waits for the 522 of a name without an origin. */
  readonly silenceMs: number;
}

export const REAL_LIMITS: ApiLimits = {
  calls: { calls: 1200, seconds: 300 },
  countsObjects: true,
  routes: 1000,
  customDomains: 100,
  records: 200,
  kvWriteMs: 1000,
  kvDelayMs: 60_000,
  silenceMs: 19_000,
};

/**
 * The real limits with shorter delays, so that a first try on one machine waits neither 19 s for a 522 nor 60 s for KV.
 * Calls for objects are not counted: here, management reads the raw logs four times a second by this API, but in
 * production by R2's S3 interface, which has no such limit.
 */
export const HOME_LIMITS: ApiLimits = { ...REAL_LIMITS, countsObjects: false, kvDelayMs: 1000, silenceMs: 0 };
