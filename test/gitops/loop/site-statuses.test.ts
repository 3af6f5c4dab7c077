import { beforeEach, describe, expect, test } from 'vitest';
import type { Target } from '../../../gitops/appliers/contract.ts';
import type { SiteOutcome } from '../../../gitops/loop/execute.ts';
import { SiteStatuses } from '../../../gitops/loop/site-statuses.ts';
import type { PassPlan } from '../../../gitops/pass/pass.ts';
import { change, desiredSite, desiredState, passPlan, resource } from '../../support/gitops/plans.ts';

const shop = desiredSite('shop');
let converged: Set<string>;
let statuses: SiteStatuses;
let fault: string | null;
let serving: { target: string; key: string }[];
beforeEach(() => {
  converged = new Set();
  fault = null;
  serving = [];
  const inventory = { convergedTo: (site: string) => (converged.has(site) ? shop : null) };
  statuses = new SiteStatuses('tag-1', [], { inventory, faultOf: () => fault, serving: () => serving });
});
const planAt = (revision: string, extra: Parameters<typeof passPlan>[1] = {}, sites = [shop]) =>
  passPlan(sites, { desired: desiredState(sites, { revision }), ...extra });
const settle = (plan: PassPlan, outcome: SiteOutcome | null = null, isApplied = true) =>
  statuses.settle(plan, 'shop', outcome, { isApplied, nextRetry: null });
const failed: SiteOutcome = {
  done: [],
  failures: [{ change: change('shop', 'a'), error: new Error('refused') }],
  unobserved: null,
  terminal: false,
};
const done: SiteOutcome = { ...failed, failures: [] };
const blocks = [{ reason: 'too_many_records', detail: 'too many', sites: ['shop'] }] as const;
const conflicts = [{ target: 'kv', site: 'shop', key: 'a', detail: 'foreign' }] as const;

describe('a settled site', () => {
  test('has the revision applied, and is ready', () => {
    expect(settle(planAt('r1'))).toMatchObject({
      status: { desired: 'r1', applied: 'r1', attempted: null, ready: true },
      obstacle: null,
      isConverged: true,
      changed: true,
    });
    expect(settle(planAt('r2'), done)).toMatchObject({
      status: { applied: 'r2', attempted: 'r2' },
      changed: false,
    });
  });

  test('keeps the last applied revision after a failure', () => {
    settle(planAt('r1'), done);
    expect(settle(planAt('r2'), failed, false)).toMatchObject({
      status: { desired: 'r2', applied: 'r1', attempted: 'r2', ready: false },
      isConverged: false,
      changed: true,
    });
  });

  test.each([
    ['an obstacle without a run', null, { bySite: { shop: { conflicts } } }, 'Conflict', null],
    ['an obstacle after a run', done, { bySite: { shop: { conflicts } } }, 'Conflict', null],
    ['a guard after a run', done, { bySite: { shop: { blocks } } }, 'Blocked', null],
    [
      'a missing certificate',
      done,
      { uncertified: new Map([['shop', 'pending']]) },
      'CertificatePending',
      null,
    ],
    [
      'a host that isolates nothing',
      done,
      { shortfall: () => ({ reason: 'NotIsolated' as const, message: 'no right' }) },
      'NotIsolated',
      null,
    ],
  ] as const)('isn’t converged with %s', (_what, outcome, extra, obstacle, applied) => {
    const settled = settle(planAt('r1', extra as Parameters<typeof planAt>[1]), outcome);
    expect(settled.isConverged).toBe(false);
    expect(settled.obstacle?.reason ?? null).toBe(obstacle);
    expect(settled.status.applied).toBe(applied);
  });
});

test('only a converged site is shown at the revision that was read last', () => {
  settle(planAt('r1'));
  statuses.setRevision('r2');
  expect(statuses.get('shop')).toMatchObject({ desired: 'r1', applied: 'r1' });
  converged.add('shop');
  expect(statuses.get('shop')).toMatchObject({ desired: 'r2', applied: 'r2' });
  expect(statuses.all()).toMatchObject([{ site: 'shop', applied: 'r2' }]);
});

test('a run shows the site as progressing or being removed, and keeps what is applied', () => {
  settle(planAt('r1'));
  statuses.started(planAt('r2'), 'shop', 3);
  expect(statuses.get('shop')).toMatchObject({
    desired: 'r2',
    attempted: 'r2',
    applied: 'r1',
    ready: false,
    reason: 'Progressing',
    message: '3 changes',
  });
  statuses.started(planAt('r3', {}, []), 'shop', 1);
  expect(statuses.get('shop')).toMatchObject({ reason: 'Removing', message: '1 change' });
  statuses.progress('shop', 1, ['', 'waits for a pod']);
  expect(statuses.get('shop')).toMatchObject({ message: '1 change; waits for a pod' });
});

describe('the time when DNS was removed', () => {
  const at = new Date('2026-01-01T00:00:00.000Z');
  beforeEach(() => statuses.dnsRemoved('shop', at));

  test('is kept while the site is being removed', () => {
    statuses.started(planAt('r1', {}, []), 'shop', 1);
    settle(planAt('r1', {}, []), failed, false);
    expect(statuses.dnsRemovedAt('shop')).toEqual(at);
  });

  test('is cleared when the removal ends', () => {
    settle(planAt('r1', {}, []), done);
    expect(statuses.dnsRemovedAt('shop')).toBeNull();
  });

  test('is cleared when the site is live again', () => {
    statuses.started(planAt('r1'), 'shop', 1);
    expect(statuses.dnsRemovedAt('shop')).toBeNull();
  });
});

