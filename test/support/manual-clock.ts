import type { Clock } from '../../gitops/base/clock.ts';

/** A clock on which a sleep ends when the test has moved the time far enough, or its signal aborts. */
export function manualClock(start = Date.parse('2026-01-01T00:00:00Z')) {
  let time = start;
  const sleepers = new Set<{ readonly until: number; readonly end: () => void }>();
  const clock: Clock = {
    now: () => time - start,
    date: () => new Date(time),
    async sleep(ms, { signal } = {}) {
      if (ms <= 0 || signal?.aborted === true) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const sleeper = { until: time + ms, end: resolve };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      sleepers.delete(sleeper);
    },
  };
  return {
    ...clock,
    advance(ms: number): void {
      time += ms;
      for (const { until, end } of sleepers) if (until <= time) end();
    },
  };
}
