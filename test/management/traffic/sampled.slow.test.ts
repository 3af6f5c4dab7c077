import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ANALYTICS_DATASET, type EdgeHost, RAW_LOG_BUCKET, startEdgeHost } from '../../../edge/host.ts';
import { startUpstream, type Upstream } from '../../../edge/kit/upstream.ts';
import { dataPoint } from '../../../edge/logs/request-record.ts';
import { type ApiLimits, HOME_LIMITS } from '../../../gitops/embedded/cloudflare/api/limits.ts';
import { Points } from '../../../gitops/embedded/cloudflare/api/points.ts';
import { openState } from '../../../gitops/embedded/cloudflare/api/state.ts';
import { AnalyticsClient } from '../../../management/clients/analytics-client.ts';
import { openRawObjects } from '../../../management/raw-objects/open.ts';
import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';
import { Collector } from '../../../management/traffic/collector.ts';
import { trafficPoints } from '../../../management/traffic/points.ts';
import { storeObjects } from '../../../management/traffic/store.ts';
import { EMULATOR_TOKEN, startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';
import { eventually } from '../../support/eventually.ts';
import { creation, World } from '../../support/management/world.ts';
import { collectorParts } from '../../support/traffic/collector.ts';
import { batchOf, keyAt, ndjson, recordAt } from '../../support/traffic/records.ts';

const HOUR = 3_600_000;
const host = 'shop.tagyard.localhost';
const other = 'other.tagyard.localhost';
const noon = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 12 * HOUR;
const at = (hours: number) => new Date(noon + hours * HOUR).toISOString();

type Point = Record<string, unknown> & {
  readonly requests: number;
  readonly latency: Record<string, number>;
};

/** Expects equal sums. Latencies may differ by about a tenth, because the collector keeps them in buckets. */
function expectSame(sampled: readonly Point[], collected: readonly Point[]): void {
  const sums = (points: readonly Point[]) => points.map(({ latency: _, ...sum }) => sum);
  expect(sums(sampled)).toEqual(sums(collected));
  for (const [index, { latency }] of sampled.entries()) {
    for (const [name, value] of Object.entries(collected[index]?.latency ?? {})) {
      if (value === null) expect(latency[name]).toBeNull();
      else expect(Math.abs(Number(latency[name]) - value)).toBeLessThanOrEqual(0.5 + value / 10);
    }
  }
}

/** Cloudflare with Analytics Engine, and a client of it. */
async function cloudflareWith(limits: Partial<ApiLimits> = {}, buckets = {}) {
  const all = { ...HOME_LIMITS, ...limits };
  const db = openState(':memory:');
  const points = new Points(db, { now: () => new Date(), limits: all.sampling });
  const emulator = await startEmulator({ checked: false, limits: all, db, points, buckets });
  const client = (token = EMULATOR_TOKEN, dataset: string = ANALYTICS_DATASET) =>
    new AnalyticsClient({ url: emulator.url, token, dataset });
  return { points, emulator, client };
}

describe('the same requests by collector and by Analytics Engine', () => {
  let dir: string;
  let upstream: Upstream;
  let edge: EdgeHost;
  let cloudflare: Awaited<ReturnType<typeof cloudflareWith>>;
  let objects: RawObjects;
  let world: World;
  let [client, shop] = ['', ''];

  const send = (path: string, { at: name = host, body = '', probe = false } = {}) =>
    new Promise<void>((resolve, reject) => {
      const method = body === '' ? 'GET' : 'POST';
      const headers = { host: name, 'user-agent': probe ? 'Googlebot/2.1' : 'Mozilla/5.0 Chrome/140.0.0.0' };
      request({ host: '127.0.0.1', port: edge.url.port, path, method, headers }, (response) => {
        response.resume().on('end', resolve);
      })
        .on('error', reject)
        .end(body);
    });

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tagyard-sampled-'));
    upstream = await startUpstream();
    upstream.reply = async ({ url }) => ({ status: url.includes('bad') ? 502 : 200, body: 'ok' });
    const written: Parameters<NonNullable<Parameters<typeof startEdgeHost>[0]['onPoints']>>[0][number][] = [];
    edge = await startEdgeHost({
      port: 0,
      persistDir: dir,
      vars: { HOP_SECRET: 'the-hop-secret', CONFIG_TTL_SECONDS: '60' },
      egress: { host: '127.0.0.1', port: upstream.port },
      onPoints: (some) => {
        written.push(...some);
        cloudflare.points.write(some);
      },
    });
    cloudflare = await cloudflareWith({}, { [RAW_LOG_BUCKET]: edge.rawLogs });
    objects =
      openRawObjects({
        RAW_LOGS_BUCKET: RAW_LOG_BUCKET,
        RAW_LOGS_API_RATE: 1e6,
        RAW_LOGS_API_URL: cloudflare.emulator.url,
        RAW_LOGS_API_TOKEN: EMULATOR_TOKEN,
      }) ?? expect.unreachable();
    world = await World.open({ logLevel: 'silent', analytics: cloudflare.client() });
    client = await world.client('Acme');
    const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
    shop = made.body.id;
    const { body } = await world.call('GET', `/server-containers/${shop}`, { as: 'viewer' });
    const site = { version: 1, siteId: body.siteId ?? body.site, containerId: shop };
    const origin = 'https://origin.tagyard.localhost:8443';
    const elsewhere = { version: 1, siteId: 'other', containerId: randomUUID() };
    await edge.kv.ROUTES.put(host, JSON.stringify({ ...site, origin }));
    await edge.kv.ROUTES.put(other, JSON.stringify({ ...elsewhere, origin }));
    const registry = { ...site, domains: [], proxyPaths: [], consent: 'opt_out' };
    await edge.kv.SITE_REGISTRY.put(
      elsewhere.containerId,
      JSON.stringify({ ...elsewhere, domains: [], proxyPaths: [], consent: 'opt_out' }),
    );
    await edge.kv.SITE_REGISTRY.put(shop, JSON.stringify(registry));
    await edge.kv.LOADER_TOKEN_MAP.put(
      'lt_abcdefghijklmnop',
      JSON.stringify({ version: 1, containerId: shop }),
    );
    await edge.setRoutes(['*.tagyard.localhost/*']);

    for (let round = 0; round < 12; round += 1) {
      await Promise.all([
        send('/g/collect?v=2&gcs=G111&en=page_view', { body: 'en=scroll\r\nen=click' }),
        send('/g/collect?v=2&gcs=G100&en=purchase'),
        send('/g/collect?bad=1', { probe: round % 2 === 0 }),
        send('/l/lt_abcdefghijklmnop.js'),
        send('/l/lt_nothing.js'),
        send('/mark-session-detection', {
          body: JSON.stringify({
            loader: 'lt_abcdefghijklmnop',
            session: { id: 'e'.repeat(32) },
            signals: { adblock: round % 3 === 0 },
          }),
        }),
        send('/g/collect?v=2&en=login', { at: other }),
      ]);
    }
    await eventually(() => expect(written).toHaveLength(84));
    const collector = new Collector(collectorParts(world.db, objects));
    await eventually(async () => {
      await collector.collect();
      const found = await trafficPoints(world.db, 'all', range());
      expect(found.points.reduce((sum, { requests }) => sum + requests, 0)).toBe(84);
    });
  }, 60_000);
  afterAll(async () => {
    await world.close();
    await edge.close();
    await cloudflare.emulator.close();
    await upstream.close();
    await rm(dir, { recursive: true });
  });

  const range = () => {
    const to = new Date(Math.ceil(Date.now() / HOUR) * HOUR);
    return { from: new Date(to.getTime() - 2 * HOUR), to, step: 3_600, probes: false };
  };

  test.each(['all', 'the client', 'the container'])('have the same sums for %s', async (whose) => {
    const { from, to, ...rest } = range();
    const path =
      { all: '/traffic', 'the client': `/clients/${client}/traffic` }[whose] ??
      `/server-containers/${shop}/traffic`;
    const as = whose === 'all' ? 'root' : 'viewer';
    const { status, body } = await world.call(
      'GET',
      `${path}?from=${from.toISOString()}&to=${to.toISOString()}`,
      { as },
    );
    expect([status, body.sampled]).toEqual([200, false]);
    const scope = whose === 'all' ? ('all' as const) : { containers: sql`select ${shop}::uuid` };
    const collected = await trafficPoints(world.db, scope, { from, to, ...rest });
    expect(collected.sampled).toBe(false);
    const known = (points: readonly unknown[]) => (points as Point[]).filter(({ requests }) => requests > 0);
    expect(known(body.points).length).toBeGreaterThan(0);
    expectSame(known(body.points), known(collected.points));
    const [first] = known(body.points);
    expect(first).toMatchObject({ events: expect.any(Number), blocked: expect.any(Number) });
  });

  test('are in /traffic only for callers who may see their containers', async () => {
    const { body } = await world.call('GET', '/traffic', { as: 'stranger' });
    expect(body.points.filter(({ requests }: Point) => requests > 0)).toEqual([]);
  });

  test('are not in /traffic once their deletion was requested', async () => {
    await sql`insert into traffic_deletions (container, until, requested_by, requested_at)
      values (${shop}::uuid, now() + interval '1 hour', 'root', now())`.execute(world.db);
    const { body } = await world.call('GET', `/server-containers/${shop}/traffic`, { as: 'viewer' });
    expect(body.points.filter(({ requests }: Point) => requests > 0)).toEqual([]);
    await sql`delete from traffic_deletions`.execute(world.db);
  });
});

