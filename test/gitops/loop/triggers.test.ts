import { beforeEach, expect, test } from 'vitest';
import { Triggers } from '../../../gitops/loop/triggers.ts';
import { testClock } from '../../support/test-clock.ts';

let clock: ReturnType<typeof testClock>;
let triggers: Triggers;
const stop = new AbortController().signal;
beforeEach(() => {
  clock = testClock();
  triggers = new Triggers(clock);
  triggers.take();
});

/** Returns whether `until` has resolved after `act`. */
async function endsBy(act: () => void, at = 1000, signal = stop): Promise<boolean> {
  let ended = false;
  void triggers.until(at, signal).then(() => {
    ended = true;
  });
  act();
  await new Promise(setImmediate);
  return ended;
}

test('the first pass after the start covers everything', async () => {
  const fresh = new Triggers(clock);
  await fresh.until(Infinity, stop);
  expect(fresh.take()).toEqual({ all: true, sites: new Set() });
});

test.each<[string, () => void, boolean]>([
  ['nothing', () => undefined, false],
  ['a check', () => triggers.check(), true],
  ['a trigger for a site', () => triggers.site('shop'), true],
  ['a trigger for everything', () => triggers.all(), true],
  ['almost its whole time', () => clock.advance(999), false],
  ['its whole time', () => clock.advance(1000), true],
  ['a restored check', () => triggers.restore({ all: true, sites: new Set(['shop']) }), false],
])('a wait has ended after %s: $2', async (_what, act, ended) => {
  expect(await endsBy(act)).toBe(ended);
});

test('a wait for a time that has passed, or after an abort, ends at once', async () => {
  clock.advance(5000);
  expect(await endsBy(() => undefined, 5000)).toBe(true);
  expect(await endsBy(() => undefined, Infinity, AbortSignal.abort())).toBe(true);
  const aborting = new AbortController();
  expect(await endsBy(() => aborting.abort(), Infinity, aborting.signal)).toBe(true);
});

test('a pass takes what was triggered since the last one, once', () => {
  triggers.site('one');
  triggers.site('two');
  triggers.check();
  expect(triggers.take()).toEqual({ all: false, sites: new Set(['one', 'two']) });
  triggers.all();
  expect(triggers.take()).toEqual({ all: true, sites: new Set() });
  expect(triggers.take()).toEqual({ all: false, sites: new Set() });
});

test('a failed pass puts its checks back, beside newer ones', () => {
  triggers.site('one');
  triggers.all();
  const failed = triggers.take();
  triggers.site('two');
  triggers.restore(failed);
  expect(triggers.take()).toEqual({ all: true, sites: new Set(['one', 'two']) });
});
