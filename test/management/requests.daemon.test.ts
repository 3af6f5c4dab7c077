import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { batchOf, edgeRecord, type RawLogsBucket, startRawLogs } from '../support/management/raw-logs.ts';
import { creation, World } from '../support/management/world.ts';

const SECRET = 'ingest-s3cret-of-the-tests';

let bucket: RawLogsBucket;
let world: World;
let ours: string;
let own: string;
let foreign: string;

beforeAll(async () => {
  bucket = await startRawLogs();
  world = await World.open({ rawObjects: bucket.objects, settings: { ingestSecret: SECRET } });
  await world.stop();
  Object.assign(world.settings, { searchCache: { dir: join(world.dir, 'search'), days: 7 } });
  await world.start();
  ours = await world.client('Ours');
  const body = { name: 'Theirs', members: [{ subject: 'other', role: 'owner' }] };
  const theirs = (await world.call('POST', '/clients', { as: 'root', body })).body.id;
  const create = async (client: string, as: string, domain: string) =>
    (await world.call('POST', '/server-containers', { as, body: creation(client, domain, { name: domain }) }))
      .body.id;
  own = await create(ours, 'owner', 'ours.example');
  foreign = await create(theirs, 'other', 'theirs.example');
}, 120_000);
afterAll(async () => {
  await world.close();
  await bucket.close();
});

const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
const search = async (query = '', as = 'viewer', path = `/server-containers/${own}/requests`) =>
  await world.call('GET', `${path}${query}`, { as });
const ids = (rows: { requestId: string }[]) => rows.map(({ requestId }) => requestId);
const searched = async (query = '', as = 'viewer', path?: string) => {
  const { status, body } = await search(query, as, path);
  expect([status, body.missing]).toEqual([200, []]);
  return ids(body.requests);
};
const ingest = async (records: readonly object[], secret = SECRET) => {
  const body = records.map((record) => JSON.stringify(record)).join('\n');
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/x-ndjson' };
  return await fetch(`${await world.listen()}/ingest`, { method: 'POST', body, headers });
};
const restart = async (between: () => Promise<unknown> = async () => undefined) => {
  await world.stop();
  await between();
  await world.start();
};

test('a search finds requests of raw logs by each filter, the newest first, each record once', async () => {
  const base = { container: own, site: 'ours' };
  const records = batchOf([
    { ...base, requestId: 'r1', time: ago(50), route: '/boot', method: 'POST', country: 'DE', cache: null },
    { ...base, requestId: 'r2', time: ago(40), route: '/c/:token.js', status: 404, error: 'unknown_token' },
    { ...base, requestId: 'r3', time: ago(30), route: '/c/:token.js', status: 503, cache: 'stale' },
    { ...base, requestId: 'r4', time: ago(20), probe: true },
    { ...base, requestId: 'r5', time: ago(90 * 60) },
    { ...base, container: foreign, requestId: 'f1', time: ago(35) },
    { ...base, container: null, site: null, requestId: 'u1', time: ago(34) },
  ]);
  // By day, as the edge writes them; each day's records in two copies, and the first of them in a third.
  const days = Map.groupBy(records, ({ time }) => String(time).slice(0, 10));
  for (const day of days.values()) {
    await bucket.put(day);
    await bucket.put(day);
    await bucket.put(day.slice(0, 1));
  }
  await restart();
  await eventually(async () => expect(await searched()).toEqual(['r3', 'r2', 'r1']));
  expect(await searched('?probes=true')).toEqual(['r4', 'r3', 'r2', 'r1']);
  expect(await searched('?route=/c/:token.js')).toEqual(['r3', 'r2']);
  expect(await searched('?status=5xx')).toEqual(['r3']);
  expect(await searched('?status=404&cache=hit')).toEqual(['r2']);
  expect(await searched('?cache=stale')).toEqual(['r3']);
  expect(await searched('?error=unknown_token')).toEqual(['r2']);
  expect(await searched('?requestId=r1')).toEqual(['r1']);
  expect(await searched('?method=POST&country=DE')).toEqual(['r1']);
  expect(await searched(`?from=${ago(45)}&to=${ago(35)}`)).toEqual(['r2']);
  await eventually(async () =>
    expect(await searched(`?from=${ago(100 * 60)}&to=${ago(80 * 60)}`)).toEqual(['r5']),
  );
  // A value never becomes a part of the query.
  expect(await searched(`?route=${encodeURIComponent("' OR 1=1 --")}`)).toEqual([]);

  expect((await search('', 'other')).body.code).toBe('unknown_container');
  expect(await searched('', 'viewer', '/requests')).toEqual(['r3', 'r2', 'r1']);
  expect(await searched('', 'other', '/requests')).toEqual(['f1']);
  expect(await searched('', 'root', '/requests')).toEqual(['r3', 'u1', 'f1', 'r2', 'r1']);
  expect(await searched(`?container=${foreign}`, 'root', '/requests')).toEqual(['f1']);
  expect((await search(`?container=${foreign}`, 'viewer', '/requests')).body.code).toBe('unknown_container');
  expect(await searched(`?client=${ours}`, 'viewer', '/requests')).toEqual(['r3', 'r2', 'r1']);

  for (const limit of [1, 2]) {
    const found: string[] = [];
    for (let cursor = ''; ; ) {
      const page = (await search(`?limit=${limit}${cursor}`, 'root', '/requests')).body;
      expect(page.requests.length).toBeLessThanOrEqual(limit);
      found.push(...ids(page.requests));
      if (page.next === null) break;
      cursor = `&cursor=${page.next}`;
    }
    expect(found).toEqual(['r3', 'u1', 'f1', 'r2', 'r1']);
  }
  const wrong = [
    ...['?status=9xx', '?cursor=x', '?limit=1001', '?nothing=1'],
    ...[`?from=${ago(60 * 24 * 40)}`, `?from=${ago(10)}&to=${ago(10)}`, `?from=${ago(-24 * 60)}`],
    '?from=9999-12-31T23:59:59-14:00', // a year beyond 9999 in UTC
  ];
  for (const query of wrong) expect((await search(query)).body.code, query).toBe('invalid_request');
  // Without `to`, the message must name what `from` is compared with.
  expect((await search(`?from=${ago(-24 * 60)}`)).body.errors).toEqual([
    { path: 'from', message: 'must be before `to` (by default now), by at most 31 days' },
  ]);
  const forged = Buffer.from(JSON.stringify([Date.now(), 'x', 9_999_999_999_999])).toString('base64url');
  expect((await search(`?cursor=${forged}`)).body.code).toBe('invalid_request');
  expect(await searched('?to=9999-12-31T23:59:59-14:00')).toEqual(['r3', 'r2', 'r1']);
  // The caller's clock may be ahead.
  expect(await searched(`?from=${ago(-30)}`)).toEqual([]);
});

