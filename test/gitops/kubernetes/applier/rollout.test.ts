import { expect, test } from 'vitest';
import { GivenUpError, RetryableError, TerminalError } from '../../../../base/errors.ts';
import { RolloutFailures } from '../../../../gitops/kubernetes/applier/rollout.ts';
import { privateEntries } from '../../../support/private-entries.ts';

const FAILURE = { message: 'it ends', isLasting: true, quota: null } as const;

test('a rollout that fails repeatedly is retried, then terminal, then given up, unless it succeeded before', () => {
  const failures = new RolloutFailures();
  const kinds = (hash: string) =>
    Array.from({ length: 12 }, () => failures.errorOf(hash, 'it failed', FAILURE).constructor);
  expect(kinds('a')).toEqual([
    ...Array(2).fill(RetryableError),
    ...Array(9).fill(TerminalError),
    GivenUpError,
  ]);
  failures.prove('b');
  expect(kinds('b').at(-1)).toBe(TerminalError);
});

test('what is known of rollouts that no site asks for any more is forgotten', () => {
  const failures = new RolloutFailures();
  for (const hash of ['a', 'b', 'c']) failures.errorOf(hash, 'it failed', FAILURE);
  failures.errorOf('b', 'it failed', FAILURE);
  failures.prove('c');
  failures.prove('d');
  failures.retain(new Set(['b']));
  expect(privateEntries(failures)).toEqual({ '#counts': 1 });
  expect(failures.errorOf('b', 'it failed', FAILURE).message).toContain('3 times in a row');
  failures.retain(new Set());
  expect(privateEntries(failures)).toEqual({});
});
