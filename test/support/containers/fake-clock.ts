import type { Clock } from '../../../gitops/base/clock.ts';

/** A clock on which every sleep is over at once. */
export function fakeClock(): Clock {
  let time = 0;
  return {
    now: () => time,
    async sleep(ms, signal) {
      signal.throwIfAborted();
      time += ms;
    },
  };
}
