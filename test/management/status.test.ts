import { expect, test } from 'vitest';
import { canMove, STATUSES } from '../../management/lifecycle/status.ts';

/** The contract's own words, as pairs; every pair that isn't here is refused. */
const ALLOWED = new Set([
  'provisioning active',
  'provisioning failed',
  'active verified',
  'active verification_failed',
  'verified verification_failed',
  'verification_failed verified',
  'provisioning deprovisioning',
  'active deprovisioning',
  'verified deprovisioning',
  'verification_failed deprovisioning',
  'failed deprovisioning',
  'deprovisioning removed',
  'removed provisioning',
]);

const pairs = STATUSES.flatMap((from) => STATUSES.map((to) => [from, to] as const));

test.each(pairs)('%s → %s', (from, to) => {
  expect(canMove(from, to)).toBe(ALLOWED.has(`${from} ${to}`));
});
