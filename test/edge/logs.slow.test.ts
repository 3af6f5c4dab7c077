import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { dataPoint, type RequestRecord } from '../../edge/logs/request-record.ts';
import { type Stage, startStage } from '../support/edge/stage.ts';

const record = (fields: Partial<RequestRecord> = {}): RequestRecord => ({
  time: '2026-01-31T23:59:59.900Z',
  requestId: 'request-1',
  method: 'GET',
  route: '/c/:token.js',
  status: 200,
  duration: 3,
  site: 'shop',
  container: '3f0a6679-7425-40de-944b-e07fc1f90000',
  plugins: { server_proxy: 2 },
  cache: 'hit',
  colo: 'AMS',
  country: 'NL',
  signals: null,
  error: null,
  cause: null,
  bytesIn: 0,
  bytesOut: 1234,
  bot: false,
  consent: null,
  events: {},
  counters: {},
  webContainerVersion: '35',
  probe: false,
  ...fields,
});

/** The longest possible record. A request chooses the names of its events, within the edge's limits. */
const longest = record({
  requestId: crypto.randomUUID(),
  bytesIn: 99_999_999,
  bytesOut: 99_999_999,
  consent: 'analytics',
  events: Object.fromEntries([
    ...Array.from({ length: 20 }, (_, index) => [`${'e'.repeat(38)}${index + 10}`, 99_999]),
    ['other', 99_999],
  ]),
  signals: Object.fromEntries(
    Array.from({ length: 9 }, (_, index) => [`${'s'.repeat(12)}${index + 10}`, false]),
  ),
  plugins: Object.fromEntries(
    Array.from({ length: 12 }, (_, index) => [`plugin_of_some_name_${index}`, 999_999]),
  ),
  error: 'origin_not_allowed',
});

describe('a data point of Analytics Engine', () => {
  const octets = (texts: readonly string[]) => Buffer.byteLength(texts.join(''));

  test('has the record’s fields in a fixed order', () => {
    const given = record({
      signals: { adblock: true, id_capped: false },
      bytesIn: null,
      bot: true,
      consent: 'ads',
      events: { page_view: 2, other: 1 },
    });
    expect(dataPoint(given)).toEqual({
      indexes: ['shop'],
      blobs: [
        'GET',
        '/c/:token.js',
        '',
        'hit',
        'AMS',
        'NL',
        'request-1',
        'adblock',
        '3f0a6679-7425-40de-944b-e07fc1f90000',
        'server_proxy=2',
        '',
        'ads',
        'page_view=2,other=1',
        '35',
      ],
      doubles: [200, 3, -1, 1234, 1, 0, 3, 1, Date.parse('2026-01-31T23:59:59.900Z') / 1000],
    });
  });

  test.each([
    ['ASCII', 'x', 1],
    ['characters of two octets', 'é', 2],
    ['characters of three octets', '€', 3],
    ['characters of four octets', '😀', 4],
  ])('stays within 96 octets of index and 16 KB of blobs with texts of %s', (_, character, width) => {
    const text = character.repeat(20_000);
    const all = {
      site: text,
      method: text,
      route: text,
      error: text,
      cause: text,
      colo: text,
      country: text,
    };
    const { indexes, blobs, doubles } = dataPoint(
      record({
        ...all,
        requestId: text,
        container: text,
        signals: { [text]: true },
        plugins: { [text]: 1 },
        events: { [text]: 1 },
        webContainerVersion: text,
      }),
    );
    expect(indexes).toHaveLength(1);
    expect(octets(indexes)).toBe(96 - (96 % width));
    expect(octets(blobs)).toBeGreaterThan(12 * (1140 - width));
    expect(octets(blobs)).toBeLessThanOrEqual(16_000);
    expect([...indexes, ...blobs].every((part) => part.isWellFormed())).toBe(true);
    expect([blobs.length, doubles.length].every((count) => count <= 20)).toBe(true);
  });

  test('of the longest record is not truncated', () => {
    const { blobs } = dataPoint({ ...longest, signals: { ...longest.signals, adblock: true } });
    const pairs = (names: object, value: number) =>
      Object.keys(names)
        .map((name) => `${name}=${value}`)
        .join(',');
    expect(blobs).toContain(longest.requestId);
    expect(blobs).toContain(pairs(longest.plugins, 999_999));
    expect(blobs).toContain(pairs(longest.events, 99_999));
  });
});

