import { setTimeout as wait } from 'node:timers/promises';

/** Time for decisions and pauses. Tests pass a clock of their own. */
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
