import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../support/instance.ts';
import { api, at, ok } from '../support/management/api.ts';
import { type DatabaseUrls, PostgresqlFixture } from '../support/management/postgresql.ts';
import { signal } from '../support/signal.ts';
import { type RawRecord, trafficOf } from '../support/traffic/instance.ts';
import { SECRETS, secretsIn, strangerRequests } from '../support/traffic/stranger.ts';

/** The most records of a batch (edge/logs/raw-log.ts): what an isolate holds before it sends them. */
const BATCH = 50;
const WORKERS = 6;
const LONG = { timeoutMs: 60_000, intervalMs: 200 };

describeWith('postgresql', 'the sums of a whole instance under load', () => {
  const home = temporaryHome();
  let postgresql: PostgresqlFixture;
  let urls: DatabaseUrls;
  let instance: Instance;
  let traffic: ReturnType<typeof trafficOf>;
  let host: string;
  let [loader, token] = ['', ''];
  let call: ReturnType<typeof api>;
  /** Ids of all requests that the edge answered, in the order of its answers. */
  const answered: string[] = [];

  beforeAll(async () => {
    postgresql = await PostgresqlFixture.start();
    urls = await postgresql.database();
    instance = await start();
    traffic = trafficOf(home.path, instance);
    call = api(instance.run);
    const demo = await ok(call.management.GET('/server-containers/{id}', at(instance.run.demo.container)));
    host = demo.body.hostnames.edge;
    loader = demo.body.loaderToken;
    token = demo.body.domains[0]?.containerToken ?? '';
    await eventually(async () => expect(await hit()).toBe(200), LONG);
  });
  afterAll(async () => {
    await instance?.stop();
    await postgresql?.stop();
    home[Symbol.dispose]();
  });

  const start = () =>
    startInstance(home.path, {
      TAGYARD_PROXY: 'embedded',
      TAGYARD_CONTAINERS: 'process',
      DATABASE_URL: urls.owner,
      LOG_LEVEL: 'trace',
    });
  /** Kills the whole instance, also its thread with the emulated Cloudflare. Starts it again at the same addresses. */
  async function killInstance(): Promise<void> {
    const before = instance.run;
    signal(before.pid, 'SIGKILL', home.path);
    instance = await start();
    expect(instance.run).toMatchObject({ edge: before.edge, cloudflare: before.cloudflare });
  }

  /** One request with an event. Its id counts as answered whatever the answer is. */
  async function hit(): Promise<number> {
    const { status, headers } = await call.edge(host, 'GET', '/g/collect?v=2&tid=G-1&en=page_view');
    const id = headers['x-tagyard-request-id'];
    if (typeof id === 'string') answered.push(id);
    return status;
  }
  const burst = async (count: number) => await Promise.all(Array.from({ length: count }, hit));

  /** Sends requests as fast as they are answered while the work runs. */
  async function underLoad(work: () => Promise<void>): Promise<void> {
    let isOver = false;
    const worker = async () => {
      while (!isOver) await eventually(hit, { timeoutMs: 60_000 });
    };
    const workers = Array.from({ length: WORKERS }, worker);
    await work().finally(() => {
      isOver = true;
    });
    await Promise.all(workers);
  }
  /** Waits until this number of further requests was answered. */
  async function further(count: number): Promise<void> {
    const wanted = answered.length + count;
    await eventually(() => expect(answered.length).toBeGreaterThanOrEqual(wanted), LONG);
  }
  const arrived = async () => new Set((await traffic.records()).map(({ requestId }) => requestId));
  const lost = async (ids: readonly string[]) => {
    const known = await arrived();
    return ids.filter((id) => !known.has(id));
  };
  /** Waits until the bucket has all of these. */
  const allArrive = async (ids: readonly string[]) =>
    await eventually(async () => expect(await lost(ids)).toEqual([]), LONG);

  const countBy = (records: readonly RawRecord[], letters: number) => {
    const counts: Record<string, number> = {};
    for (const { time } of records) {
      const name = time.slice(0, letters);
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  };
  interface Point {
    readonly time: string;
    readonly requests: number;
    readonly events: number;
    readonly errors: number;
  }
  interface Shown {
    readonly points: readonly Point[];
    readonly missing: readonly { readonly from: string; readonly to: string }[];
  }

  /** Compares the API's sums of requests, events and errors with the records in the bucket, counted here. */
  async function expectExact(): Promise<void> {
    const records = await traffic.records();
    const own = records.filter(({ container }) => container === instance.run.demo.container);
    expect(own.length).toBeGreaterThan(0);
    const times = records.map(({ time }) => time).sort();
    const to = new Date(Date.parse(times.at(-1) ?? '') + 1).toISOString();
    const range = `from=${times[0]}&to=${to}&probes=true`;
    for (const [path, some] of [
      ['/traffic', records],
      [`/server-containers/${instance.run.demo.container}/traffic`, own],
      [`/clients/${instance.run.demo.clientId}/traffic`, own],
    ] as const) {
      for (const [step, letters] of [
        [60, 16],
        [3600, 13],
        [86_400, 10],
      ] as const) {
        const { body } = await traffic.ask(`${path}?${range}&step=${step}`);
        const { points } = (await body.json()) as Shown;
        const shown = points.filter(({ requests }) => requests > 0);
        const counts = Object.fromEntries(
          shown.map(({ time, requests }) => [time.slice(0, letters), requests]),
        );
        expect(counts, `${path} by ${step} s`).toEqual(countBy(some, letters));
        const sum = (of: (point: Point) => number) => points.reduce((all, point) => all + of(point), 0);
        const events = some.flatMap((record) => Object.values(record.events));
        expect(sum((point) => point.events)).toBe(events.reduce((all, count) => all + count, 0));
        expect(sum((point) => point.errors)).toBe(some.filter(({ error }) => error !== null).length);
      }
    }
    const days = `from=${times[0]?.slice(0, 10)}&to=${to.slice(0, 10)}&probes=true`;
    const usage = (await (await traffic.ask(`/usage?${days}`)).body.json()) as {
      items: readonly { day: string; containerId: string; requests: number }[];
    };
    const used = usage.items.map(({ day, requests }) => [day, requests]);
    expect(Object.fromEntries(used)).toEqual(countBy(own, 10));
  }

  test('equal what reached the bucket, with kills of management, database, runtime and instance in between', async () => {
    await underLoad(async () => {
      await further(100);
      await traffic.kill('management');
      await further(100);
      await postgresql.kill();
      await further(100);
      await killInstance();
      await further(100);
      await Promise.all([traffic.kill('management'), postgresql.kill(), traffic.kill('runtime')]);
      await further(100);
    });
    await allArrive(answered.slice(-BATCH));
    await eventually(expectExact, LONG);
    const known = await arrived();
    console.log(`${answered.length} requests were answered, ${known.size} records reached the bucket`);
  });

  test.each([
    ['instance', () => killInstance()],
    ['runtime', () => traffic.kill('runtime')],
  ] as const)('lack at most the batch that was not sent yet when the %s is killed', async (_name, kill) => {
    await burst(1);
    await allArrive(answered.slice(-1));
    const before = answered.length;
    await burst(2 * BATCH + 20);
    // Full batches are sent at once; the rest waits for a second.
    await eventually(async () => {
      const missing = await lost(answered.slice(before));
      expect(missing.length).toBeLessThan(BATCH);
    });
    await kill();
    const sent = answered.slice(before);
    await eventually(async () => expect(await hit()).toBe(200), LONG);
    await allArrive(answered.slice(-1));
    const missing = await lost(sent);
    console.log(`${missing.length} of ${sent.length} records were lost`);
    expect(missing.length).toBeLessThan(BATCH);
    await eventually(expectExact, LONG);
  });

  test('include requests of strangers, and no store, log or answer has their secrets', async () => {
    const live = await traffic.ask(`/server-containers/${instance.run.demo.container}/requests/live`, {
      authorization: `Bearer ${instance.run.demo.token}`,
    });
    let followed = '';
    live.body.setEncoding('utf8').on('data', (text: string) => {
      followed += text;
    });
    const page = new URL(instance.run.demo.pageUrl).origin;
    const sent: string[] = [];
    for (const { method, path, headers, body } of strangerRequests({ loader, token, page })) {
      const answer = await call.edge(host, method, path, body, headers);
      sent.push(String(answer.headers['x-tagyard-request-id']));
    }
    answered.push(...sent);
    await allArrive(sent);
    await eventually(expectExact, LONG);
    await eventually(() => expect(followed).toContain(sent.at(-1)), LONG);
    const found = await eventually(async () => {
      const rows = await traffic.searchCache();
      const lines = sent.filter((id) => rows.some((row) => row.includes(id)));
      expect(lines).toHaveLength(sent.length);
      return rows.join('\n');
    }, LONG);
    const exported = await Promise.all(
      ['json&limit=1000', 'ndjson', 'csv'].map(async (format) => {
        const { statusCode, body } = await traffic.ask(`/requests?format=${format}`);
        expect(statusCode).toBe(200);
        return await body.text();
      }),
    );
    for (const text of exported) expect(sent.filter((id) => !text.includes(id))).toEqual([]);
    live.body.destroy();
    const stores = new Map([
      ...(await traffic.rawObjects()),
      ...[...(await postgresql.dump(urls))].map(([table, rows]) => [`table ${table}`, rows] as const),
      ...traffic.files(),
      ['KV', await traffic.keptInKv()],
      ['the search', found],
      ['the live stream', followed],
      ['/requests', exported.join('\n')],
    ]);
    const holding = [...stores].flatMap(([name, text]) =>
      secretsIn(`${name} ${text}`).map((one) => [name, one]),
    );
    expect(holding).toEqual([]);
    // The control: the same search finds the secrets in a text that has them.
    expect(secretsIn(encodeURIComponent(SECRETS.join(' ')))).toEqual(SECRETS);
  });
});
