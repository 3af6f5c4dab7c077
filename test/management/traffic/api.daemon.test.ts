import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pruneTraffic } from '../../../management/traffic/retention.ts';
import { storeObjects } from '../../../management/traffic/store.ts';
import { creation, TRAFFIC, World } from '../../support/management/world.ts';
import { collectorParts } from '../../support/traffic/collector.ts';
import { batchOf, keyAt, ndjson, recordAt } from '../../support/traffic/records.ts';

let world: World;
let [clientA, clientB, shop, store] = ['', '', '', ''];

const HOUR = 3_600_000;
/** Noon of yesterday (UTC); `at` counts hours from it. So these times are past, and no test crosses midnight. */
const noon = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 12 * HOUR;
const at = (hours: number) => new Date(noon + hours * HOUR).toISOString();

async function addRecords(records: readonly Record<string, unknown>[]): Promise<void> {
  const days = Map.groupBy(records, ({ time }) => String(time).slice(0, 10));
  for (const own of days.values()) {
    const body = Buffer.from(ndjson(batchOf(own)));
    await storeObjects(world.db, [{ key: keyAt(String(own[0]?.time)), size: body.length, body }]);
  }
}

async function cover(since: string | null, until: string | null): Promise<void> {
  await sql`update traffic_state set since = ${since}::timestamptz`.execute(world.db);
  await sql`update traffic_leases set collected_until = ${until}::timestamptz`.execute(world.db);
}

const get = (path: string, as = 'viewer') => world.call('GET', path, { as });

beforeAll(async () => {
  world = await World.open({
    logLevel: 'silent',
    settings: { traffic: { ...TRAFFIC, softLimits: { requests: 8, events: null } } },
  });
  clientA = await world.client('Acme');
  ({ id: clientB } = (
    await world.call('POST', '/clients', {
      as: 'root',
      body: { name: 'Bolt', members: [{ subject: 'bob', role: 'owner' }] },
    })
  ).body);
  const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(clientA) });
  shop = made.body.id;
  const other = await world.call('POST', '/server-containers', {
    as: 'bob',
    body: creation(clientB, 'bolt.example'),
  });
  store = other.body.id;
  await addRecords([
    ...Array.from({ length: 8 }, (_, index) =>
      recordAt(at(0.5), { container: shop, duration: 10 * (index + 1), consent: index < 6 ? 'all' : 'none' }),
    ),
    recordAt(at(0.6), {
      container: shop,
      status: 502,
      error: 'upstream_failed',
      consent: null,
      country: null,
      bot: true,
    }),
    recordAt(at(0.7), {
      container: shop,
      signals: { adblock: true },
      cache: 'hit',
      webContainerVersion: '12',
    }),
    recordAt(at(0.8), { container: shop, probe: true }),
    recordAt(at(2.5), { container: store }),
    recordAt(at(2.5)),
  ]);
});
afterAll(() => world.close());

