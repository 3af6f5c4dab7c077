import { appendFile, mkdir, mkdtemp, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../../base/clock.ts';
import { DayCache, forgetOldDays } from '../../../management/requests/search/day-cache.ts';
import { type DuckDb, duckDb } from '../../../management/requests/search/duckdb.ts';
import { fillDay } from '../../../management/requests/search/fill.ts';
import { openCache } from '../../../management/requests/search/open.ts';
import { queryHours } from '../../../management/requests/search/query.ts';
import { RequestSearch } from '../../../management/requests/search/search.ts';
import { eventually } from '../../support/eventually.ts';
import { batchOf } from '../../support/management/raw-logs.ts';
import { memoryObjects } from '../../support/traffic/memory-objects.ts';

const DAY = '2026-02-03';
const AT = Date.parse(`${DAY}T10:00:00Z`);
const HOUR_MS = 3_600_000;

let root: string;
let duck: DuckDb;
let cache: DayCache;
const objects = memoryObjects();
const { stored } = objects;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tagyard-fill-'));
  stored.clear();
  duck = duckDb(root, join(root, 'temporary'));
  cache = await DayCache.open(join(root, 'day'));
});
afterEach(async () => {
  duck.close();
  await rm(root, { recursive: true, force: true });
});

const put = (key: string, records: readonly object[]) =>
  stored.set(
    `raw/dt=${DAY}/${key}`,
    Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join('')),
  );
const fill = async (since: Date | null = null) =>
  await fillDay(
    { objects, duck, signal: new AbortController().signal, deleted: new Map() },
    { day: DAY, cache, since },
  );
const shown = async (of = cache) => {
  const files = of.files.map((file) => of.pathOf(file));
  const query = { files, from: AT, to: AT + HOUR_MS, after: null, limit: 1_000 };
  return (await queryHours(duck, { containers: null, probes: false }, query)).map(({ row }) => row.requestId);
};
const minute = (number: number) => new Date(AT + number * 60_000).toISOString();

test('the cache merges the files of an hour, with each record once, and deletes those that it replaces', async () => {
  for (let number = 0; number < 12; number += 1) {
    const own = batchOf([{ requestId: `r${number}`, time: minute(number), container: 'c' }]);
    put(`a${number}`, own);
    put(`b${number}`, own);
    expect(await fill()).toBe(0);
  }
  const expected = Array.from({ length: 12 }, (_, index) => `r${11 - index}`);
  expect(new Set(await shown())).toEqual(new Set(expected));
  expect(cache.files.length).toBeLessThanOrEqual(9);
  const merged = cache.files.find(({ rows }) => rows > 2);
  // Nine files with two copies of a record each: the merged file has each record once.
  expect(merged?.rows).toBe(9);
  await fill();
  const names = (await readdir(cache.dir)).filter((name) => name.endsWith('.parquet'));
  expect(names.sort()).toEqual(cache.files.map(({ name }) => name).sort());
  expect(await shown(await DayCache.open(cache.dir))).toEqual(await shown());
});

test('the cache finds late objects by a whole listing, and makes a day anew if an object was changed', async () => {
  const keyOf = (number: number, name: string) => `${minute(number).replaceAll(':', '')}-${name}`;
  put(keyOf(30, 'first'), batchOf([{ requestId: 'first', time: minute(30) }]));
  await fill();
  put(keyOf(5, 'late'), batchOf([{ requestId: 'late', time: minute(5) }]));
  put(keyOf(31, 'next'), batchOf([{ requestId: 'next', time: minute(31) }]));
  await fill(new Date(AT + 31 * 60_000));
  expect(await shown()).toEqual(['next', 'first']);
  await fill();
  expect(await shown()).toEqual(['next', 'first', 'late']);
  // Neither a record of another day nor a line that is no record is shown.
  put(keyOf(40, 'foreign'), [...batchOf([{ time: '2026-02-04T10:00:00.000Z' }]), { nothing: true }]);
  expect(await fill()).toBe(2);
  put(keyOf(5, 'late'), batchOf([{ requestId: 'changed', time: minute(5), cause: 'longer' }]));
  await fill();
  expect(await shown()).toEqual(['next', 'first', 'changed']);
});

