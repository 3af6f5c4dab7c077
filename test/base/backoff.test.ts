import { expect, test } from 'vitest';
import { backoffMs } from '../../base/backoff.ts';

test.each([
  [0, 1, 1_000],
  [1, 1, 1_000],
  [2, 1, 2_000],
  [3, 1, 4_000],
  [9, 1, 256_000],
  [10, 1, 300_000],
  [2_000, 1, 300_000],
  [3, 0, 400],
  [3, 0.5, 2_200],
])('after %i failures, with the random number %d, the pause is %i ms', (failures, random, ms) => {
  expect(backoffMs(failures, () => random)).toBe(ms);
});

test('takes other bounds', () => {
  const bounds = { firstMs: 100, longestMs: 250 };
  expect([1, 2, 3].map((failures) => backoffMs(failures, () => 1, bounds))).toEqual([100, 200, 250]);
});
