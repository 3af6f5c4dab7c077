import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { routeApplier } from '../../../gitops/appliers/edge/route.ts';
import { dnsZone } from '../../support/cloudflare/dns-zone.ts';
import { edgeZone } from '../../support/cloudflare/edge-zone.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../support/cloudflare/world.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

const NAME = 'wares.example.net';
const SITE_ROUTE = `${NAME}/*`;
const WILDCARD_ROUTE = '*.example.net/*';
const FOREIGN = { name: NAME, type: 'A', content: '203.0.113.7', proxied: true };
const { signal } = new AbortController();

describe.each([
  ['a route for each site', 'site', SITE_ROUTE],
  ['one route for all sites', 'wildcard', WILDCARD_ROUTE],
] as const)('with %s, a site whose name is taken', (_what, mode, route) => {
  let world: CloudflareWorld;
  let daemon: MemoryDaemon;
  const edge = edgeZone(() => world);
  const zone = dnsZone(() => world);
  beforeEach(async () => {
    world = await cloudflareWorld();
    daemon = await memoryDaemon({}, [
      edge.kv(),
      routeApplier({ ...edge.routeOptions(), mode }),
      zone.dns('site'),
    ]);
  });
  afterEach(async () => {
    await daemon.close();
    await world.close();
  });

  const keys = async (namespace: 'ROUTES' | 'SITE_REGISTRY') =>
    (await world.store.keys(namespace, signal)).map(({ name }) => name);
  const routes = async () => (await edge.routes()).map(({ pattern }) => pattern);
  const hideRecords = () =>
    world.faulty.plan(
      { kind: 'refuse', status: 500 },
      (method, path) => method === 'GET' && path.includes('/dns_records'),
      Number.POSITIVE_INFINITY,
    );
  const create = (extra: Parameters<MemoryDaemon['manifest']>[2] = {}) =>
    daemon.push('wares', daemon.manifest('wares', 1, extra));

  test.each([
    ['without a mark', FOREIGN],
    ['of another site of the instance', { ...FOREIGN, comment: 'tgy1 test tag-2 other 0011aabb' }],
    ['without a mark, at its origin', { ...FOREIGN, name: 'wares-origin.example.net', proxied: false }],
  ])('by a record %s is not served until the record is gone', async (_which, record) => {
    await zone.plant(record);
    await create();
    const { message } = (await daemon.reaches('wares', 'Conflict')) ?? {};
    expect(await keys('ROUTES')).toEqual([]);
    expect(await routes()).toEqual([]);
    expect(message).toContain(record.name);
    expect(message).toContain(`adopt: true. Not applied until then: ROUTES ${NAME}`);
    // The registry is written already: without route and routing entry, the edge doesn't find it.
    expect(await keys('SITE_REGISTRY')).toHaveLength(1);
    const plan = (await daemon.call('POST', '/plan', {})).body;
    expect(plan.changes.map(({ held }: { held: string[] }) => held)).toEqual([['conflict'], ['conflict']]);

    zone.forget(record.name.replace('.example.net', ''));
    await daemon.fullPass();
    await daemon.reaches('wares', 'Ready');
    expect(await keys('ROUTES')).toEqual([NAME]);
    expect(await routes()).toEqual([route]);
  });

  test('fails the operation that asks for it, before and after its other parts exist', async () => {
    await zone.plant(FOREIGN);
    const provision = async () =>
      (await daemon.call('POST', '/provision?wait=20', daemon.manifest('wares', 1))).body.operation;
    const refused = { status: 'failed', reason: expect.stringMatching(`^Conflict: .*${NAME}`) };
    // A retryable failure doesn't end the operation before the conflict does.
    const failures = [new RetryableError('the engine restarts')];
    daemon.control.fault = (target, at) =>
      target === 'containers' && at !== 'observe' ? failures.pop() : undefined;
    const first = await provision();
    expect(first).toMatchObject(refused);
    expect(first).not.toHaveProperty('fault');
    expect((await daemon.call('GET', `/operations/${first.id}`)).body).toEqual(first);
    expect(await provision()).toMatchObject(refused);
    // `applied` stays `null`, because a part of what the revision asks for isn't applied.
    expect(daemon.loop.status('wares')?.applied).toBeNull();
  });

  test('is not served while DNS can’t be observed', async () => {
    await zone.plant(FOREIGN);
    hideRecords();
    await create();
    await daemon.reaches('wares', 'ObserveFailed');
    await daemon.fullPass();
    expect(await keys('ROUTES')).toEqual([]);
    expect(await routes()).toEqual([]);
    expect(await keys('SITE_REGISTRY')).toHaveLength(1);
    const plan = (await daemon.call('POST', '/plan', {})).body;
    expect(plan.changes.map(({ held }: { held: string[] }) => held)).toEqual([
      ['unobserved'],
      ['unobserved'],
    ]);
    expect(daemon.loop.status('wares')?.resources.filter(({ target }) => target === 'dns')).toEqual(
      Array(3).fill(expect.objectContaining({ state: 'pending', hash: null })),
    );

    world.faulty.heal();
    await daemon.reaches('wares', 'Conflict');
    expect(await keys('ROUTES')).toEqual([]);
    zone.forget('wares');
    await daemon.fullPass();
    await daemon.reaches('wares', 'Ready');
    expect(await keys('ROUTES')).toEqual([NAME]);
    expect(await routes()).toEqual([route]);
  });

  test('is not served by the route of another site', async () => {
    await daemon.push('shop', daemon.manifest('shop', 2));
    await daemon.reaches('shop', 'Ready');
    await zone.plant(FOREIGN);
    await create();
    await daemon.reaches('wares', 'Conflict');
    expect(await keys('ROUTES')).toEqual(['shop.example.net']);
    expect(await routes()).toEqual([mode === 'site' ? 'shop.example.net/*' : WILDCARD_ROUTE]);
  });

  test('is still served if it ran before, also with a new manifest', async () => {
    await create();
    await daemon.reaches('wares', 'Ready');
    zone.forget('wares');
    await zone.plant(FOREIGN);
    await daemon.fullPass();
    await daemon.reaches('wares', 'Conflict');
    const marks = async () => (await world.store.keys('ROUTES', signal)).map(({ metadata }) => metadata);
    const before = await marks();
    const { hostnames } = daemon.manifest('wares', 1);
    await create({ hostnames: { ...hostnames, origin: 'wares-new.example.net' } });
    await eventually(async () => expect(await marks()).not.toEqual(before));
    await daemon.reaches('wares', 'Conflict');
    expect(await keys('ROUTES')).toEqual([NAME]);
    expect(await routes()).toEqual([route]);
  });

  test('is still served under its earlier name after its manifest has renamed it', async () => {
    const named = (edge: string) => ({ hostnames: { ...daemon.manifest('wares', 1).hostnames, edge } });
    await create(named('old.example.net'));
    await daemon.reaches('wares', 'Ready');
    await zone.plant(FOREIGN);
    await create(named(NAME));
    await daemon.reaches('wares', 'Conflict');
    expect(await keys('ROUTES')).toEqual(['old.example.net']);
    expect(await zone.records()).toContainEqual(expect.stringContaining('old.example.net AAAA'));
    expect(await routes()).toEqual([mode === 'site' ? 'old.example.net/*' : WILDCARD_ROUTE]);
    zone.forget('wares');
    await daemon.fullPass();
    await daemon.reaches('wares', 'Ready');
    expect(await keys('ROUTES')).toEqual([NAME]);
    expect(await routes()).toEqual([route]);
  });

  test('takes it over if its manifest says so', async () => {
    await zone.plant(FOREIGN);
    await create({ adopt: true });
    await daemon.reaches('wares', 'Ready');
    expect(await keys('ROUTES')).toEqual([NAME]);
    expect(await routes()).toEqual([route]);
  });

  test.each([
    ['is repaired', async () => undefined],
    ['is repaired after a restart', async () => await daemon.restart()],
  ])('by its own records only (ready before) %s while DNS can’t be observed', async (_what, meanwhile) => {
    await create();
    await daemon.reaches('wares', 'Ready');
    hideRecords();
    await meanwhile();
    await world.client.deleteKv(await world.store.id('ROUTES', signal), [NAME], signal);
    await daemon.fullPass();
    await eventually(async () => expect(await keys('ROUTES')).toEqual([NAME]));
  });

  test('by no record gets its records once DNS is observed, even if drift is only reported', async () => {
    await daemon.restart({ drift: { dns: 'warn' } });
    hideRecords();
    await create();
    await daemon.reaches('wares', 'ObserveFailed');
    world.faulty.heal();
    await daemon.reaches('wares', 'Ready');
    expect(await zone.records()).toHaveLength(3);
  });
});
