import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import { kvApplier } from '../../../../gitops/appliers/edge/kv.ts';
import { routeApplier } from '../../../../gitops/appliers/edge/route.ts';
import { edgeStore, namespaceTitle, PROFILES } from '../../../../gitops/appliers/edge/store.ts';
import { ensureNamespace } from '../../../../sites/local/cloudflare/api/state.ts';
import { edgeZone } from '../../../support/cloudflare/edge-zone.ts';
import { EMULATOR_SCRIPT } from '../../../support/cloudflare/emulator.ts';
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

  const { kv, routeOptions, wildcardRoutes, routes, sites, planOf, converge } = edgeZone(() => world);

  test('reads KV and routes of a thousand sites in one call for each list, the routing entries once for both', async () => {
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

  test('waits before it writes a document whose last write is less than a second ago', async () => {
    const [first] = sites(1);
    if (first === undefined) throw new Error('there is no site');
    await converge(kv(), first);
    const applier = kvApplier({ ...world, identity, settings: { originPort: 8443 } });
    const before = world.clock.now();
    const outcomes = await converge(applier, first);
    expect(outcomes.map(({ status }) => status)).toContain('fulfilled');
    expect(outcomes.every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(world.clock.now() - before).toBeGreaterThanOrEqual(1000);
    expect((await planOf(applier, first)).changes).toEqual([]);
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

  test('never repeats the creation of a route if its outcome is unknown, and finds the route in the next observation', async () => {
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
});
