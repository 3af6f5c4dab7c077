import { type Clock, systemClock } from '../../base/clock.ts';

/** The system's clock, which a test can move on. A sleep that is over by the new time ends at once. */
export function movableClock(): Clock & { advance(ms: number): void } {
  let later = 0;
  let moved = new AbortController();
  const now = () => systemClock.now() + later;
  return {
    now,
    date: () => new Date(systemClock.date().getTime() + later),
    async sleep(ms, { signal, ...options } = {}) {
      const until = now() + ms;
      while (now() < until && signal?.aborted !== true) {
        const signals = signal === undefined ? [moved.signal] : [moved.signal, signal];
        await systemClock.sleep(until - now(), { ...options, signal: AbortSignal.any(signals) });
      }
    },
    advance(ms) {
      later += ms;
      moved.abort();
      moved = new AbortController();
    },
  };
}
