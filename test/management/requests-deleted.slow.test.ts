import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { duckDb } from '../../management/requests/search/duckdb.ts';
import { eventually } from '../support/eventually.ts';
import { batchOf, type RawLogsBucket, startRawLogs } from '../support/management/raw-logs.ts';
import { creation, World } from '../support/management/world.ts';

const SECRET = 'ingest-s3cret-of-the-tests';

let bucket: RawLogsBucket;
let world: World;
let ours: string;
let own: string;

beforeAll(async () => {
  bucket = await startRawLogs();
  world = await World.open({
    rawObjects: bucket.objects,
    settings: { ingestSecret: SECRET },
    logLevel: 'silent',
  });
  await world.stop();
  Object.assign(world.settings, { searchCache: { dir: join(world.dir, 'search'), days: 7 } });
  await world.start();
  ours = await world.client('Ours');
  own = (await world.call('POST', '/server-containers', { as: 'owner', body: creation(ours) })).body.id;
});
afterAll(async () => {
  await world.close();
  await bucket.close();
});

const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const search = async (query = '', path = `/server-containers/${own}/requests`) =>
  await world.call('GET', `${path}${query}`, { as: 'viewer' });
const ingest = async (records: readonly object[]) => {
  const body = records.map((record) => JSON.stringify(record)).join('\n');
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/x-ndjson' };
  expect((await fetch(`${await world.listen()}/ingest`, { method: 'POST', body, headers })).status).toBe(202);
};
const restart = async () => {
  await world.stop();
  await world.start();
};

test('deleted requests are left out of answers at once, and soon removed from the cache’s files of all days', async () => {
  const { body } = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(ours, 'deleted.example', { name: 'Deleted' }),
  });
  const { id } = body;
  const path = `/server-containers/${id}/requests?from=${ago(3 * 24 * 60)}`;
  const gone = [ago(2 * 24 * 60), ago(30)].map((time) => ({ container: id, route: '/erased', time }));
  const kept = gone.map(({ time }) => ({ container: own, route: '/erased-not', time }));
  const objects: string[] = [];
  for (const index of [0, 1]) objects.push(await bucket.put(batchOf([gone[index] ?? {}, kept[index] ?? {}])));
  await ingest(batchOf([{ container: id, route: '/erased' }]));
  await restart();
  await ingest(batchOf([{ container: id, route: '/erased' }]));
  const found = async (query: string) => {
    const { status, body: page } = await search(query, path);
    expect([status, page.missing]).toEqual([200, []]);
    return page.requests.length;
  };
  await eventually(async () => expect(await found('&route=/erased')).toBe(3));
  const inCache = async () => {
    const duck = duckDb(join(world.dir, 'search'), join(world.dir, 'temporary'));
    const files = [join(world.dir, 'search', 'v1', '*', '*.parquet')];
    const rows = await duck.rows('SELECT container FROM read_parquet($files)', { files });
    duck.close();
    return rows.filter(({ container }) => container === id).length;
  };
  expect(await inCache()).toBe(2);

  expect((await world.call('DELETE', `/server-containers/${id}/traffic`, { as: 'owner' })).status).toBe(202);
  expect(await found('&route=/erased')).toBe(0);
  const live = await world.call('GET', `/requests?container=${id}&from=${ago(3 * 24 * 60)}`, { as: 'root' });
  expect(live.body.requests).toEqual([]);
  // A start applies deletions, too: the previous process may have ended before it applied them.
  await restart();
  await eventually(async () => expect(await inCache()).toBe(0));
  await eventually(async () => {
    const others = await search(`?from=${ago(3 * 24 * 60)}&route=/erased-not`);
    expect(others.body.requests).toHaveLength(2);
  });
  // Later requests of the container are kept.
  await ingest(
    batchOf([{ container: id, route: '/erased', time: new Date(Date.now() + 1_000).toISOString() }]),
  );
  expect(await found('&route=/erased')).toBe(1);
  await eventually(async () => {
    for (const key of objects) expect(String(await bucket.objects.read(key))).not.toContain(id);
  });
});

test('exports of one subject are capped as its streams are', async () => {
  const { limits } = world.settings;
  const { streamsPerSubject } = limits;
  Object.assign(limits, { streamsPerSubject: 1 });
  try {
    // More than the sockets buffer, so the export stays open until it is read.
    const rows = Array.from({ length: 5_000 }, () => ({
      container: own,
      route: '/big',
      cause: 'x'.repeat(900),
    }));
    await ingest(batchOf(rows));
    const url = `${await world.listen()}/server-containers/${own}/requests?route=/big&format=ndjson`;
    const headers = async (as: string) => ({ authorization: `Bearer ${await world.issuer.token(as)}` });
    const first = await fetch(url, { headers: await headers('viewer') });
    expect(first.status).toBe(200);
    const second = await fetch(url, { headers: await headers('viewer') });
    expect([second.status, JSON.parse(await second.text()).code]).toEqual([429, 'too_many_streams']);
    const others = await fetch(url, { headers: await headers('owner') });
    expect(others.status).toBe(200);
    expect((await search('?route=/big')).status).toBe(200);
    await Promise.all([first.body?.cancel(), others.body?.cancel()]);
    await eventually(async () => {
      const again = await fetch(url, { headers: await headers('viewer') });
      await again.body?.cancel();
      expect(again.status).toBe(200);
    });
  } finally {
    Object.assign(limits, { streamsPerSubject });
  }
});
