import { setInterval } from 'node:timers/promises';

const HOUR_MS = 3_600_000;

/** Does the work at once, and again after each interval until the signal. The work handles its own errors. */
export async function repeatEvery(
  work: () => Promise<unknown>,
  signal: AbortSignal,
  everyMs = HOUR_MS,
): Promise<void> {
  await work();
  try {
    for await (const _ of setInterval(everyMs, null, { signal, ref: false })) await work();
  } catch (error) {
    // An abort of the signal makes the timer throw.
    if (!signal.aborted) throw error;
  }
}