describe('traffic', () => {
  test('is missing as long as nothing was collected', async () => {
    const { body } = await get(`/server-containers/${shop}/traffic?from=${at(-2)}&to=${at(-1)}`);
    expect(body).toEqual({
      ...{ from: at(-2), to: at(-1), step: 3600 },
      points: [],
      missing: [{ from: at(-2), to: at(-1) }],
    });
  });

  test('has a point for each known step, zero where nothing came, and none where nothing is known', async () => {
    await cover(at(-1), at(3.5));
    const { status, body } = await get(`/server-containers/${shop}/traffic?from=${at(-3)}&to=${at(6)}`);
    expect(status).toBe(200);
    expect(
      body.points.map(({ time, requests }: { time: string; requests: number }) => [time, requests]),
    ).toEqual([
      ...[
        [at(-1), 0],
        [at(0), 10],
        [at(1), 0],
      ],
      ...[
        [at(2), 0],
        [at(3), 0],
      ],
    ]);
    expect(body.missing).toEqual([
      { from: at(-3), to: at(-1) },
      { from: at(3.5), to: at(6) },
    ]);
  });

  test('sums up what the records say', async () => {
    const { body } = await get(`/server-containers/${shop}/traffic?from=${at(0)}&to=${at(1)}`);
    const [{ latency, ...point }] = body.points;
    expect(point).toEqual({
      time: at(0),
      requests: 10,
      events: 20,
      routes: { '/g/collect': 10 },
      statuses: { '2xx': 9, '5xx': 1 },
      cache: { hit: 1 },
      ...{ blocked: 1, reports: 1, errors: 1, lostHits: 1, bots: 1 },
      consent: { all: 7, none: 2 },
      consentShare: 7 / 9,
      countries: { DE: 9 },
      ...{ bytesIn: 100, bytesOut: 1000 },
      webContainerVersions: { '12': 1 },
    });
    // The durations are 12, 12 and 10, 20 … 80 ms.
    expect(latency.p50 / 30).toBeCloseTo(1, 0);
    expect(Math.abs(latency.p99 / 80 - 1)).toBeLessThan(0.1);
  });

  test.each([
    [60, 0.6, 1],
    [3600, 0, 10],
    [86_400, -12, 10],
  ])('has points for steps of %i s', async (step, hour, requests) => {
    const { body } = await get(
      `/server-containers/${shop}/traffic?from=${at(hour)}&to=${at(hour + 0.01)}&step=${step}`,
    );
    expect(body.points).toMatchObject([{ time: at(hour), requests }]);
  });

  test('takes times of other zones, and shows probes only if asked', async () => {
    const from = new Date(noon + 2 * HOUR).toISOString().replace('.000Z', '+02:00');
    const path = `/server-containers/${shop}/traffic?from=${encodeURIComponent(from)}&to=${at(1)}`;
    expect((await get(path)).body.points).toMatchObject([{ time: at(0), requests: 10 }]);
    expect((await get(`${path}&probes=1`)).body.points).toMatchObject([{ time: at(0), requests: 11 }]);
  });

  test.each([
    ['from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', 'from must be before `to`'],
    [
      'from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&step=60',
      'from leads to more than 3000 points; choose a longer step',
    ],
  ])('refuses %s', async (query, detail) => {
    expect((await get(`/traffic?${query}`)).body).toMatchObject({ code: 'invalid_request', detail });
  });

  test('covers one client, or all that the caller may see', async () => {
    const query = `from=${at(0)}&to=${at(3)}`;
    const requests = async (path: string, as: string) => {
      const { status, body } = await get(`${path}?${query}`, as);
      return status === 200 ? body.points.map((one: { requests: number }) => one.requests) : body.code;
    };
    expect(await requests(`/clients/${clientA}/traffic`, 'viewer')).toEqual([10, 0, 0]);
    expect(await requests('/traffic', 'viewer')).toEqual([10, 0, 0]);
    expect(await requests('/traffic', 'bob')).toEqual([0, 0, 1]);
    expect(await requests('/traffic', 'stranger')).toEqual([0, 0, 0]);
    // Including requests for hostnames of no site.
    expect(await requests('/traffic', 'root')).toEqual([10, 0, 2]);
    expect(await requests(`/server-containers/${shop}/traffic`, 'root')).toEqual([10, 0, 0]);
    expect(await requests(`/server-containers/${shop}/traffic`, 'bob')).toBe('unknown_container');
    expect(await requests(`/clients/${clientA}/traffic`, 'bob')).toBe('unknown_client');
  });

  test('is missing, not zero, where the retention has removed the finer sums', async () => {
    const { settings, ...parts } = collectorParts(world.db, {} as never);
    const days = Math.max(1, Math.round((Date.now() - noon) / HOUR) - 2);
    await pruneTraffic({ ...parts, settings: { ...settings, traffic: { ...TRAFFIC, minuteHours: days } } });
    const path = `/server-containers/${shop}/traffic?from=${at(0)}&to=${at(3)}`;
    const { body } = await get(`${path}&step=60`);
    expect(body.missing[0].from).toBe(at(0));
    expect(body.points[0].time).toBe(body.missing[0].to);
    expect(body.points.every(({ requests }: { requests: number }) => requests === 0)).toBe(true);
    expect((await get(`${path}&step=3600`)).body.missing).toEqual([]);
  });
});

