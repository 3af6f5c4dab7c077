import { expect, test } from 'vitest';
import { RepairLoops } from '../../../gitops/loop/retries.ts';
import { change } from '../../support/gitops/plans.ts';
import { privateEntries } from '../../support/private-entries.ts';
import { testClock } from '../../support/test-clock.ts';

const MINUTE = 60_000;

test('three repairs within ten minutes are a repair loop, until the oldest is ten minutes old', () => {
  const clock = testClock();
  const loops = new RepairLoops(clock);
  const drift = change('shop', 'a');
  for (const expected of [false, false, true]) {
    loops.repaired(drift);
    expect(loops.isRepairLoop(drift)).toBe(expected);
    clock.advance(3 * MINUTE);
  }
  clock.advance(MINUTE - 1);
  expect(loops.isRepairLoop(drift)).toBe(true);
  clock.advance(1);
  expect(loops.isRepairLoop(drift)).toBe(false);
  loops.repaired(drift);
  expect(loops.isRepairLoop(drift)).toBe(true);
});

test.each([
  ['another key', { key: 'b' }, false],
  ['another target', { target: 'dns' }, false],
  ['another site that has taken the object over', { site: 'other' }, true],
  ['another operation', { op: 'update' }, true],
] as const)('a change of %s belongs to the repair loop: $2', (_what, extra, together) => {
  const loops = new RepairLoops(testClock());
  const drift = change('shop', 'a');
  for (let repair = 0; repair < 3; repair += 1) loops.repaired(drift);
  expect(loops.isRepairLoop({ ...drift, ...extra })).toBe(together);
});

test('a repair is forgotten after ten minutes, also where its object is never changed again', () => {
  const clock = testClock();
  const loops = new RepairLoops(clock);
  for (const key of ['a', 'b', 'c', 'a']) {
    loops.repaired(change('shop', key));
    clock.advance(4 * MINUTE);
  }
  loops.repaired(change('shop', 'd'));
  expect(privateEntries(loops)).toEqual({ '#repairs': 3 });
  clock.advance(10 * MINUTE);
  loops.repaired(change('shop', 'e'));
  expect(privateEntries(loops)).toEqual({ '#repairs': 1 });
});
