import { expect, test } from 'vitest';
import { judgeRepeat } from '../../../management/containers/answer.ts';

const operation = { id: 'an-id', kind: 'provision', status: 'running', step: 'commit' } as const;

test.each([
  [
    'another body, also while the first request runs',
    { body_hash: 'b', answer: null },
    operation,
    'refuse_other_body',
  ],
  ['another body, also after the answer', { body_hash: 'b', answer: {} }, null, 'refuse_other_body'],
  ['a stored answer', { body_hash: 'a', answer: {} }, operation, 'repeat_stored'],
  ['no answer yet', { body_hash: 'a', answer: null }, operation, 'refuse_in_progress'],
  [
    'no answer, and the provisioner has accepted the site',
    { body_hash: 'a', answer: null },
    { ...operation, step: 'follow' } as const,
    'answer_from_record',
  ],
  [
    'no answer, and the operation has ended',
    { body_hash: 'a', answer: null },
    { ...operation, status: 'failed', step: 'withdraw' } as const,
    'answer_from_record',
  ],
  ['no answer, and no operation', { body_hash: 'a', answer: null }, null, 'answer_from_record'],
] as const)('a repeated request with %s', (_what, first, running, expected) => {
  expect(judgeRepeat(first, 'a', running)).toBe(expected);
});
