import { expect, test } from 'vitest';
import { OperationWaits } from '../../../management/operations/waits.ts';
import { testClock } from '../../support/test-clock.ts';

const RUNNING = { row: 'running', hasEnded: false };

test('a wait reads again when its operation has ended', async () => {
  const waits = new OperationWaits(testClock());
  const reads = [RUNNING, { row: 'succeeded', hasEnded: true }];
  const read = async () => reads.shift() ?? RUNNING;
  const waiting = waits.until('op', 30_000, async () => {
    if (reads.length === 2) setImmediate(() => waits.announce('op'));
    return read();
  });
  expect(await waiting).toBe('succeeded');
});

test('the end of the process ends waits for a running operation, and those that begin later', async () => {
  const clock = testClock();
  const waits = new OperationWaits(clock);
  const first = Promise.withResolvers<void>();
  const waiting = waits.until('op', 30_000, async () => {
    setImmediate(first.resolve);
    return RUNNING;
  });
  await first.promise;
  waits.end();
  expect(await waiting).toBe('running');
  expect(await waits.until('op', 30_000, async () => RUNNING)).toBe('running');
  expect(clock.sleeps()).toEqual([]);
});
