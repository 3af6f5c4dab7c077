import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance, listValue } from '@duckdb/node-api';
import { systemClock } from '../../base/clock.ts';
import type { RawObjects } from '../../management/raw-objects/raw-objects.ts';
import type { RequestFilter } from '../../management/requests/rows/filter.ts';
import { RequestSearch } from '../../management/requests/search/search.ts';
import { eventually } from '../support/eventually.ts';
import { batchOf, edgeRecord } from '../support/management/raw-logs.ts';
import { creation, World } from '../support/management/world.ts';
import type { Bench, Suite } from './bench.ts';

/** `BENCH_RECORDS` sets another number of records. */
const RECORDS = Number(process.env.BENCH_RECORDS ?? 5_000_000);
const OF_OBJECT = 5_000;
const CONTAINERS = Array.from({ length: 20 }, (_, index) => `container-${index}`);
const LISTENERS = 100;
const PER_SECOND = 500;
const SECONDS = 10;
const DAY_MS = 86_400_000;

/** Live streams, and searches of a day of raw logs, with DuckDB alone on the same files as the control. */
export const requests: Suite = async (bench) => {
  await search(bench);
  await live(bench);
};

async function search(bench: Bench): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-search-bench-'));
  const day = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
  const one = new RequestSearch(
    { dir, objects: objectsOf(day), days: 2, deleted: async () => new Map() },
    { clock: systemClock, log: console },
  );
  const stop = new AbortController();
  const following = one.follow(stop.signal);
  try {
    const from = Date.parse(day);
    const range = { from, to: from + DAY_MS, after: null };
    const page = async (filter: Partial<RequestFilter>, limit = 51) => {
      const found = await one.page({ containers: null, probes: false, ...filter }, { ...range, limit });
      if (found.missing.length > 0) throw new Error(`${found.missing} is still being read`);
      return found;
    };
    await bench(`${RECORDS} records: read into the search’s cache`, {
      unit: 's',
      run: () => timed(() => eventually(() => page({}), { timeoutMs: 3_600_000, intervalMs: 5_000 }), 1_000),
    });
    await bench('  memory of the process after that', {
      unit: 'MiB',
      run: () => process.memoryUsage().rss / 2 ** 20,
    });
    const root = join(dir, 'v1', `dt=${day}`);
    const files = (await readdir(root)).filter((name) => name.endsWith('.parquet'));
    const sizes = await Promise.all(files.map(async (name) => (await stat(join(root, name))).size));
    const octets = sizes.reduce((sum, size) => sum + size, 0);
    await bench('  size per million records: the cache’s files', { unit: 'MB', run: () => octets / RECORDS });
    const searches: [string, Partial<RequestFilter>, string][] = [
      ['first page of all (aim 500)', {}, 'true'],
      ['first page of one container (aim 500)', { containers: ['container-7'] }, `container = 'container-7'`],
      [
        '5xx of one container (aim 3000)',
        { containers: ['container-3'], status: '5xx' },
        `container = 'container-3' and status >= 500`,
      ],
      [
        'a request id that is nowhere, the whole day (aim 3000)',
        { requestId: 'nowhere' },
        `requestId = 'nowhere'`,
      ],
    ];
    const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
    const duck = await instance.connect();
    const paths = listValue(files.map((name) => join(root, name)));
    for (const [name, filter, where] of searches) {
      await bench(`  ${name}`, { unit: 'ms', times: 5, run: () => timed(() => whole(page, filter)) });
      const sql = `select * from read_parquet($paths) where ${where} order by "at" desc, batch desc, idx desc limit 51`;
      await bench('    DuckDB alone', {
        unit: 'ms',
        times: 3,
        run: () => timed(async () => (await duck.runAndReadAll(sql, { paths })).getRowObjects()),
      });
    }
    duck.closeSync();
    instance.closeSync();
  } finally {
    stop.abort();
    await following;
    await rm(dir, { recursive: true, force: true });
  }
}

/** Reads one page. Throws if the search’s time runs out before it has found the whole page. */
async function whole(
  page: (filter: Partial<RequestFilter>) => Promise<{ readonly reached: number | null }>,
  filter: Partial<RequestFilter>,
): Promise<void> {
  const { reached } = await page(filter);
  if (reached !== null) throw new Error(`a page ended at ${new Date(reached).toISOString()}`);
}