test('a search shows a request as soon as the edge reports it, and only once if the raw logs have it', async () => {
  const [report] = batchOf([{ container: own, requestId: 'new1', route: '/new' }]);
  if (report === undefined) throw new Error('no record');
  expect((await ingest([report], 'wrong')).status).toBe(401);
  expect((await fetch(`${await world.listen()}/ingest`, { method: 'POST', body: '{}' })).status).toBe(401);
  const foreignLines = [{ ...edgeRecord({ container: own, requestId: 'torn' }) }, { nothing: true }];
  const answer = await ingest([report, ...foreignLines]);
  expect([answer.status, await answer.json()]).toEqual([202, { accepted: 1, refused: 2 }]);
  expect(await searched('?route=/new')).toEqual(['new1']);
  await ingest([report]);
  await bucket.put([report]);
  await restart();
  await eventually(async () => expect(await searched('?route=/new')).toEqual(['new1']));
  await ingest([report]);
  expect(await searched('?route=/new')).toEqual(['new1']);
  expect((await ingest([{ text: 'x'.repeat(9 * 1024 * 1024) }])).status).toBe(413);
});

test('an export has all rows, and no field that a spreadsheet takes for a formula', async () => {
  const rows = batchOf([
    { container: own, requestId: '=HYPERLINK("http://attacker.example")', route: '/export', status: 500 },
    { container: own, requestId: 'plain', route: '/export', time: ago(1), events: { page_view: 2 } },
  ]);
  await ingest(rows);
  const exported = async (format: string) => {
    const { app } = world.management ?? {};
    const headers = { authorization: `Bearer ${await world.issuer.token('viewer')}` };
    const url = `/server-containers/${own}/requests?route=/export&format=${format}`;
    return await app?.inject({ method: 'GET', url, headers });
  };
  const csv = await exported('csv');
  expect(csv?.headers['content-type']).toContain('text/csv');
  const [head, first, second] = csv?.body.split('\r\n') ?? [];
  expect(head).toMatch(/^time,requestId,site,container,/);
  expect(first).toContain(`"'=HYPERLINK(""http://attacker.example"")"`);
  expect(second).toContain('"{""page_view"":2}"');
  const lines =
    (await exported('ndjson'))?.body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)) ?? [];
  expect(ids(lines)).toEqual(['=HYPERLINK("http://attacker.example")', 'plain']);
});

