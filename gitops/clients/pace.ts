import { type Clock, systemClock } from '../../base/clock.ts';
import { RetryableError } from '../../base/errors.ts';

export interface Pace {
  /** Takes a token; waits for one in order of arrival. Throws `RetryableError` during a pause. */
  take(signal: AbortSignal): Promise<void>;
  /** Refuses all tokens for this many seconds. */
  pause(seconds: number): void;
}

/**
 * A token bucket: `perSecond` tokens on average, and `burst` at once. It limits a rate, where `limit` of base/limit.ts
 * limits concurrency.
 */
export function createPace(
  { perSecond, burst }: { perSecond: number; burst: number },
  clock: Clock = systemClock,
): Pace {
  let tokens = burst;
  let filledAt = clock.now();
  let pausedUntil = Number.NEGATIVE_INFINITY;

  function refuseWhilePaused(): void {
    const left = (pausedUntil - clock.now()) / 1000;
    if (left <= 0) return;
    const retryAfter = Math.ceil(left);
    throw new RetryableError(`paused by the server's rate limit for ${retryAfter} s`, { retryAfter });
  }

  return {
    async take(signal) {
      refuseWhilePaused();
      const now = clock.now();
      tokens = Math.min(burst, tokens + ((now - filledAt) / 1000) * perSecond);
      filledAt = now;
      // A negative number is the position in the queue.
      tokens -= 1;
      if (tokens >= 0) return;
      await clock.sleep((-tokens / perSecond) * 1000, { signal });
      signal.throwIfAborted();
      refuseWhilePaused();
    },
    pause(seconds) {
      pausedUntil = Math.max(pausedUntil, clock.now() + seconds * 1000);
    },
  };
}
