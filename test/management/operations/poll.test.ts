import { expect, test } from 'vitest';
import { isPollDue } from '../../../management/operations/poll.ts';

test.each([
  ['not polled yet', null, 0, true],
  ['young, polled a moment ago', 100, 1_000, false],
  ['young, polled one interval ago', 500, 1_000, true],
  ['young, with a timer that fired early', 451, 1_000, true],
  ['a minute old, polled 5 seconds ago', 5_000, 60_000, false],
  ['a minute old, polled 6 seconds ago', 6_000, 60_000, true],
  ['an hour old, polled 8 seconds ago', 8_000, 3_600_000, false],
  ['an hour old, polled 10 seconds ago', 10_000, 3_600_000, true],
  ['of the future, because the clock was set back', 500, -60_000, true],
])('an operation that is %s is due for a poll: $3', (_what, sinceMs, ageMs, expected) => {
  expect(isPollDue(sinceMs, ageMs, 500)).toBe(expected);
});
