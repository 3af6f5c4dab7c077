import { type Clock, SYSTEM_CLOCK } from '../base/clock.ts';
import { RetryableError } from '../base/errors.ts';

export interface Pace {
  /** Waits for a turn, first come first served. Throws `RetryableError` while the whole service is paused. */
  take(signal: AbortSignal): Promise<void>;
  /** Refuses every turn for so many seconds. */
  pause(seconds: number): void;
}

/** A token bucket: `perSecond` turns in the long run, `burst` of them at once after a quiet time. */
export function createPace(
  { perSecond, burst }: { perSecond: number; burst: number },
  clock: Clock = SYSTEM_CLOCK,
): Pace {
  let tokens = burst;
  let filledAt = clock.now();
  let pausedUntil = Number.NEGATIVE_INFINITY;

  function refuseWhilePaused(): void {
    const left = (pausedUntil - clock.now()) / 1000;
    if (left <= 0) return;
    const retryAfter = Math.ceil(left);
    throw new RetryableError(`paused by the other side's rate limit for ${retryAfter} s`, { retryAfter });
  }

  return {
    async take(signal) {
      refuseWhilePaused();
      const now = clock.now();
      tokens = Math.min(burst, tokens + ((now - filledAt) / 1000) * perSecond);
      filledAt = now;
      // Below zero, the debt is the place in the line.
      tokens -= 1;
      if (tokens >= 0) return;
      await clock.sleep((-tokens / perSecond) * 1000, signal);
      refuseWhilePaused();
    },
    pause(seconds) {
      pausedUntil = Math.max(pausedUntil, clock.now() + seconds * 1000);
    },
  };
}