test('the refusal of a manifest is kept behind every other reason, until another manifest is applied', () => {
  const stalled = { reason: 'InvalidManifest', message: 'shop.yaml: nmae: unknown key' } as const;
  const refusal = 'InvalidManifest: shop.yaml: nmae: unknown key';
  const refused = [desiredSite('shop', { stalled })];
  settle(planAt('r1'));
  settle(planAt('r2', {}, refused));
  expect(statuses.get('shop')).toMatchObject({ reason: 'InvalidManifest', refusal });
  settle(planAt('r2', {}, refused), failed, false);
  expect(statuses.get('shop')).toMatchObject({ reason: 'Retrying', refusal });
  statuses.started(planAt('r2', {}, refused), 'shop', 1);
  expect(statuses.get('shop')).toMatchObject({ reason: 'Progressing', refusal });
  fault = 'processing server 0 fails';
  expect(statuses.get('shop')).toMatchObject({ reason: 'Unhealthy', refusal });
  fault = null;
  statuses.started(planAt('r3'), 'shop', 1);
  expect(statuses.get('shop')?.refusal).toBeUndefined();
});

describe('while a container doesn’t serve, a site', () => {
  const failing = 'processing server 0 fails';
  const unhealthy = { ready: false, reason: 'Unhealthy', message: failing };

  test('is unhealthy, also during the repair, and well again after it', () => {
    settle(planAt('r1'));
    fault = failing;
    expect(statuses.get('shop')).toMatchObject(unhealthy);
    statuses.started(planAt('r1'), 'shop', 1);
    expect(statuses.all()).toMatchObject([unhealthy]);
    settle(planAt('r1'), done);
    fault = null;
    expect(statuses.get('shop')).toMatchObject({ ready: true, reason: 'Ready' });
  });

  test('also says what else is wrong', () => {
    fault = failing;
    settle(planAt('r1', { bySite: { shop: { conflicts } } }));
    expect(statuses.get('shop')).toMatchObject({
      ...unhealthy,
      message: `${failing}; Conflict: foreign`,
    });
  });

  test('keeps the reason of a step that fails, and says both', () => {
    settle(planAt('r1'));
    fault = failing;
    settle(planAt('r1'), failed, false);
    expect(statuses.get('shop')).toMatchObject({
      ...unhealthy,
      reason: 'Retrying',
      message: `kv a: refused; ${failing}`,
    });
  });

  test('keeps the reason that the engine can’t be observed, and says both', () => {
    settle(planAt('r1'));
    fault = failing;
    settle(planAt('r1', { unobserved: new Map([['containers', new Error('Docker did not answer')]]) }));
    expect(statuses.get('shop')).toMatchObject({
      ...unhealthy,
      reason: 'ObserveFailed',
      message: `containers: Docker did not answer; ${failing}`,
    });
  });

  describe('beside another one that serves,', () => {
    const all = [
      resource('shop', 'a', { target: 'containers' }),
      resource('shop', 'b', { target: 'containers' }),
      resource('shop', 'p', { target: 'proxy' }),
    ];
    const resources = () => all;
    const failing = (target: Target, key: string): SiteOutcome => ({
      ...done,
      failures: [{ change: change('shop', key, { target }), error: new Error('refused') }],
    });
    beforeEach(() => {
      serving = [{ target: 'containers', key: 'a' }];
    });

    test.each([
      ['a server is lost', () => settle(planAt('r1', { resources })), 'processing server 1 fails', true],
      [
        'a server can’t be started',
        () => settle(planAt('r1', { resources }), failing('containers', 'b'), false),
        null,
        true,
      ],
      [
        'the one that serves can’t be replaced',
        () => settle(planAt('r1', { resources }), failing('containers', 'a'), false),
        null,
        false,
      ],
      [
        'the proxy fails, too',
        () => settle(planAt('r1', { resources }), failing('proxy', 'p'), false),
        'processing server 1 fails',
        false,
      ],
      [
        'a name is in conflict, too',
        () => settle(planAt('r1', { resources, bySite: { shop: { conflicts } } })),
        'processing server 1 fails',
        false,
      ],
    ] as const)('while %s', (_what, settles, said, isPartial) => {
      settles();
      fault = said;
      expect(statuses.get('shop')?.partial).toBe(isPartial || undefined);
      expect(statuses.get('shop')).toMatchObject({ ready: false });
      serving = [];
      expect(statuses.get('shop')?.partial).toBeUndefined();
    });
  });

  test('that is being removed says only that', () => {
    settle(planAt('r1'));
    fault = failing;
    statuses.started(planAt('r2', {}, []), 'shop', 1);
    expect(statuses.get('shop')).toMatchObject({
      reason: 'Removing',
      message: '1 change',
    });
  });
});

test('a forgotten site has no status', () => {
  settle(planAt('r1'));
  statuses.forget('shop');
  expect([statuses.get('shop'), statuses.all(), [...statuses.sites()]]).toEqual([null, [], []]);
});
