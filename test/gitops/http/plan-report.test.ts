import { expect, test } from 'vitest';
import type { Observed } from '../../../gitops/appliers/contract.ts';
import { holdsAfterApproval, planReport } from '../../../gitops/http/plan-report.ts';
import type { HoldReason } from '../../../gitops/pass/guards.ts';
import { planReportSchema } from '../../../gitops/report/report.ts';
import { change, desiredSite, passPlan } from '../../support/gitops/plans.ts';

const shop = desiredSite('shop');

function observed(key: string, extra: Partial<Observed>): Observed {
  const owner = { kind: 'ours', site: 'shop', host: 'tag-1' } as const;
  return { target: 'kv', key, owner, hash: null, ref: null, ...extra };
}

test('shows the changes without their contents, and what holds them', () => {
  const removal = change('shop', 'a', { ended: true, op: 'delete' });
  const repair = change('shop', 'b', { op: 'update', observed: observed('b', { found: 'another one' }) });
  const outdated = change('shop', 'c', { op: 'update', observed: observed('c', { hash: 'h0' }) });
  const broken = change('shop', 'd', { op: 'update', observed: observed('d', {}) });
  const plan = passPlan([shop], {
    changes: [removal, repair, outdated, broken],
    held: new Map([[removal, ['frozen', 'suspended']]]),
    drifted: new Set([repair]),
  });
  const report = planReport(plan);
  expect(planReportSchema.parse(report)).toEqual(report);
  const rest = { site: 'shop', target: 'kv', op: 'update', drift: false, held: [] };
  expect(report).toEqual({
    revision: 'r1',
    checksum: 'c0ffee',
    changes: [
      { ...rest, key: 'a', op: 'delete', summary: 'delete a', found: null, held: ['frozen', 'suspended'] },
      { ...rest, key: 'b', summary: 'update b', drift: true, found: 'another one' },
      { ...rest, key: 'c', summary: 'update c', found: 'an earlier state' },
      { ...rest, key: 'd', summary: 'update d', found: 'changed or broken' },
    ],
    blocked: [],
  });
});

test('after an approval, only blocks that no approval lifts hold the changes', () => {
  const one = change('shop', 'a', { op: 'delete' });
  const blocked = [
    { reason: 'too_many_sites', detail: 'many', sites: ['shop'] },
    { reason: 'frozen', detail: 'cold', sites: ['shop'] },
  ] as const;
  const plan = (held: readonly HoldReason[]) =>
    passPlan([shop], { changes: [one], guarded: [one], blocked, held: new Map([[one, held]]) });
  expect(holdsAfterApproval(plan(['too_many_sites']))).toEqual([]);
  expect(holdsAfterApproval(plan(['too_many_sites', 'frozen']))).toEqual([
    { reason: 'frozen', detail: 'cold' },
  ]);
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
