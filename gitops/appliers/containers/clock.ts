import { setTimeout as wait } from 'node:timers/promises';

/** Time as decisions about containers see it. */
export interface Clock {
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  /** Throws when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) => wait(ms, undefined, { signal }),
};
