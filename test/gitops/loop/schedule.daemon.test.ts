import { beforeEach, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { Schedule } from '../../../gitops/loop/retries.ts';
import { testClock } from '../../support/test-clock.ts';

const failure = new Error('no route to host');
let clock: ReturnType<typeof testClock>;
let schedule: Schedule;
beforeEach(() => {
  clock = testClock();
  schedule = new Schedule(clock, () => 1);
});

test('a failed full pass is due after a pause that doubles; failures during the pause don’t count', () => {
  const pauses = [1, 2, 4].map(() => {
    schedule.failed([failure]);
    const { at } = schedule;
    for (let trigger = 0; trigger < 5; trigger += 1) schedule.failed([failure]);
    expect(schedule.at).toBe(at);
    const pause = at - clock.now();
    clock.advance(pause - 1);
    expect(schedule.isDue()).toBe(false);
    clock.advance(1);
    expect(schedule.isDue()).toBe(true);
    return pause;
  });
  expect(pauses).toEqual([1_000, 2_000, 4_000]);
});

test.each([
  ['as long as the other side asks for', [3600], 3600],
  ['the longest time that any of several answers asks for', [60, 7200, 1], 7200],
])('the next full pass waits %s', (_what, answers, seconds) => {
  schedule.failed(answers.map((retryAfter) => new RetryableError('too many calls', { retryAfter })));
  expect(schedule.at).toBe(seconds * 1000);
  // A failure in between without a retryAfter changes nothing, a retryAfter that ends later does.
  schedule.failed([failure]);
  expect(schedule.at).toBe(seconds * 1000);
  clock.advance(1000);
  schedule.failed([new RetryableError('too many calls', { retryAfter: seconds })]);
  expect(schedule.at).toBe(seconds * 1000 + 1000);
});

test('a success clears the schedule and the backoff', () => {
  expect([schedule.hasSucceeded, schedule.isDue()]).toEqual([false, false]);
  schedule.failed([failure]);
  expect(schedule.hasSucceeded).toBe(false);
  schedule.succeeded();
  expect([schedule.hasSucceeded, schedule.at]).toEqual([true, Infinity]);
  schedule.failed([failure]);
  expect([schedule.hasSucceeded, schedule.at]).toEqual([true, 1_000]);
});
