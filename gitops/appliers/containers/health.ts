import { setTimeout as wait } from 'node:timers/promises';
import { request } from 'undici';
import type { Endpoint } from './runtime.ts';

/** A healthy server answers at once; one that takes longer than this serves nobody. */
const PROBE_MS = 2_000;
const INTERVAL_MS = 100;

/** Asks from outside, because there is no shell in the image. Only the status counts (facts.md, Health). */
export async function isHealthy({ address, port }: Endpoint, signal: AbortSignal): Promise<boolean> {
  try {
    const { statusCode, body } = await request(`http://${address}:${port}/healthz`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]),
      // A kept connection would tell of the container before this one.
      reset: true,
    });
    await body.dump();
    return statusCode === 200;
  } catch {
    signal.throwIfAborted();
    // Refused, reset or too slow: that is the answer to the question.
    return false;
  }
}

/**
 * Polls until it is healthy: `true`. Ends with `false` at the deadline, or with the answer of `lost` as soon as there
 * is one.
 */
export async function waitForHealth(
  endpoint: Endpoint,
  { deadlineMs, lost }: { deadlineMs: number; lost: () => Promise<string | null> },
  signal: AbortSignal,
): Promise<true | false | string> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    if (await isHealthy(endpoint, signal)) return true;
    const reason = await lost();
    if (reason !== null) return reason;
    if (performance.now() >= deadline) return false;
    await wait(INTERVAL_MS, undefined, { signal });
  }
}
