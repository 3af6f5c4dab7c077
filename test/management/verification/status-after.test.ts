import { expect, test } from 'vitest';
import type { Check } from '../../../edge/verification/contract.ts';
import type { StatusReason } from '../../../management/lifecycle/status.ts';
import { statusAfter } from '../../../management/verification/verify.service.ts';

const failed: Check[] = [
  {
    name: 'certificate',
    subject: 'metrics.acme.example',
    status: 'failed',
    detail: 'it has expired',
    fix: 'Renew it.',
  },
  { name: 'single_preview', subject: null, status: 'failed', detail: 'two run', fix: 'Run tagyard apply.' },
  { name: 'processing_health', subject: null, status: 'passed', detail: 'healthy', fix: null },
];
const detail = 'certificate (metrics.acme.example), single_preview';

test.each<[string, 'passed' | 'failed' | 'unreachable', StatusReason | null, object]>([
  ['passed', 'passed', null, { to: 'verified', reason: null, detail: null, isKept: false }],
  ['passed after a failed one', 'passed', 'checks_failed', { to: 'verified', reason: null, isKept: false }],
  ['failed', 'failed', null, { to: 'verification_failed', reason: 'checks_failed', detail, isKept: false }],
  [
    'without any answer',
    'unreachable',
    null,
    { to: 'verification_failed', detail: 'the site gave no answer, or only 5xx', isKept: false },
  ],
  [
    'passed, with a refused manifest',
    'passed',
    'invalid_manifest',
    { reason: 'invalid_manifest', isKept: true },
  ],
  [
    'failed, with a taken port',
    'failed',
    'port_taken',
    { reason: 'port_taken', detail: 'why', isKept: true },
  ],
])('a verification that is %s leads to the status and reason $3', (_what, status, reason, expected) => {
  const row = { status_reason: reason, status_detail: reason === null ? null : 'why' };
  expect(statusAfter({ status, checks: failed }, row)).toMatchObject(expected);
});
