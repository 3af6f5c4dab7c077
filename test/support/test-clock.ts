import type { Clock } from '../../base/clock.ts';

/** A clock that moves only by `advance`. Sleeps end when their time has come. */
export function testClock(start = new Date('2026-01-01T00:00:00Z')) {
  let elapsed = 0;
  let offset = 0;
  const sleeping = new Set<{ until: number; end: () => void }>();
  const clock: Clock = {
    now: () => elapsed,
    date: () => new Date(start.getTime() + elapsed + offset),
    async sleep(ms, { signal } = {}) {
      if (ms <= 0 || signal?.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const sleep = { until: elapsed + ms, end: resolve };
      sleeping.add(sleep);
      signal?.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      sleeping.delete(sleep);
    },
  };
  return {
    ...clock,
    advance(ms: number): void {
      elapsed += ms;
      for (const { until, end } of sleeping) if (until <= elapsed) end();
    },
    /** Changes the wall clock only. */
    setWallClock(byMs: number): void {
      offset += byMs;
    },
    /** Milliseconds until each sleep ends. */
    sleeps: () => [...sleeping].map(({ until }) => until - elapsed),
  };
}