describe('traffic of Analytics Engine', () => {
  const container = randomUUID();
  const records = Array.from({ length: 4_000 }, (_, index) =>
    recordAt(at((index * 7) % 2), {
      requestId: `request-${index}`,
      container,
      duration: (index * 31) % 400,
      route: ['/g/collect', '/boot', '/l/:token.js'][index % 3],
      status: index % 10 === 0 ? 503 : 200,
      error: index % 10 === 0 ? 'upstream_failed' : null,
      cache: index % 3 === 2 ? 'hit' : null,
      consent: index % 4 === 0 ? 'none' : 'all',
      signals: index % 5 === 0 ? { adblock: index % 2 === 0 } : null,
      probe: index % 50 === 0,
    }),
  );
  const written = () =>
    records.map((record) => {
      const {
        indexes: [index = ''],
        blobs,
        doubles,
      } = dataPoint(record as never); // a whole record
      return { dataset: ANALYTICS_DATASET, time: Date.parse(String(record.time)), index, blobs, doubles };
    });
  let [exact, sampled] = [] as unknown as [TestEmulator, TestEmulator];
  const worlds: World[] = [];
  const query = `from=${at(-3)}&to=${at(3)}&step=3600`;

  beforeAll(async () => {
    const one = await cloudflareWith({ sampling: { points: 1e9, seconds: 5, rows: 1e9 } });
    const other = await cloudflareWith({ sampling: { points: 500, seconds: 5, rows: 1e9 } });
    one.points.write(written());
    other.points.write(written());
    exact = one.emulator;
    sampled = other.emulator;
    worlds.push(
      ...(await Promise.all(
        [one, other].map(({ client }) => World.open({ logLevel: 'silent', analytics: client() })),
      )),
    );
    const [world] = worlds;
    await storeObjects((world as World).db, [bodyOf(records)]);
  }, 60_000);
  afterAll(async () => {
    for (const world of worlds) await world.close();
    await exact.close();
    await sampled.close();
  });

  const bodyOf = (given: readonly Record<string, unknown>[]) => {
    const body = Buffer.from(ndjson(batchOf(given)));
    return { key: keyAt(String(given[0]?.time)), size: body.length, body };
  };

  test('agrees with the collector where nothing is sampled, with probes and without', async () => {
    const [world] = worlds as [World];
    for (const probes of [false, true]) {
      const { body } = await world.call('GET', `/traffic?${query}&probes=${probes ? 1 : 0}`, { as: 'root' });
      const given = { from: new Date(at(-3)), to: new Date(at(3)), step: 3_600, probes };
      const collected = await trafficPoints(world.db, 'all', given);
      expect(body.sampled).toBe(false);
      const known = (points: readonly unknown[]) =>
        (points as Point[]).filter(({ requests }) => requests > 0);
      expectSame(known(body.points), known(collected.points));
      expect(known(body.points)).toHaveLength(2);
    }
  });

  test('says from when on something is known', async () => {
    // `to` is tomorrow, so it is later than now whatever the time of day.
    const [world] = worlds as [World];
    const { body } = await world.call('GET', `/traffic?from=${at(-3)}&to=${at(37)}`, { as: 'root' });
    expect(body.missing).toEqual([
      { from: at(-3), to: at(0) },
      { from: expect.any(String), to: at(37) },
    ]);
    expect(Math.abs(Date.parse(body.missing[1].from) - Date.now())).toBeLessThan(60_000);
    expect(body.points[0].time).toBe(at(0));
  });

  test('says that it is sampled, and is near the truth', async () => {
    const [world, other] = worlds as [World, World];
    const { body: truth } = await world.call('GET', `/traffic?${query}`, { as: 'root' });
    const { body } = await other.call('GET', `/traffic?${query}`, { as: 'root' });
    expect(body.sampled).toBe(true);
    const sum = (points: readonly Point[], name = 'requests') =>
      points.reduce((all, point) => all + Number(point[name]), 0);
    const parts = ['requests', 'events', 'errors', 'reports', 'bytesOut'];
    for (const part of parts) {
      const [one, another] = [sum(truth.points, part), sum(body.points, part)];
      // Over 1,500 points stand for one to four requests each: 0.35 is five standard deviations of the smallest part.
      expect(Math.abs(another - one) / one, part).toBeLessThan(0.35);
    }
    expect(Math.abs(sum(body.points) - sum(truth.points)) / sum(truth.points)).toBeLessThan(0.15);
  });

  test.each([
    ['another token', { token: 'wrong' }, /refuses the token.*ANALYTICS_ENGINE_API_TOKEN/],
    ['another account', { accountId: '0'.repeat(32) }, /refuses the token.*ANALYTICS_ENGINE_ACCOUNT_ID/],
    ['a closed port', { url: 'http://127.0.0.1:9' }, /doesn’t answer/],
  ])('with %s says what to do', async (_, settings, message) => {
    const given = { url: exact.url, token: EMULATOR_TOKEN, dataset: ANALYTICS_DATASET };
    const client = new AnalyticsClient({ ...given, ...settings });
    await expect(client.query('SHOW TABLES')).rejects.toThrow(message);
  });

  test('beyond Cloudflare’s limit of calls says when to ask again', async () => {
    const { emulator, client } = await cloudflareWith({ calls: { calls: 2, seconds: 300 } });
    const world = await World.open({ logLevel: 'silent', analytics: client() });
    try {
      expect((await world.call('GET', '/traffic', { as: 'root' })).status).toBe(200);
      const { status, body, headers } = await world.call('GET', '/traffic', { as: 'root' });
      expect([status, body.code, headers['retry-after']]).toEqual([503, 'traffic_unavailable', '300']);
      expect(body.detail).toContain('no more calls now');
    } finally {
      await world.close();
      await emulator.close();
    }
  });

  test('with a refused query names the reason', async () => {
    const client = new AnalyticsClient({ url: exact.url, token: EMULATOR_TOKEN, dataset: ANALYTICS_DATASET });
    await expect(client.query('SELECT nullif(1, 0) AS x')).rejects.toThrow(
      '422: Input was invalid: unsupported function: nullif',
    );
  });
});
