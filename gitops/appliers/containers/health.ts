import { setTimeout as wait } from 'node:timers/promises';
import { request } from 'undici';
import type { Endpoint } from './runtime.ts';

/** A healthy server answers at once; one that takes longer than this serves nobody. */
const PROBE_MS = 2_000;
const INTERVAL_MS = 100;
/** Asked less and less often: many that start at once must not spend the host's time on being asked. */
const LONGEST_INTERVAL_MS = 400;
/** Whether it still runs is a question to the engine, and a dear one where many are starting: asked ever less often. */
const LOST_INTERVAL_MS = 500;
const LONGEST_LOST_INTERVAL_MS = 4_000;

/** `unwell`: it answers, and asks to be replaced; it may well go on serving until then. */
export type Health = 'healthy' | 'unwell' | 'silent';

/** Asks from outside, because there is no shell in the image. Only the status counts (facts.md, Health). */
export async function healthOf({ address, port }: Endpoint, signal: AbortSignal): Promise<Health> {
  try {
    const { statusCode, body } = await request(`http://${address}:${port}/healthz`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]),
      // A kept connection would tell of the container before this one.
      reset: true,
    });
    await body.dump();
    return statusCode === 200 ? 'healthy' : 'unwell';
  } catch {
    signal.throwIfAborted();
    // Refused, reset or too slow: that is the answer to the question.
    return 'silent';
  }
}

/** A reason that it isn't running any more, see `Runtime.death`; else the last answer by the deadline. */
export type Outcome = { readonly death: string } | Health;

/** Polls until it is healthy, at most until the deadline, or until `lost` has a reason. */
export async function waitForHealth(
  endpoint: Endpoint,
  { deadlineMs, lost }: { deadlineMs: number; lost: () => Promise<string | null> },
  signal: AbortSignal,
): Promise<Outcome> {
  const deadline = performance.now() + deadlineMs;
  let interval = INTERVAL_MS;
  let lostInterval = LOST_INTERVAL_MS;
  for (let askAt = performance.now(); ; ) {
    const health = await healthOf(endpoint, signal);
    if (health === 'healthy') return health;
    const over = performance.now() >= deadline;
    if (over || performance.now() >= askAt) {
      const death = await lost();
      if (death !== null) return { death };
      askAt = performance.now() + lostInterval;
      lostInterval = Math.min(LONGEST_LOST_INTERVAL_MS, lostInterval * 2);
    }
    if (over) return health;
    await wait(interval, undefined, { signal });
    interval = Math.min(LONGEST_INTERVAL_MS, interval * 1.2);
  }
}

/** Polls for so long; ends early with the first answer that isn't `healthy`. */
export async function staysHealthy(
  endpoint: Endpoint,
  { forMs, lost }: { forMs: number; lost: () => Promise<string | null> },
  signal: AbortSignal,
): Promise<Outcome> {
  const deadline = performance.now() + forMs;
  while (performance.now() < deadline) {
    await wait(Math.min(INTERVAL_MS, forMs), undefined, { signal });
    const health = await healthOf(endpoint, signal);
    if (health === 'healthy') continue;
    const death = await lost();
    return death === null ? health : { death };
  }
  return 'healthy';
}
