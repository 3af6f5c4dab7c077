import { expect, test } from 'vitest';
import { isRenewalLate } from '../../../edge/verification/certificate-life.ts';

const DAY_MS = 86_400_000;
const at = (day: number) => new Date(day * DAY_MS).toISOString();

test.each([
  ['of 90 days with 30 left', 0, 90, 60, false],
  ['of 90 days with 23 left', 0, 90, 67, false],
  ['of 90 days with 22 left', 0, 90, 68, true],
  ['of 6 days with 2 left', 0, 6, 4, false],
  ['of 6 days with 1 left', 0, 6, 5, true],
  ['that has ended', 0, 6, 7, true],
  ['whose beginning isn’t known', null, 90, 0, true],
])('the renewal of a certificate %s', (_what, from, to, now, isLate) => {
  const life = { notBefore: from === null ? null : at(from), notAfter: at(to) };
  expect(isRenewalLate(life, now * DAY_MS)).toBe(isLate);
});
