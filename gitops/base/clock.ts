/** The two clocks of a machine. Injected wherever a decision depends on time, so that tests can set it. */
export interface Clock {
  /** Milliseconds since 1970. Jumps when the machine's clock is set. */
  now(): number;
  /** Milliseconds since an arbitrary moment. Never jumps; for measuring how long something took. */
  elapsed(): number;
}

export const systemClock: Clock = { now: () => Date.now(), elapsed: () => performance.now() };