test('a journal that was cut off or is damaged makes the day empty', async () => {
  put('one', batchOf([{ time: minute(1) }]));
  for (const damage of ['{"objects":[["x', 'no json\n', '{"files":[{"name":"../../etc/passwd"}]}\n']) {
    await fill();
    expect((await DayCache.open(cache.dir)).files).toHaveLength(1);
    await appendFile(join(cache.dir, 'journal.ndjson'), damage);
    cache = await DayCache.open(cache.dir);
    expect([cache.files, cache.objects.size]).toEqual([[], 0]);
  }
});

test('a day that is emptied keeps its folder, so that a list of the days has it at any time', async () => {
  put('one', batchOf([{ time: minute(1) }]));
  await fill();
  const folder = await open(cache.dir);
  await cache.clear();
  // A deleted folder has no links.
  expect((await folder.stat()).nlink).toBeGreaterThan(0);
  await folder.close();
  expect([cache.files, await readdir(cache.dir)]).toEqual([[], []]);
});

test('a day that can’t be emptied keeps its files, so that an erasure can be tried again', async () => {
  put('one', batchOf([{ requestId: 'one', time: minute(1) }]));
  await fill();
  const moved = join(root, 'moved');
  await rename(cache.dir, moved);
  await writeFile(cache.dir, 'no folder');
  await expect(cache.clear()).rejects.toThrow('EEXIST');
  await rm(cache.dir);
  await rename(moved, cache.dir);
  expect(await shown()).toEqual(['one']);
  await cache.clear();
  expect((await DayCache.open(cache.dir)).files).toEqual([]);
});

test('DuckDB reads no other folder and loads nothing', async () => {
  await expect(duck.rows(`select * from read_text('/etc/hostname')`, {})).rejects.toThrow(
    /not allowed|disabled/i,
  );
  await expect(duck.rows(`install httpfs`, {})).rejects.toThrow();
  await expect(duck.rows(`set enable_external_access = true`, {})).rejects.toThrow();
});

test('the cache keeps folders of the newest days of this release only', async () => {
  for (const [version, day] of [
    ['v1', '01'],
    ['v1', '02'],
    ['v1', '03'],
    ['v0', '01'],
  ] as const) {
    await DayCache.open(join(root, version, `dt=2026-01-${day}`));
  }
  await forgetOldDays(root, 'v1', 2);
  expect((await readdir(join(root, 'v1'))).sort()).toEqual(['dt=2026-01-02', 'dt=2026-01-03']);
  expect(await readdir(root)).not.toContain('v0');
});

test('the search says why DuckDB can’t start, and works once it can', async () => {
  const dir = join(root, 'search');
  await mkdir(dir);
  await writeFile(join(dir, 'temporary'), '');
  const log = { warn: () => undefined, error: () => undefined };
  const search = new RequestSearch(
    { dir, objects, days: 2, deleted: async () => new Map() },
    { clock: systemClock, log },
  );
  const stop = new AbortController();
  const following = search.follow(stop.signal);
  await eventually(async () => expect(await search.unavailable()).toContain('DuckDB can’t be used: EEXIST'));
  await rm(join(dir, 'temporary'));
  expect(await search.unavailable()).toBeNull();
  stop.abort();
  await following;
});

test('the search opens its cache once the folder can be read, though the first attempt failed', async () => {
  const dir = join(root, 'search');
  await mkdir(dir);
  await writeFile(join(dir, 'v1'), 'no folder');
  const open = () => openCache({ dir, days: 2 }, 'v1');
  await expect(open()).rejects.toThrow('EEXIST');
  await rm(join(dir, 'v1'));
  (await open()).close();
});

test.each([
  ['an index of more than 32 bits', { index: 3_000_000_000 }],
  ['half of a surrogate pair', { cause: '\ud800', error: 'a\udc00' }],
  ['half of a pair in a name', { plugins: { 'x\ud83d': 1 } }],
  ['a zero character', { cause: 'a\u0000b', country: '\u0000' }],
  ['the largest numbers', { duration: 1e308, bytesIn: 2 ** 60, bytesOut: 1e300, plugins: { x: -1e308 } }],
])('despite a line with %s, the other records are found', async (_what, members) => {
  const [good] = batchOf([{ requestId: 'good', time: minute(1) }]);
  const [odd] = batchOf([{ requestId: 'odd', time: minute(2) }]);
  put('one', [{ ...odd, ...members }, { ...good }]);
  await fill();
  expect(await shown()).toContain('good');
});
