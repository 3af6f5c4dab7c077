import { expect, test } from 'vitest';
import { canMove, isProjectionReason, restorePath, STATUSES } from '../../../management/lifecycle/status.ts';

/** The transitions of docs/http.md. Every other pair is refused. */
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

test.each([
  ['removed', ['provisioning']],
  ['deprovisioning', ['removed', 'provisioning']],
  ['failed', ['deprovisioning', 'removed', 'provisioning']],
] as const)('the path from %s back to provisioning is %j', (from, path) => {
  expect(restorePath(from)).toEqual(path);
});

test.each([
  ['port_taken', true],
  ['domain_in_use', true],
  ['invalid_manifest', true],
  ['host_trouble', false],
  ['checks_failed', false],
  [null, false],
] as const)('the reason %s says that the newest manifest isn’t applied: %s', (reason, expected) => {
  expect(isProjectionReason(reason)).toBe(expected);
});
