import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Applier } from '../../../../gitops/appliers/contract.ts';
import { kvApplier } from '../../../../gitops/appliers/edge/kv.ts';
import { routeApplier } from '../../../../gitops/appliers/edge/route.ts';
import { edgeStore, namespaceTitle, PROFILES } from '../../../../gitops/appliers/edge/store.ts';
import { QuotaReachedError, RetryableError, TerminalError } from '../../../../gitops/base/errors.ts';
import { ensureNamespace } from '../../../../gitops/embedded/cloudflare/api/state.ts';
import type { LoadedManifest } from '../../../../gitops/manifest/containers.ts';
import { EMULATOR_SCRIPT } from '../../../support/cloudflare/emulator.ts';
import { refuseRoutes } from '../../../support/cloudflare/quota.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();
const identity = { instance: 'test', host: 'tag-1' };

describe('the edge at Cloudflare', () => {
  let world: CloudflareWorld;
  beforeEach(async () => {
    world = await cloudflareWorld();
  });
  afterEach(() => world.close());

  const kv = () => kvApplier({ ...world, identity, settings: { originPort: 443 } });
  const routeOptions = () => ({
    ...world,
    identity,
    zoneId: world.emulator.zone.id,
    scriptName: EMULATOR_SCRIPT,
    domain: 'example.net',
    mode: 'site' as 'auto' | 'site' | 'wildcard',
    limit: 1_000,
  });
  const wildcardRoutes = () => routeApplier({ ...routeOptions(), mode: 'wildcard' });
  const routes = async (): Promise<{ pattern: string }[]> =>
    (await world.emulator.call('GET', `/zones/${world.emulator.zone.id}/workers/routes`)).json.result;
  const sites = (count: number) =>
    Array.from({ length: count }, (_, number) =>
      loadedManifest(`shop-${String(number).padStart(3, '0')}`, number),
    );

  async function planOf<S, R>(applier: Applier<S, R>, ...manifests: LoadedManifest[]) {
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    return applier.plan(desired, await applier.observe(desired, signal));
  }
  async function converge<S, R>(applier: Applier<S, R>, ...manifests: LoadedManifest[]) {
    const { changes } = await planOf(applier, ...manifests);
    return Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
  }

  test('reads KV and routes of a thousand sites in one call for each page, the shared listing once', async () => {
    const all = sites(1000);
    const kvTarget = kv();
    await converge(kvTarget, ...all);
    world.faulty.calls.length = 0;
    const wildcard = wildcardRoutes();
    const [pairs] = await Promise.all([planOf(kvTarget, ...all), planOf(wildcard, ...all)]);
    expect(pairs.changes).toEqual([]);
    expect(world.faulty.calls.filter((call) => call.endsWith('/keys'))).toHaveLength(4);
    expect(world.faulty.calls).toHaveLength(5);
  });

  test('writes the documents of a hundred sites in one bulk call for each namespace', async () => {
    await converge(kv(), ...sites(100));
    expect(world.faulty.calls.filter((call) => call.startsWith('PUT'))).toHaveLength(4);
  });

  test('repeats only the keys that a bulk call did not accept', async () => {
    const left = ['shop-001.example.net', 'shop-002.example.net'];
    const sizes: number[] = [];
    world.faulty.plan(
      {
        kind: 'change',
        change: (body: { result: { successful_key_count: number } }) => {
          sizes.push(body.result.successful_key_count);
          return { ...body, result: { successful_key_count: 1, unsuccessful_keys: left } };
        },
      },
      (method, path) => method === 'PUT' && path.includes(world.emulator.namespaces.get('ROUTES')?.id ?? '-'),
      2,
    );
    const outcomes = await converge(kv(), ...sites(3));
    expect(outcomes.every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(sizes).toEqual([3, 2]);
  });

  test('fails only the key that no bulk call accepts', async () => {
    world.faulty.plan(
      {
        kind: 'change',
        change: (body: { result: object }) => ({
          ...body,
          result: { ...body.result, unsuccessful_keys: ['shop-001.example.net'] },
        }),
      },
      (method, path) => method === 'PUT' && path.includes(world.emulator.namespaces.get('ROUTES')?.id ?? '-'),
      Number.POSITIVE_INFINITY,
    );
    const applier = kv();
    const { changes } = await planOf(applier, ...sites(3));
    const outcomes = await Promise.allSettled(changes.map((change) => applier.apply(change, signal)));
    const failed = changes.filter((_, index) => outcomes[index]?.status === 'rejected');
    expect(failed.map(({ key }) => key)).toEqual(['ROUTES/shop-001.example.net']);
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: expect.any(RetryableError),
    });
  });

  test('deletes the profiles of a site’s visitors when the site is removed, and keeps them when it moves to another host', async () => {
    const { client, emulator, store } = world;
    const profiles = ensureNamespace(emulator.db, namespaceTitle(EMULATOR_SCRIPT, PROFILES)).id;
    const applier = kv();
    const site = loadedManifest('shop-000', 0);
    const kept = async () => (await client.kvKeys(profiles, signal)).map(({ name }) => name).toSorted();
    for (const ended of [false, true]) {
      await converge(applier, site);
      const pairs = ['shop-000:a', 'shop-000:b', 'shop-0001:a'].map((key) => ({
        key,
        value: '{}',
        metadata: {},
      }));
      await client.writeKv(profiles, pairs, signal);
      const { changes } = await planOf(applier);
      for (const change of changes) await applier.apply(ended ? { ...change, ended } : change, signal);
      expect(await kept()).toEqual(ended ? ['shop-0001:a'] : pairs.map(({ key }) => key).toSorted());
      expect(await store.keys('SITE_REGISTRY', signal)).toEqual([]);
    }
  });

  test('reports which namespace is missing', async () => {
    const store = edgeStore(world.client, 'another-edge');
    await expect(store.keys('ROUTES', signal)).rejects.toThrow(TerminalError);
    await expect(store.keys('ROUTES', signal)).rejects.toThrow('another-edge-ROUTES');
  });

  test('never repeats the creation of a route with unknown outcome, and finds it in the next observation', async () => {
    await converge(kv(), loadedManifest());
    const applier = routeApplier(routeOptions());
    world.faulty.plan(
      { kind: 'fail after' },
      (method, path) => method === 'POST' && path.endsWith('/routes'),
    );
    expect(await converge(applier, loadedManifest())).toMatchObject([{ reason: expect.any(RetryableError) }]);
    expect(await routes()).toHaveLength(1);
    expect((await planOf(applier, loadedManifest())).changes).toEqual([]);
  });

  test.each([
    ['without a routing entry of ours', EMULATOR_SCRIPT, false, 'no routing entry'],
    ['that leads to another worker', 'other-worker', true, 'the worker other-worker'],
  ])('treats a route %s as foreign', async (_name, script, withEntry, by) => {
    if (withEntry) await converge(kv(), loadedManifest());
    const { db, zone } = world.emulator;
    db.prepare('INSERT INTO routes (id, zone, pattern, script) VALUES (?, ?, ?, ?)').run(
      'f'.repeat(32),
      zone.id,
      'acme-shop.example.net/*',
      script,
    );
    const plan = await planOf(routeApplier(routeOptions()), loadedManifest());
    expect(plan.changes).toEqual([]);
    expect(plan.conflicts[0]?.detail).toContain(by);
    expect((await planOf(routeApplier(routeOptions()))).changes).toEqual([]);
  });

  const patterns = async () => (await routes()).map(({ pattern }) => pattern);
  const WILDCARD = '*.example.net/*';
  const plant = (route: { pattern: string; script?: string }) =>
    world.emulator.call('POST', `/zones/${world.emulator.zone.id}/workers/routes`, route);
  const writes = () => world.faulty.calls.filter((call) => !call.startsWith('GET'));

  describe('with one wildcard route for the zone', () => {
    test('is created by one call for all sites that need it, and kept when the last one is removed', async () => {
      const applier = wildcardRoutes();
      const { changes } = await planOf(applier, ...sites(3).toReversed());
      expect(changes.map(({ op, key }) => `${op} ${key}`)).toEqual(
        ['000', '001', '002'].map((number) => `create shop-${number}.example.net/*`),
      );
      expect((await converge(applier, ...sites(3))).map(({ status }) => status)).toEqual(
        Array(3).fill('fulfilled'),
      );
      expect(writes()).toHaveLength(1);
      expect(await patterns()).toEqual([WILDCARD]);
      expect(await planOf(applier, ...sites(3))).toEqual({ changes: [], conflicts: [] });
      expect(await planOf(applier)).toEqual({ changes: [], conflicts: [] });
    });

    test('is missed by every site where its creation fails, so that none is ready without it', async () => {
      world.faulty.plan({ kind: 'refuse', status: 500 }, (method) => method === 'POST', 1);
      const outcomes = await converge(wildcardRoutes(), ...sites(3));
      expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    });

    test('replaces the routes of single sites without a gap: it is there before the first of them is deleted', async () => {
      await converge(kv(), ...sites(2));
      await converge(routeApplier(routeOptions()), ...sites(2));
      const own = await patterns();
      const applier = wildcardRoutes();
      await converge(applier, ...sites(2));
      expect(await patterns()).toEqual([WILDCARD, ...own]);
      const { changes } = await planOf(applier, ...sites(2));
      // No repair of drift: the setting changed, nothing else.
      expect(changes.map(({ op, observed }) => [op, observed?.outdated])).toEqual(
        Array(2).fill(['update', true]),
      );
      await converge(applier, ...sites(2));
      expect(await patterns()).toEqual([WILDCARD]);
      expect(await planOf(applier, ...sites(2))).toEqual({ changes: [], conflicts: [] });
    });

    test('takes the place of a site’s own route in a zone that has no room for it', async () => {
      await converge(kv(), ...sites(3));
      await converge(routeApplier(routeOptions()), ...sites(3));
      refuseRoutes(world);
      const applier = routeApplier({ ...routeOptions(), mode: 'wildcard', limit: 3 });
      expect((await converge(applier, ...sites(3))).every(({ status }) => status === 'fulfilled')).toBe(true);
      expect(await patterns()).toEqual([WILDCARD, 'shop-001.example.net/*', 'shop-002.example.net/*']);
      await converge(applier, ...sites(3));
      expect(await patterns()).toEqual([WILDCARD]);
    });

    test('is given up without a gap: deleted once every site of every host has a route of its own', async () => {
      await converge(kv(), ...sites(2));
      await converge(wildcardRoutes(), ...sites(2));
      const applier = routeApplier(routeOptions());
      // A site of another host, which has no route of its own yet.
      const other = kvApplier({
        ...world,
        identity: { ...identity, host: 'tag-2' },
        settings: { originPort: 443 },
      });
      const elsewhere = loadedManifest('shop-900', 900);
      await converge(other, elsewhere);
      await converge(applier, ...sites(2));
      expect(await patterns()).toEqual([WILDCARD, 'shop-000.example.net/*', 'shop-001.example.net/*']);
      expect(await planOf(applier, ...sites(2))).toEqual({ changes: [], conflicts: [] });
      const second = routeApplier({ ...routeOptions(), identity: { ...identity, host: 'tag-2' } });
      await converge(second, elsewhere);
      await converge(applier, ...sites(2));
      expect(await patterns()).toEqual(['000', '001', '900'].map((number) => `shop-${number}.example.net/*`));
    });

    test.each([
      ['another worker’s wildcard', WILDCARD, ['shop-000', 'shop-001']],
      ['a bypass of one site’s host', 'shop-001.example.net/*', ['shop-001']],
    ])('reports %s to every site that it concerns', async (_what, pattern, concerned) => {
      await plant({ pattern });
      const { conflicts } = await planOf(wildcardRoutes(), ...sites(2));
      expect(conflicts.map(({ site }) => site)).toEqual(concerned);
    });

    test('names outside the domain keep a route of their own', async () => {
      const applier = routeApplier({ ...routeOptions(), mode: 'wildcard', domain: 'eu.example.net' });
      await converge(applier, ...sites(1));
      expect(await patterns()).toEqual(['shop-000.example.net/*']);
    });
  });

  test.each([
    ['by its code', 10_073, 1_000],
    ['by a refusal in a zone that is full as far as is known', 10_999, 0],
  ])('a zone without room for another route is recognised %s', async (_what, code, limit) => {
    refuseRoutes(world, code);
    await converge(kv(), ...sites(1));
    const outcomes = await converge(routeApplier({ ...routeOptions(), limit }), ...sites(1));
    expect(outcomes).toMatchObject([{ reason: expect.any(QuotaReachedError) }]);
  });

  test('another refusal in a zone with room is none of the quota', async () => {
    refuseRoutes(world, 10_999);
    await converge(kv(), ...sites(1));
    const [outcome] = await converge(routeApplier(routeOptions()), ...sites(1));
    expect(outcome).toMatchObject({ reason: expect.any(TerminalError) });
    expect(outcome).not.toMatchObject({ reason: expect.any(QuotaReachedError) });
  });

  describe('where the setting is auto', () => {
    const auto = () => routeApplier({ ...routeOptions(), mode: 'auto' });
    const record = (extra: object) =>
      world.emulator.call('POST', `/zones/${world.emulator.zone.id}/dns_records`, {
        type: 'A',
        name: 'www',
        content: '198.51.100.9',
        proxied: true,
        ...extra,
      });
    const one = 'shop-000.example.net/*';

    test.each<[string, () => Promise<unknown>, string]>([
      ['a new instance in an empty zone has one route', async () => undefined, WILDCARD],
      ['names of others that aren’t proxied don’t matter', () => record({ proxied: false }), WILDCARD],
      [
        'marks of this instance don’t matter',
        () => record({ comment: 'tgy1 test tag-2 x 01234567' }),
        WILDCARD,
      ],
      ['a proxied name of others: a route for each site', () => record({}), one],
      [
        'a proxied name of another instance: a route for each site',
        () => record({ comment: 'tgy1 other tag-1 x 01234567' }),
        one,
      ],
      ['a route of others: a route for each site', () => plant({ pattern: 'example.net/shop/*' }), one],
    ])('%s', async (_what, prepare, expected) => {
      await prepare();
      const applier = auto();
      await converge(kv(), ...sites(1));
      await converge(applier, ...sites(1));
      expect(await patterns()).toContain(expected);
      expect((await planOf(applier, ...sites(1))).changes).toEqual([]);
    });

    test.each([
      ['its routes for single sites', 'site', 'tag-1'],
      ['its routes for single sites, made by another host', 'site', 'tag-2'],
      ['its wildcard', 'wildcard', 'tag-1'],
    ] as const)('an existing instance keeps %s', async (_what, mode, host) => {
      const by = { ...identity, host };
      const documents = kvApplier({ ...world, identity: by, settings: { originPort: 443 } });
      await converge(documents, ...sites(1));
      await converge(routeApplier({ ...routeOptions(), identity: by, mode }), ...sites(1));
      if (mode === 'wildcard') await record({});
      const [, second] = sites(2);
      if (second === undefined) throw new Error('there is no second site');
      await converge(kv(), second);
      await converge(auto(), second);
      expect(await patterns()).toEqual(mode === 'wildcard' ? [WILDCARD] : [one, 'shop-001.example.net/*']);
    });
  });
});