/** A day's objects, made when they are read. */
function objectsOf(day: string): RawObjects {
  const count = Math.ceil(RECORDS / OF_OBJECT);
  const step = DAY_MS / RECORDS;
  const start = Date.parse(day);
  const keys = Array.from(
    { length: count },
    (_, index) => `raw/dt=${day}/${String(index).padStart(6, '0')}.ndjson`,
  );
  // Lines are put together as text, because `JSON.stringify` of each record would take longer than reading it.
  const members = { time: '@', requestId: '@', status: '@', container: '@' };
  const [record] = batchOf([members], '@');
  const [time, id, status, container, batch, place, end] = JSON.stringify({ ...record, index: '@' }).split(
    '"@"',
  );
  const line = (number: number, at: number, name: string) => {
    const prefix = number.toString(16).padStart(8, '0');
    return (
      `${time}"${new Date(start + Math.floor(number * step)).toISOString()}"${id}"${prefix}-1111-4111-8111-${name.slice(24)}"` +
      `${status}${number % 997 === 0 ? 503 : 200}${container}"${CONTAINERS[(number * 7) % CONTAINERS.length]}"` +
      `${batch}"${name}"${place}${at}${end}\n`
    );
  };
  const text = (index: number) => {
    const name = crypto.randomUUID();
    const first = index * OF_OBJECT;
    const many = Math.min(OF_OBJECT, RECORDS - first);
    return Array.from({ length: many }, (_, at) => line(first + at, at, name)).join('');
  };
  return {
    async *list(prefix) {
      // The size is about that of the text, because the search reads a few megabytes at once.
      if (prefix === `raw/dt=${day}/`) for (const key of keys) yield { key, size: OF_OBJECT * 450 };
    },
    read: async (key) => Buffer.from(text(keys.indexOf(key))),
    write: async () => undefined,
    remove: async () => undefined,
  };
}

async function live(bench: Bench): Promise<void> {
  const ingestSecret = 'ingest-secret-of-the-bench';
  const world = await World.open({ logLevel: 'silent', settings: { ingestSecret, followMs: 500 } });
  try {
    const client = await world.client();
    const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
    const container: string = made.body.id;
    const url = await world.listen();
    const token = await world.issuer.token('viewer');
    const delays: number[] = [];
    let opened = 0;
    const sockets = Array.from({ length: LISTENERS }, () => {
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      socket.on('data', (chunk) => {
        const text = chunk.toString('latin1');
        if (text.includes('retry: ')) opened += 1;
        for (const [, time = ''] of text.matchAll(/"time":"([^"]+)"/g))
          delays.push(Date.now() - Date.parse(time));
      });
      const path = `/server-containers/${container}/requests/live`;
      socket.write(`GET ${path} HTTP/1.1\r\nhost: api\r\nauthorization: Bearer ${token}\r\n\r\n`);
      return socket;
    });
    await eventually(() => {
      if (opened < LISTENERS) throw new Error(`${opened} are open`);
    });
    for (let tick = 0; tick < SECONDS * 10; tick += 1) {
      const records = batchOf(Array.from({ length: PER_SECOND / 10 }, () => edgeRecord({ container })));
      const body = records.map((record) => JSON.stringify(record)).join('\n');
      const headers = { authorization: `Bearer ${ingestSecret}`, 'content-type': 'application/x-ndjson' };
      await Promise.all([fetch(`${url}/ingest`, { method: 'POST', headers, body }), systemClock.sleep(100)]);
    }
    const sent = SECONDS * PER_SECOND * LISTENERS;
    await eventually(() => {
      if (delays.length < sent * 0.999) throw new Error(`${delays.length} of ${sent} have arrived`);
    });
    delays.sort((a, b) => a - b);
    const delayOf = (part: number) => delays[Math.floor((delays.length - 1) * part)] ?? Number.NaN;
    const name = `${PER_SECOND} records/s to ${LISTENERS} live streams: delay after the delivery`;
    await bench(`${name}, median`, { unit: 'ms', run: () => delayOf(0.5) });
    await bench('  95 %', { unit: 'ms', run: () => delayOf(0.95) });
    await bench('  the slowest', { unit: 'ms', run: () => delayOf(1) });
    for (const socket of sockets) socket.destroy();
  } finally {
    await world.close();
  }
}

async function timed(work: () => Promise<unknown>, unit = 1): Promise<number> {
  const since = performance.now();
  await work();
  return (performance.now() - since) / unit;
}
