import { expect, test } from 'vitest';
import { planReport } from '../../../gitops/http/plan-report.ts';
import { planReportSchema } from '../../../gitops/report/report.ts';
import { change, desiredSite, passPlan } from '../../support/gitops/plans.ts';

const shop = desiredSite('shop');

test('shows the changes without their contents', () => {
  const report = planReport(
    passPlan([shop], { changes: [change('shop', 'a', { ended: true, op: 'delete' })] }),
  );
  expect(planReportSchema.parse(report)).toEqual(report);
  expect(report).toEqual({
    revision: 'r1',
    checksum: 'c0ffee',
    changes: [{ site: 'shop', target: 'kv', key: 'a', op: 'delete', summary: 'delete a' }],
    blocked: [],
  });
});

test.each([
  ['a block', { blocked: [{ reason: 'frozen', detail: 'why', sites: [] }] }, 'frozen', 'why'],
  [
    'a conflict',
    { conflicts: [{ target: 'kv', site: 'shop', key: 'a', detail: 'foreign' }] },
    'conflict',
    'foreign',
  ],
  [
    'drift',
    { bySite: { shop: { unrepaired: [{ change: change('shop', 'a'), why: 'warn' }] } } },
    'drift',
    'shop: kv a',
  ],
  [
    'a repair loop',
    { bySite: { shop: { unrepaired: [{ change: change('shop', 'a'), why: 'repair_loop' }] } } },
    'repair_loop',
    'shop: kv a',
  ],
  [
    'a failed observation',
    { unobserved: new Map([['dns', new Error('500')]]) },
    'observe_failed',
    'dns: 500',
  ],
] as const)('shows %s', (_what, extra, reason, detail) => {
  expect(planReport(passPlan([shop], extra as never)).blocked).toEqual([
    { reason, detail: expect.stringContaining(detail) },
  ]);
});

test('shows why a manifest is stalled', () => {
  const stalled = { reason: 'InvalidManifest', message: 'shop.yaml:1: bad' } as const;
  expect(planReport(passPlan([desiredSite('shop', { stalled })])).blocked).toEqual([
    { reason: 'InvalidManifest', detail: 'shop.yaml:1: bad' },
  ]);
});
