import { setTimeout as delay } from 'node:timers/promises';

/** The clocks that decisions depend on. Tests inject their own. */
export interface Clock {
  /** Monotonic milliseconds, for pauses, intervals and ages: a change of the wall clock doesn't affect them. */
  now(): number;
  /** The wall clock, for times that are saved or shown. */
  date(): Date;
  /** Resolves after `ms`, or when `signal` aborts; never rejects. `ref: false` doesn't keep the process alive. */
  sleep(ms: number, options?: { readonly signal?: AbortSignal; readonly ref?: boolean }): Promise<void>;
}

/** The longest delay: Node's timers fire immediately for a longer one. Source: Node.js API, Timers. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => new Date(Date.now()),
  sleep: (ms, options) =>
    delay(Math.min(Math.max(0, ms), MAX_DELAY_MS), undefined, options).catch(() => undefined),
};
