import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { QuotaReachedError, RetryableError, TerminalError } from '../../../../base/errors.ts';
import { kvApplier } from '../../../../gitops/appliers/edge/kv.ts';
import { routeApplier } from '../../../../gitops/appliers/edge/route.ts';
import { edgeZone } from '../../../support/cloudflare/edge-zone.ts';
import { refuseRoutes } from '../../../support/cloudflare/quota.ts';
import { type CloudflareWorld, cloudflareWorld } from '../../../support/cloudflare/world.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();
const identity = { instance: 'test', host: 'tag-1' };

describe('Workers routes (docs/facts.md, Cloudflare Workers)', () => {
  let world: CloudflareWorld;
  beforeEach(async () => {
    world = await cloudflareWorld();
  });
  afterEach(() => world.close());

  const { kv, routeOptions, wildcardRoutes, routes, sites, planOf, converge } = edgeZone(() => world);

  const patterns = async () => (await routes()).map(({ pattern }) => pattern);
  const WILDCARD = '*.example.net/*';
  const plant = (route: { pattern: string; script?: string }) =>
    world.emulator.call('POST', `/zones/${world.emulator.zone.id}/workers/routes`, route);
  const writes = () => world.faulty.calls.filter((call) => !call.startsWith('GET'));

  describe('one wildcard route for the zone', () => {
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

    test('fails for every site that needs it if its creation fails, so that none is ready without it', async () => {
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

    test('that vanishes before the sites’ own routes are deleted stops their deletion', async () => {
      await converge(kv(), ...sites(2));
      await converge(routeApplier(routeOptions()), ...sites(2));
      const own = await patterns();
      const applier = wildcardRoutes();
      await converge(applier, ...sites(2));
      const { changes } = await planOf(applier, ...sites(2));
      world.emulator.db.prepare('DELETE FROM routes WHERE pattern = ?').run(WILDCARD);
      await planOf(applier, ...sites(2));
      for (const change of changes) {
        await expect(applier.apply(change, signal)).rejects.toThrow(RetryableError);
      }
      expect(await patterns()).toEqual(own);
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
      ['a bypass of all hosts', WILDCARD, ['shop-000', 'shop-001']],
      ['a bypass of one site’s host', 'shop-001.example.net/*', ['shop-001']],
    ])('conflicts with %s, for every site that it concerns', async (_what, pattern, concerned) => {
      await plant({ pattern });
      const { conflicts } = await planOf(wildcardRoutes(), ...sites(2));
      expect(conflicts.map(({ site }) => site)).toEqual(concerned);
    });

    test('doesn’t cover names outside the domain: they keep a route of their own', async () => {
      const applier = routeApplier({ ...routeOptions(), mode: 'wildcard', domain: 'eu.example.net' });
      await converge(applier, ...sites(1));
      expect(await patterns()).toEqual(['shop-000.example.net/*']);
    });
  });

  test.each([
    ['by its code', 10_073, 1_000],
    ['by any refusal in a zone whose known limit is reached', 10_999, 0],
  ])('a zone without room for another route is recognised %s', async (_what, code, limit) => {
    refuseRoutes(world, code);
    await converge(kv(), ...sites(1));
    const outcomes = await converge(routeApplier({ ...routeOptions(), limit }), ...sites(1));
    expect(outcomes).toMatchObject([{ reason: expect.any(QuotaReachedError) }]);
  });

  test.each([
    [
      'the other mode where the wildcard covers the site',
      'site',
      'example.net',
      /\. Set EDGE_ROUTE_MODE=wildcard /,
    ],
    ['no mode where the wildcard covers no site', 'site', 'eu.example.net', /\. Delete routes, or [^_]*$/],
    ['no mode where the wildcard is in use', 'wildcard', 'example.net', /\. Delete routes, or [^_]*$/],
    ['no mode for a site outside the wildcard', 'wildcard', 'eu.example.net', /\. Delete routes, or [^_]*$/],
  ] as const)('the error for a zone without room names %s', async (_what, mode, domain, remedy) => {
    refuseRoutes(world, 10_073);
    await converge(kv(), ...sites(1));
    const outcomes = await converge(routeApplier({ ...routeOptions(), mode, domain }), ...sites(1));
    const message = expect.stringMatching(remedy);
    expect(outcomes).toMatchObject([{ reason: { name: 'QuotaReachedError', message } }]);
  });

  test('another refusal in a zone with room does not count as a reached quota', async () => {
    refuseRoutes(world, 10_999);
    await converge(kv(), ...sites(1));
    const [outcome] = await converge(routeApplier(routeOptions()), ...sites(1));
    expect(outcome).toMatchObject({ reason: expect.any(TerminalError) });
    expect(outcome).not.toMatchObject({ reason: expect.any(QuotaReachedError) });
  });

  describe('where the setting is auto', () => {
    const warnings: string[] = [];
    const warn = (message: string) => {
      warnings.push(message);
    };
    const auto = () => routeApplier({ ...routeOptions(), mode: 'auto', warn });
    const isRecords = (_method: string, path: string) => path.endsWith('/dns_records');
    const refusal = (status: number, code: number) => ({
      kind: 'refuse' as const,
      status,
      body: JSON.stringify({ success: false, errors: [{ code, message: 'no' }], messages: [], result: null }),
    });
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

    test('a token that may not read DNS records: a route for each site, and one line for the operator', async () => {
      warnings.length = 0;
      world.faulty.plan(refusal(403, 10_000), isRecords, Number.POSITIVE_INFINITY);
      const applier = auto();
      await converge(kv(), ...sites(1));
      await planOf(applier, ...sites(1));
      await converge(applier, ...sites(1));
      expect(await patterns()).toEqual([one]);
      expect(warnings).toEqual([expect.stringContaining('set EDGE_ROUTE_MODE')]);
    });

    test.each([
      ['refuses the listing for another reason', refusal(400, 7_003)],
      ['fails', { kind: 'refuse' as const, status: 502 }],
    ])('nothing is decided where Cloudflare %s', async (_what, fault) => {
      world.faulty.plan(fault, isRecords);
      await expect(planOf(auto(), ...sites(1))).rejects.toThrow('Cloudflare dns');
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
