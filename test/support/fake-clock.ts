import type { Clock } from '../../base/clock.ts';

/** A clock whose sleeps end at once: each sleep advances the clock's time by its duration. */
export function fakeClock(): Clock & { advance(ms: number): void } {
  let time = 0;
  const advance = (ms: number) => {
    time += ms;
  };
  return {
    now: () => time,
    date: () => new Date(time),
    async sleep(ms, options) {
      if (options?.signal?.aborted !== true) advance(ms);
    },
    advance,
  };
}
