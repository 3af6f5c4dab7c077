import { expect, test } from 'vitest';
import { createdContainer, judgeRepeat } from '../../../../management/containers/idempotency/answer.ts';
import { containerResources } from '../../../../sites/manifest/resources/schema.ts';

const failure = { failed: 'an-id', detail: 'refused' };
const operation = { id: 'an-id', kind: 'provision', status: 'running', step: 'commit' } as const;

test.each([
  [
    'another body, also while the first request runs',
    { body_hash: 'b', answer: null },
    { operation },
    'refuse_other_body',
  ],
  ['another body, also after the answer', { body_hash: 'b', answer: {} }, {}, 'refuse_other_body'],
  ['a stored answer', { body_hash: 'a', answer: {} }, { operation }, 'repeat_stored'],
  ['a stored failure', { body_hash: 'a', answer: failure }, { status: 'failed' }, 'repeat_stored'],
  [
    'a stored failure of a container that git has brought back',
    { body_hash: 'a', answer: failure },
    { status: 'active' },
    'answer_from_record',
  ],
  ['no answer yet', { body_hash: 'a', answer: null }, { operation }, 'refuse_in_progress'],
  [
    'no answer, and the provisioner has accepted the site',
    { body_hash: 'a', answer: null },
    { operation: { ...operation, step: 'follow' } },
    'answer_from_record',
  ],
  [
    'no answer, and the operation has ended',
    { body_hash: 'a', answer: null },
    { operation: { ...operation, status: 'failed', step: 'withdraw' } },
    'answer_from_record',
  ],
  ['no answer, and no operation', { body_hash: 'a', answer: null }, {}, 'answer_from_record'],
] as const)('a repeated request with %s: $3', (_what, first, found, expected) => {
  const container = { status: 'provisioning', operation: null, ...found } as const;
  expect(judgeRepeat(first, 'a', container)).toBe(expected);
});

test('a stored answer of an earlier release gets the defaults of the members that it lacks', () => {
  const stored = JSON.parse('{ "container": { "id": "an-id", "domains": [{ "domain": "acme.example" }] } }');
  expect(createdContainer(stored)).toEqual({
    id: 'an-id',
    warnings: [],
    serving: true,
    protected: false,
    tls: 'files',
    resources: containerResources.parse({}),
    domains: [{ domain: 'acme.example', sameOrigin: null }],
  });
});