describe('usage', () => {
  const day = at(0).slice(0, 10);

  test('lists requests, events, octets, operations and list price of each container and day', async () => {
    const { status, body } = await get(`/usage?from=${day}&to=${day}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      items: [
        {
          ...{ day, from: at(-12), to: at(12), clientId: clientA, containerId: shop },
          ...{ requests: 10, events: 20, bytesIn: 100, bytesOut: 1000, warnings: ['requests'] },
          edgeOperations: { requests: 10, kvReads: 11, queueOperations: 20 },
        },
      ],
      next: null,
    });
    expect(body.items[0].listPrice).toBeGreaterThan(0);
    expect(body.missing).toEqual([
      { from: at(-12), to: at(-1) },
      { from: at(3.5), to: at(12) },
    ]);
  });

  test('is paged, can be limited to a client or container, and has only what a caller may see', async () => {
    const first = (await get(`/usage?from=${day}&to=${day}&limit=1`, 'root')).body;
    const second = (await get(`/usage?from=${day}&to=${day}&limit=1&cursor=${first.next}`, 'root')).body;
    const found = [...first.items, ...second.items].map(({ containerId }) => containerId);
    expect(new Set(found)).toEqual(new Set([shop, store]));
    expect(second.next).toBeNull();
    expect((await get(`/usage?client=${clientB}&from=${day}&to=${day}`, 'root')).body.items).toHaveLength(1);
    expect((await get(`/usage?client=${clientB}`)).body.code).toBe('unknown_client');
    expect((await get(`/usage?container=${store}`)).body.code).toBe('unknown_container');
    expect((await get('/usage', 'stranger')).body.items).toEqual([]);
  });

  test('counts by the days of a time zone', async () => {
    const list = async (timeZone: string) =>
      (await get(`/usage?container=${shop}&timeZone=${timeZone}`)).body;
    const auckland = await list('Pacific/Auckland');
    expect(auckland.items).toMatchObject([{ requests: 10 }]);
    // Noon UTC is past midnight there.
    expect(auckland.items[0].day).toBe(at(12).slice(0, 10));
    expect((await list('Mars/Olympus')).detail).toBe('timeZone can’t be used: there is no such time zone');
  });
});

describe('usage of zones whose days begin at any quarter of an hour of UTC', () => {
  let container: string;
  /** Days of an autumn in which clocks change: minutes of UTC, and the requests in them. */
  const minutes: [minute: string, requests: number][] = [
    ['2026-04-03T13:29', 1],
    ['2026-04-03T13:30', 2],
    ['2026-04-04T13:29', 4],
    ['2026-04-04T13:30', 8],
    // In Adelaide, the 5th and earlier days begin at 13:30 of UTC, the 6th and later ones at 14:30.
    ['2026-04-05T13:45', 16],
    ['2026-04-05T14:29', 32],
    ['2026-04-05T14:30', 64],
    ['2026-04-05T18:14', 128],
    ['2026-04-05T18:15', 256],
    ['2026-04-05T18:29', 512],
    ['2026-04-05T18:30', 1024],
  ];
  beforeAll(async () => {
    const body = creation(clientB, 'zones.example');
    container = (await world.call('POST', '/server-containers', { as: 'bob', body })).body.id;
    await sql`update traffic_state set notes_from = null`.execute(world.db);
    await addRecords(
      minutes.flatMap(([minute, count]) =>
        Array.from({ length: count }, () => recordAt(`${minute}:00.000Z`, { container })),
      ),
    );
    await cover('2026-04-01T00:00:00Z', '2026-04-10T00:00:00Z');
  });
  afterAll(() => cover(at(-1), at(3.5)));

  test.each([
    ['Australia/Adelaide', { '2026-04-03': 1, '2026-04-04': 6, '2026-04-05': 56, '2026-04-06': 1984 }],
    ['Asia/Kolkata', { '2026-04-03': 3, '2026-04-04': 12, '2026-04-05': 1008, '2026-04-06': 1024 }],
    ['Asia/Kathmandu', { '2026-04-03': 3, '2026-04-04': 12, '2026-04-05': 240, '2026-04-06': 1792 }],
    ['UTC', { '2026-04-03': 3, '2026-04-04': 12, '2026-04-05': 2032 }],
  ])('is exact in %s', async (timeZone, days) => {
    const path = `/usage?container=${container}&from=2026-04-02&to=2026-04-07&timeZone=${timeZone}`;
    const { body } = await get(path, 'bob');
    const requests = body.items.map((item: { day: string; requests: number }) => [item.day, item.requests]);
    expect(Object.fromEntries(requests)).toEqual(days);
    const events = body.items.map((item: { day: string; events: number }) => [item.day, item.events / 2]);
    expect(Object.fromEntries(events)).toEqual(days);
    expect(body.missing).toEqual([]);
  });

  test('is missing where an earlier release has kept no sums by quarter of an hour', async () => {
    await sql`update traffic_state set quarters_from = '2026-04-05T00:00:00Z'`.execute(world.db);
    const path = `/usage?container=${container}&from=2026-04-04&to=2026-04-05&timeZone=`;
    const missing = async (timeZone: string) => (await get(`${path}${timeZone}`, 'bob')).body.missing;
    expect(await missing('Asia/Kolkata')).toEqual([
      { from: '2026-04-03T18:30:00.000Z', to: '2026-04-05T00:00:00.000Z' },
    ]);
    expect(await missing('Europe/Berlin')).toEqual([]);
  });
});

describe('deletion', () => {
  test('is for owners only, and a dry run shows it', async () => {
    const path = `/server-containers/${shop}/traffic`;
    expect((await world.call('DELETE', path, { as: 'admin' })).body.code).toBe('forbidden');
    const plan = await world.call('DELETE', `${path}?dryRun=1`, { as: 'owner' });
    expect(plan.body).toEqual({ plan: { changes: [{ path: `traffic[${shop}]`, from: 'kept', to: null }] } });
    expect((await get(`${path}/deletions`)).body).toEqual({ deletions: [] });
    const done = await world.call('DELETE', `/clients/${clientA}/traffic`, { as: 'owner' });
    expect(done.status).toBe(202);
    expect(done.body.deletions).toMatchObject([{ container: shop, completedAt: null }]);
    expect((await get(`${path}/deletions`)).body).toEqual(done.body);
    const { body } = await get(`/traffic?from=${at(0)}&to=${at(3)}`, 'root');
    expect(body.points.map(({ requests }: { requests: number }) => requests)).toEqual([0, 0, 2]);
  });
});
