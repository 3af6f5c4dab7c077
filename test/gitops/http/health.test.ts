import { expect, test } from 'vitest';
import { checkReconciler } from '../../../gitops/http/health.ts';

const WELL = { lastError: null, passRunsMs: 5_000, ready: true };

test('the reconciler’s check succeeds while passes observe, plan and end', () => {
  expect(checkReconciler(WELL)).toMatchObject({ name: 'reconciler', status: 'passed', fix: null });
});

test.each([
  ['a pass that hangs', { passRunsMs: 500_000 }, 'a pass has been running for 500 s'],
  [
    'passes that can’t plan',
    { lastError: new Error('git is away') },
    'the newest revision could not be planned: git is away',
  ],
  ['no full pass since the start', { ready: false }, 'no pass has observed everything'],
])('the reconciler’s check fails: %s', (_what, state, detail) => {
  expect(checkReconciler({ ...WELL, ...state })).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining(detail),
    fix: expect.stringMatching(/^[A-Z].*\.$/),
  });
});
