import { describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import type { Change } from '../../../gitops/appliers/contract.ts';
import {
  conditionAfterRun,
  isHostFault,
  obstacle,
  resourceStatuses,
} from '../../../gitops/loop/conditions.ts';
import type { SiteOutcome } from '../../../gitops/loop/execute.ts';
import type { SitePlan } from '../../../gitops/pass/pass.ts';
import { change, desiredSite, passPlan, resource } from '../../support/gitops/plans.ts';
import { loadedManifest } from '../../support/manifest.ts';

const shop = desiredSite('shop');
const tombstone = desiredSite('shop', { manifest: loadedManifest('shop', 0, { state: 'absent' }) });
const suspended = desiredSite('shop', { manifest: loadedManifest('shop', 0, { suspend: true }) });
const stalled = desiredSite('shop', { stalled: { reason: 'InvalidManifest', message: 'shop.yaml:1: bad' } });
const block = (reason: SitePlan['blocks'][number]['reason']) => ({ reason, detail: 'why', sites: ['shop'] });
const conflict = { target: 'kv', site: 'shop', key: 'a', detail: 'a is foreign' } as const;
const taken = { target: 'dns', detail: 'b is foreign', ofName: true } as const;
const waiting = change('shop', 'a');
const unobserved = new Map([['dns', new Error('500')]] as const);
const uncertified = new Map([['shop', 'm.shop.example: pending_dns']]);
const drifted = (why: 'warn' | 'repair_loop') => ({ change: change('shop', 'a'), why });

describe('a site', () => {
  test.each<[string, Parameters<typeof passPlan>, string | null, RegExp]>([
    ['with nothing to do', [[shop]], null, /^$/],
    [
      'with an invalid manifest',
      [[stalled], { bySite: { shop: { conflicts: [conflict] } } }],
      'InvalidManifest',
      /:1: bad$/,
    ],
    [
      'with a conflict',
      [[shop], { bySite: { shop: { conflicts: [conflict], blocks: [block('frozen')] } } }],
      'Conflict',
      /^a is foreign$/,
    ],
    [
      'whose name is taken',
      [
        [shop],
        {
          bySite: { shop: { changes: [waiting], conflicts: [conflict, { ...conflict, ...taken }] } },
          held: new Map([[waiting, ['conflict']]]),
        },
      ],
      'Conflict',
      /^b is foreign\. Remove it, .* by adopt: true\. Not applied until then: create a$/,
    ],
    ['of a frozen host', [[shop], { bySite: { shop: { blocks: [block('frozen')] } } }], 'Frozen', /^why$/],
    [
      'that waits for an approval',
      [[shop], { bySite: { shop: { blocks: [block('too_many_records')] } } }],
      'Blocked',
      /^why; to approve: tagyard approve c0ffee$/,
    ],
    [
      'with a block that no approval lifts',
      [[shop], { bySite: { shop: { blocks: [block('site_protected')] } } }],
      'Blocked',
      /^why$/,
    ],
    [
      'that is live on an upsert_only host',
      [[shop], { bySite: { shop: { blocks: [block('upsert_only')] } } }],
      null,
      /^$/,
    ],
    [
      'whose removal upsert_only blocks',
      [[], { bySite: { shop: { blocks: [block('upsert_only')] } } }],
      'Blocked',
      /^why$/,
    ],
    [
      'whose tombstone upsert_only blocks',
      [[tombstone], { bySite: { shop: { blocks: [block('upsert_only')] } } }],
      'Blocked',
      /^why$/,
    ],
    [
      'that is suspended',
      [[suspended], { bySite: { shop: { changes: [change('shop', 'a')] } } }],
      'Suspended',
      /^1 change is pending: create a$/,
    ],
    ['that is suspended without changes', [[suspended]], null, /^$/],
    [
      'with drift to report',
      [[shop], { bySite: { shop: { unrepaired: [drifted('warn')] } } }],
      'Drifted',
      /not repaired: kv a$/,
    ],
    [
      'in a repair loop',
      [[shop], { bySite: { shop: { unrepaired: [drifted('repair_loop')] } } }],
      'RepairLoop',
      /paused: kv a$/,
    ],
    ['whose DNS can’t be observed', [[shop], { unobserved, uncertified }], 'ObserveFailed', /^dns: 500$/],
    ['without a certificate', [[shop], { uncertified }], 'CertificatePending', /pending_dns$/],
  ])('%s has the obstacle $2', (_what, args, reason, message) => {
    const found = obstacle(passPlan(...args), 'shop');
    expect(found?.reason ?? null).toBe(reason);
    expect(found?.message ?? '').toMatch(message);
  });

  test.each([
    ['state_lost', { bySite: { shop: { blocks: [block('state_lost')] } } }],
    ['ObserveFailed', { unobserved }],
    ['CertificatePending', { uncertified }],
  ])('needs no action after %s', (_what, extra) => {
    expect(obstacle(passPlan([shop], extra), 'shop')).toMatchObject({ transient: true });
  });
});

const outcome = (extra: Partial<SiteOutcome> = {}): SiteOutcome => ({
  done: [],
  failures: [],
  unobserved: null,
  terminal: false,
  ...extra,
});
const failures = [{ change: change('shop', 'a'), error: new Error('refused') }];

describe('the condition after a run', () => {
  test.each([
    ['without a failure', [shop], outcome(), { ready: true, reason: 'Ready', message: '' }],
    ['that was not needed', [shop], null, { ready: true, reason: 'Ready', message: '' }],
    ['of a tombstone', [tombstone], outcome(), { ready: true, reason: 'Removed', message: '' }],
    ['of a site without a file', [], outcome(), { ready: true, reason: 'Removed', message: '' }],
    [
      'with a failure',
      [stalled],
      outcome({ failures }),
      { ready: false, reason: 'Retrying', message: 'kv a: refused' },
    ],
    [
      'with a terminal failure',
      [shop],
      outcome({ failures, terminal: true }),
      { ready: false, reason: 'Failed', message: 'kv a: refused' },
    ],
    [
      'with an obstacle',
      [stalled],
      outcome(),
      { ready: false, reason: 'InvalidManifest', message: 'shop.yaml:1: bad' },
    ],
  ])('%s is $3', (_what, sites, result, expected) => {
    expect(conditionAfterRun(passPlan(sites), 'shop', result)).toEqual(expected);
  });
});

test('each resource has its state, and a failed one its error and next retry', () => {
  const keys = ['applied', 'done', 'pending', 'failed', 'conflict', 'drifted'];
  const plan = passPlan([shop], {
    resources: () => keys.map((key) => resource('shop', key)),
    bySite: {
      shop: {
        changes: ['done', 'pending', 'failed'].map((key) => change('shop', key)),
        conflicts: [{ ...conflict, key: 'conflict' }],
        unrepaired: [{ change: change('shop', 'drifted'), why: 'warn' }],
      },
    },
  });
  const failed = [{ change: change('shop', 'failed'), error: new Error('refused') }];
  const statuses = (nextRetry: string | null) =>
    resourceStatuses(plan, 'shop', outcome({ done: [change('shop', 'done')], failures: failed }), {
      nextRetry,
      before: [],
    });
  const hashes = [
    ['applied', 'h1'],
    ['applied', 'h1'],
    ['pending', null],
    ['failed', null],
    ['conflict', null],
    ['drifted', 'h1'],
  ];
  expect(statuses('soon').map(({ state, hash }) => [state, hash])).toEqual(hashes);
  expect(statuses('soon')[3]).toMatchObject({ lastError: 'refused', nextRetry: 'soon' });
  expect(statuses(null)[3]).not.toHaveProperty('nextRetry');
  expect(statuses('soon')[2]).not.toHaveProperty('nextRetry');
});

test('a resource that couldn’t be observed keeps its status, but is pending if its content is new', () => {
  const before = [
    { target: 'dns', key: 'same', state: 'applied', hash: 'h1' },
    { target: 'dns', key: 'other', state: 'applied', hash: 'h0' },
    { target: 'dns', key: 'taken', state: 'conflict', hash: null },
  ] as const;
  const keys = ['same', 'other', 'taken', 'new'];
  const resources = () => keys.map((key) => resource('shop', key, { target: 'dns' }));
  const plan = passPlan([shop], { unobserved, resources });
  const statuses = resourceStatuses(plan, 'shop', null, { nextRetry: null, before });
  expect(statuses.map(({ state, hash }) => [state, hash])).toEqual([
    ['applied', 'h1'],
    ['pending', null],
    ['conflict', null],
    ['pending', null],
  ]);
});

test('a resource is missing until it is created, not while it is updated', () => {
  const bySite = (op: Change['op']) => ({
    shop: { changes: ['done', 'pending', 'failed'].map((key) => change('shop', key, { op })) },
  });
  const failures = [{ change: change('shop', 'failed'), error: new Error('refused') }];
  const result = outcome({ done: [change('shop', 'done')], failures });
  const missing = (op: Change['op']) => {
    const resources = () => ['applied', 'done', 'pending', 'failed'].map((key) => resource('shop', key));
    const statuses = resourceStatuses(passPlan([shop], { resources, bySite: bySite(op) }), 'shop', result, {
      nextRetry: null,
      before: [],
    });
    return statuses.filter((one) => one.missing).map(({ key }) => key);
  };
  expect(missing('create')).toEqual(['pending', 'failed']);
  expect(missing('update')).toEqual([]);
});

describe('a failure', () => {
  const of = (...errors: Error[]) => errors.map((error) => ({ error }));
  const own = new TerminalError('exit code 1', { isOfSite: true });

  test.each([
    ['of a target', null, of(new TerminalError('the token is invalid'), new RetryableError('500')), true],
    ['of an unexpected kind', null, of(new Error('EACCES')), true],
    ['of the site', null, of(own), false],
    ['of both', null, of(new RetryableError('500'), own), false],
    ['by a freeze', { reason: 'Frozen', message: 'why' }, [], true],
    ['by a wrong age identity', { reason: 'UndecryptableConfig', message: 'why' }, [], true],
    ['by a firewall that the host can’t change', { reason: 'NotIsolated', message: 'why' }, [], true],
    ['by a suspension', { reason: 'Suspended', message: 'why' }, [], true],
    ['by paused repairs', { reason: 'RepairLoop', message: 'why' }, [], true],
    ['by a missing certificate', { reason: 'CertificatePending', message: 'why' }, [], true],
    ['by an invalid manifest', { reason: 'InvalidManifest', message: 'why' }, [], false],
    ['by a taken name', { reason: 'NameTaken', message: 'why' }, [], false],
    ['by a foreign object', { reason: 'Conflict', message: 'why' }, [], false],
    ['with neither an error nor an obstacle', null, [], false],
  ] as const)('%s is the host’s fault: $3', (_what, found, failures, expected) => {
    expect(isHostFault(found, failures)).toBe(expected);
  });
});