test('a search rebuilds a damaged or deleted cache, and drops what is deleted in the raw logs', async () => {
  const key = await bucket.put(batchOf([{ container: own, requestId: 'gone', route: '/cache' }]));
  await bucket.put(batchOf([{ container: own, requestId: 'kept', route: '/cache', time: ago(1) }]));
  await restart();
  const all = async () => await searched('?route=/cache');
  await eventually(async () => expect(await all()).toEqual(['gone', 'kept']));
  const root = join(world.dir, 'search', 'v1');
  const files = async () =>
    (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.parquet'));
  expect((await files()).length).toBeGreaterThan(0);

  // A file of the right size with other content: only a query notices the damage.
  for (const name of await files()) {
    const path = join(root, name);
    await writeFile(path, Buffer.alloc((await readFile(path)).length));
  }
  await eventually(async () => expect(await all()).toEqual(['gone', 'kept']));
  await restart(async () => {
    for (const name of await files()) await writeFile(join(root, name), 'short');
  });
  await eventually(async () => expect(await all()).toEqual(['gone', 'kept']));
  await restart(() => rm(root, { recursive: true }));
  await eventually(async () => expect(await all()).toEqual(['gone', 'kept']));
  await restart(() => bucket.objects.remove(key));
  await eventually(async () => expect(await all()).toEqual(['kept']));
});

test('a search reads records of earlier releases, and skips lines that are no records', async () => {
  const {
    batch: _,
    index: __,
    bytesIn: ___,
    ...old
  } = batchOf([{ container: own, requestId: 'old1', route: '/old' }])[0] as Record<string, unknown>;
  const day = String(old.time).slice(0, 10);
  const lines = [old, { ...old, requestId: 'old2', time: ago(1) }].map((one) => JSON.stringify(one));
  const text = [lines[0], '{"time":"2026-', 'null', '"text"', lines[1], ''].join('\n');
  await bucket.objects.write(`raw/dt=${day}/old.ndjson`, Buffer.from(text));
  await restart();
  await eventually(async () => expect(await searched('?route=/old')).toEqual(['old1', 'old2']));
  const { requests } = (await search('?route=/old')).body;
  expect(requests[0]).toMatchObject({ bytesIn: null, bot: false, probe: false });
});

test('a search keeps and answers nothing but the members of a record', async () => {
  const secrets = ['ada@example.com', '203.0.113.77', 'GA1.2.4711', 'lt_secret'];
  const [record] = batchOf([{ container: own, route: '/private', site: 'shop' }]);
  const stranger = {
    ...record,
    ip: secrets[1],
    url: `/x?email=${secrets[0]}`,
    cookies: { _ga: secrets[2] },
    events: { [secrets[0] ?? '']: 1 },
    method: secrets[3],
  };
  await ingest([stranger]);
  await bucket.put([{ ...stranger, batch: crypto.randomUUID() }]);
  await restart();
  await ingest([{ ...stranger, batch: crypto.randomUUID() }]);
  const shown = await eventually(async () => {
    const { body } = await search('?route=/private');
    expect(body.requests).toHaveLength(2);
    return JSON.stringify(body);
  });
  const { objects } = bucket;
  expect(objects).toBeDefined();
  const names = await readdir(join(world.dir, 'search'), { recursive: true, withFileTypes: true });
  const kept = await Promise.all(
    names.filter((one) => one.isFile()).map((one) => readFile(join(one.parentPath, one.name), 'latin1')),
  );
  for (const secret of secrets) {
    expect(shown).not.toContain(secret);
    expect(kept.join('')).not.toContain(secret);
    expect(world.logs.join('')).not.toContain(secret);
  }
});

test('`tagyard logs` searches and follows by the API, and says when the API doesn’t answer', async () => {
  await ingest(
    batchOf([
      { container: own, requestId: 'cli1', route: '/cli', time: ago(2), status: 503 },
      { container: own, requestId: 'cli2', route: '/cli', time: ago(1) },
    ]),
  );
  const env = { MANAGEMENT_URL: await world.listen(), TAGYARD_TOKEN: await world.issuer.token('viewer') };
  const { siteId } = (await world.call('GET', `/server-containers/${own}`, { as: 'viewer' })).body;
  const argv = (...rest: string[]) => [
    'gitops/cli.ts',
    'logs',
    siteId,
    '--json',
    '--where',
    'route=/cli',
    ...rest,
  ];
  const run = (...rest: string[]) =>
    execa('node', argv(...rest), { env, reject: false, cleanup: true, buffer: true });
  const shown = (text: string) => text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  const following = run('--follow', '--since', '2h');
  let printed = '';
  following.stdout.on('data', (chunk) => {
    printed += String(chunk);
  });
  const failed = await run('--where', 'status=5xx');
  expect([failed.stderr, ids(shown(failed.stdout))]).toEqual(['', ['cli1']]);
  await eventually(() => expect(ids(shown(printed))).toEqual(['cli1', 'cli2']));
  await eventually(async () => {
    await ingest(batchOf([{ container: own, requestId: 'cli3', route: '/cli' }]));
    expect(ids(shown(printed))).toContain('cli3');
  });
  following.kill();
  await following;

  const away = await execa('node', argv('--follow'), {
    env: { ...env, MANAGEMENT_URL: 'http://127.0.0.1:1' },
    reject: false,
  });
  expect(away.exitCode).toBe(1);
  expect(away.stderr).toContain('ask the management API');
  for (const wrong of [
    ['--since', 'yesterday'],
    ['--where', 'ip=1'],
    ['--day', '2026-01-31', '--follow'],
  ])
    expect((await run(...wrong)).stderr).toContain(wrong[0]);
});

test('without a cache folder the search says that it is unavailable, and the rest works', async () => {
  const { searchCache } = world.settings;
  await world.stop();
  Object.assign(world.settings, { searchCache: null });
  await world.start();
  const { status, body, headers } = await search();
  expect([status, body.code, headers['retry-after']]).toEqual([503, 'search_unavailable', '5']);
  expect((await ingest(batchOf([{ container: own }]))).status).toBe(202);
  await world.stop();
  Object.assign(world.settings, { searchCache });
  await world.start();
});