describe('the raw logs', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await startStage();
  });
  afterAll(() => stage.close());
  afterEach(async () => {
    await stage.fault('RAW_LOG_QUEUE', null);
    await stage.fault('RAW_LOGS', null);
    await stage.seen();
  });

  const poll = { timeout: 25_000, interval: 100 };
  /** Those of `ids` that are archived, each as often as the archive has it. */
  const archived = async (ids: readonly string[]) =>
    Object.values(await stage.rawLogs())
      .flatMap((records) => records.map(({ requestId }) => requestId))
      .filter((id) => ids.includes(id))
      .toSorted();
  /** Sends `count` requests, and returns their ids. */
  async function ask(count: number): Promise<string[]> {
    const { host } = await stage.site();
    const answers = await Promise.all(Array.from({ length: count }, () => stage.send(host, '/healthy')));
    return answers.map(({ headers }) => String(headers['x-tagyard-request-id'])).toSorted();
  }

  test('have a single request within seconds, in the folder of its day', async () => {
    const ids = await ask(1);
    await expect.poll(() => archived(ids), poll).toEqual(ids);
    const [[key, records] = ['', []]] = Object.entries(await stage.rawLogs());
    const [only] = records;
    expect(key).toMatch(/^raw\/dt=\d{4}-\d\d-\d\d\/\d{4}-\d\d-\d\dT\d{6}\.\d{3}Z-[0-9a-f-]{36}\.ndjson$/);
    expect(key).toContain(`dt=${only?.time.slice(0, 10)}/${only?.time.replaceAll(':', '')}-`);
    expect(only).toMatchObject({
      route: '/healthy',
      status: 200,
      plugins: { server_proxy: expect.any(Number) },
      batch: expect.stringMatching(/^[0-9a-f-]{36}$/),
      index: 0,
    });
  });

  test('have each of many requests once, in few objects', async () => {
    const ids = await ask(230);
    await expect.poll(() => archived(ids), poll).toEqual(ids);
    const objects = Object.values(await stage.rawLogs()).map((records) =>
      records.filter(({ requestId }) => ids.includes(requestId)),
    );
    // No two records of a batch have the same index, and each batch is complete.
    const batches = Map.groupBy(objects.flat(), ({ batch }) => batch);
    for (const records of batches.values()) {
      expect(records.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([...records.keys()]);
    }
    const sizes = objects.map(({ length }) => length).filter((size) => size > 0);
    expect(Math.max(...sizes)).toBeGreaterThanOrEqual(50);
    expect(sizes.length).toBeLessThan(20);
  });

  test('lose nothing if the consumer fails three times', async () => {
    await stage.fault('RAW_LOGS', 'fail');
    const ids = await ask(3);
    const attempts: unknown[] = [];
    await expect
      .poll(async () => {
        const { events } = await stage.seen();
        attempts.push(
          ...events.filter(({ event }) => event === 'raw_log_retried').map(({ fields }) => fields.attempts),
        );
        return attempts;
      }, poll)
      .toContain(3);
    expect(await archived(ids)).toEqual([]);
    await stage.fault('RAW_LOGS', null);
    await expect.poll(() => archived(ids), poll).toEqual(ids);
  });

  test.each([
    [1, 1],
    [2, 2],
    [4, 8],
    [99, 300],
  ])('are delivered again after failure %d, %d s later', async (attempts, seconds) => {
    await stage.fault('RAW_LOGS', 'fail');
    expect(await stage.deliver({ id: 'refused', records: [record()] }, attempts)).toBe(seconds);
  });

  test('delivered twice are one object; records of two days are two objects', async () => {
    const batch = {
      id: 'twice',
      records: [
        record({ requestId: 'twice-1' }),
        record({ requestId: 'twice-2', time: '2026-02-01T00:00:00.000Z' }),
      ],
    };
    expect(await stage.deliver(batch)).toBeUndefined();
    expect(await stage.deliver(batch, 2)).toBeUndefined();
    const own = Object.entries(await stage.rawLogs()).filter(([key]) => key.includes('twice'));
    expect(own.map(([key, records]) => [key, records.map(({ requestId }) => requestId)])).toEqual([
      ['raw/dt=2026-01-31/2026-01-31T235959.900Z-twice.ndjson', ['twice-1']],
      ['raw/dt=2026-02-01/2026-02-01T000000.000Z-twice.ndjson', ['twice-2']],
    ]);
  });

  test('have one object for a delivery of many messages, however often it arrives', async () => {
    const batches = ['one', 'two', 'three'].map((id) => ({
      id: `many-${id}`,
      records: [record({ requestId: `delivery-${id}`, time: '2026-03-01T10:00:00.000Z' })],
    }));
    expect(await stage.deliver(batches)).toBeUndefined();
    expect(await stage.deliver(batches.toReversed(), 2)).toBeUndefined();
    const own = Object.entries(await stage.rawLogs()).filter(([key]) => key.includes('dt=2026-03-01'));
    expect(own.map(([, records]) => records.map(({ requestId }) => requestId).toSorted())).toEqual([
      ['delivery-one', 'delivery-three', 'delivery-two'],
    ]);
    await stage.fault('RAW_LOGS', 'fail');
    expect(await stage.deliver(batches, 4)).toBe(8);
  });

  test('wait in memory while the queue refuses them; pages are still served', async () => {
    await stage.fault('RAW_LOG_QUEUE', 'fail');
    const ids = await ask(60);
    const unsent = async () => (await stage.seen()).events.map(({ event }) => event);
    await expect.poll(unsent, poll).toContain('raw_log_unsent');
    await stage.fault('RAW_LOG_QUEUE', null);
    // The next request's batch is sent together with them.
    ids.push(...(await ask(1)));
    await expect.poll(() => archived(ids), poll).toEqual(ids.toSorted());
  });

  test('log the number of dropped records if the queue refuses more than the memory limit', async () => {
    await stage.fault('RAW_LOG_QUEUE', 'fail');
    let dropped = 0;
    const countDropped = async () => {
      const { events } = await stage.seen();
      for (const { fields } of events) dropped += Number(fields.dropped ?? 0);
    };
    const ids: string[] = [];
    for (let round = 0; dropped === 0; round += 1) {
      ids.push(...(await ask(500)));
      await countDropped();
      expect(round).toBeLessThan(5);
    }
    await stage.fault('RAW_LOG_QUEUE', null);
    // The next request's batch is sent together with those in memory.
    ids.push(...(await ask(1)));
    // Each record is in the archive or in the logged number, whatever the sizes of the dropped batches were.
    await expect
      .poll(async () => {
        await countDropped();
        return (await archived(ids)).length + dropped;
      }, poll)
      .toBe(ids.length);
    expect(dropped).toBeGreaterThan(0);
  });

  test('fit into a message of the queue in batches of fifty, even with the longest records', () => {
    const batch = { id: crypto.randomUUID(), records: Array.from({ length: 50 }, () => longest) };
    expect(Buffer.byteLength(JSON.stringify(batch))).toBeLessThan(128_000);
  });

  test('and all other logs have no cookie value, no full address and no query string', async () => {
    const site = await stage.site({ features: { cookie_restoration: true } });
    const secret = {
      headers: {
        cookie: '_fpid=0123456789abcdef0123456789abcdef; _ga=GA1.1.secretcookie.1; session=secretsession',
        'cf-connecting-ip': '203.0.113.77',
        'x-forwarded-for': '198.51.100.88',
        referer: 'https://shop.example/secretpage?email=a@secret.example',
        'user-agent': 'secret-agent',
      },
    };
    const page = 'https://www.shop.example/secretpage?email=a%40secret.example';
    const body = { cookies: { _ga: 'GA1.1.secretcookie.1', _evil: 'secretvalue' }, referrer: page };
    const query = '?tid=G-1&email=a%40secret.example';
    const ask = async () => {
      await stage.boot(site, body, secret.headers);
      await stage.boot(site, { ...body, url: page }, secret.headers);
      await stage.send(site.host, `/g/collect${query}`, secret);
      await stage.send(site.host, `/l/lt_secretsecretsecret.js${query}`, secret);
      await stage.send(site.host, `/c/${site.domains[0]?.token}.js${query}`, secret);
      await stage.send(site.host, `/secretpage${query}`, secret);
      await stage.send('unknown.test', `/secretpage${query}`, secret);
    };
    await ask();
    stage.upstream.reply = () => Promise.reject(new Error('down'));
    for (const store of ['COOKIES', 'EDGE_CONFIG'] as const) await stage.fault(store, 'fail');
    await stage.forward(120_000);
    await ask();
    for (const store of ['COOKIES', 'EDGE_CONFIG'] as const) await stage.fault(store, null);

    const { records, events } = await stage.seen();
    // The first request of `unknown.test` was answered by that host's own server, which makes no record.
    expect(records).toHaveLength(13);
    expect(events.map(({ event }) => event)).toContain('store_failed');
    const last = records.at(-1)?.requestId ?? '';
    await expect.poll(() => archived([last]), poll).toHaveLength(1);
    const everything = JSON.stringify([records, records.map(dataPoint), events, await stage.rawLogs()]);
    expect(everything).not.toMatch(
      /secret|0123456789abcdef0123456789abcdef|203\.0\.113|198\.51\.100|email|\?/i,
    );
  });
});
