import type { Clock } from '../../gitops/base/clock.ts';

/** A clock on which every sleep ends at once, later by what was slept. */
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
