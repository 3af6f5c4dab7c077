import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';
import { RequestSearch } from '../../../management/requests/search/search.ts';
import { eventually } from '../../support/eventually.ts';
import { batchOf } from '../../support/management/raw-logs.ts';
import { testClock } from '../../support/test-clock.ts';
import { memoryObjects } from '../../support/traffic/memory-objects.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const FIRST = '2026-02-01';
const SECOND = '2026-02-03';

let dir: string;
let clock: ReturnType<typeof testClock>;
let deleted: Map<string, number>;
/** Called before each listing of a day. */
let onList: (day: string) => Promise<void>;
let onFailure: () => void;
/** The messages of the log. */
let logged: string[];
let search: RequestSearch;
let stop: () => Promise<void>;

const bucket = memoryObjects();
const { stored } = bucket;
const objects: RawObjects = {
  ...bucket,
  async *list(prefix, after) {
    await onList(prefix.slice('raw/dt='.length, -1));
    yield* bucket.list(prefix, after);
  },
};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-search-'));
  clock = testClock(new Date('2026-02-06T12:00:00Z'));
  stored.clear();
  deleted = new Map();
  logged = [];
  onList = async () => undefined;
  onFailure = () => undefined;
  start();
  await eventually(async () => expect(await search.unavailable()).toBeNull());
});
afterEach(async () => {
  await stop();
  await rm(dir, { recursive: true, force: true });
});

function start(): void {
  search = new RequestSearch(
    { dir, objects, days: 7, deleted: async () => new Map(deleted) },
    {
      clock,
      log: {
        warn: (_fields, message) => logged.push(message),
        error(_fields, message) {
          logged.push(message);
          onFailure();
        },
      },
    },
  );
  const stopping = new AbortController();
  const following = search.follow(stopping.signal);
  stop = async () => {
    stopping.abort();
    await following;
  };
}

/** Stores a record of each container on this day. */
const put = (day: string, containers: readonly string[]) => {
  const records = batchOf(
    containers.map((container) => ({ container, requestId: container, time: `${day}T10:00:00.000Z` })),
  );
  stored.set(
    `raw/dt=${day}/${day}T100000.000Z-batch`,
    Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join('')),
  );
};
const page = async (day: string, days = 1) => {
  const from = Date.parse(day);
  const filter = { containers: null, probes: false };
  const found = await search.page(filter, { from, to: from + days * DAY_MS, after: null, limit: 100 });
  return { containers: found.rows.map(({ row }) => row.container).sort(), missing: found.missing };
};

/** Searches this day again and again, once in each microtask. */
async function searchInEachMicrotask(day: string): Promise<void> {
  const pages: Promise<unknown>[] = [];
  for (let round = 0; round < 50; round += 1) {
    pages.push(page(day));
    await null;
  }
  await Promise.all(pages);
}

/** Waits until the deletion of this container's requests is recorded as applied. */
const erased = async (container: string) =>
  await eventually(async () =>
    expect(JSON.parse(await readFile(join(dir, 'erased.json'), 'utf8'))).toHaveProperty(container),
  );

/** The next update of the cache, from its start until its end. */
async function nextUpdate(): Promise<void> {
  const isPausing = () => expect(clock.sleeps()).toContain(MINUTE_MS / 4);
  await eventually(isPausing);
  clock.advance(MINUTE_MS / 4);
  await eventually(isPausing);
}

const folderOf = (day: string) => join(dir, 'v1', `dt=${day}`);
/** The paths of this day's files. */
const filesOf = async (day: string) =>
  (await readdir(folderOf(day)))
    .filter((name) => name.endsWith('.parquet'))
    .map((name) => join(folderOf(day), name));

/** Damages the files of this day. */
async function damage(day: string): Promise<void> {
  for (const path of await filesOf(day)) await writeFile(path, 'damaged');
}

/** Holds the next listing of this day until `end`; with an error, it fails. */
function heldListing(day: string) {
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<Error | undefined>();
  onList = async (listed) => {
    if (listed !== day) return;
    onList = async () => undefined;
    begun.resolve();
    const error = await end.promise;
    if (error !== undefined) throw error;
  };
  return { begun: begun.promise, end: (error?: Error) => end.resolve(error) };
}

test('deleted requests are removed from a day whose next filling begins as soon as the last one ends', async () => {
  for (const day of [FIRST, SECOND]) {
    put(day, ['deleted', 'kept']);
    expect(await page(day)).toEqual({ containers: ['deleted', 'kept'], missing: [] });
  }
  clock.advance(6 * MINUTE_MS);
  await page(FIRST);
  const listing = heldListing(SECOND);
  const waiting = page(SECOND);
  await listing.begun;

  deleted.set('deleted', clock.date().getTime());
  clock.advance(MINUTE_MS / 4);
  // Once the first day is done, the erasure waits for the filling of the second.
  await eventually(async () => expect((await page(FIRST)).containers).toEqual(['kept']));
  const searches = Promise.withResolvers<void>();
  onFailure = () => {
    onFailure = () => undefined;
    searches.resolve(searchInEachMicrotask(SECOND));
  };
  listing.end(new Error('the bucket can’t be listed'));
  await Promise.all([waiting, searches.promise]);
  await erased('deleted');
  expect(await page(SECOND)).toEqual({ containers: ['kept'], missing: [] });
});

test('a day is made again whose damage is found while it is filled', async () => {
  put(SECOND, ['kept']);
  await page(SECOND);
  await damage(SECOND);
  clock.advance(6 * MINUTE_MS);
  const listing = heldListing(SECOND);
  const waiting = page(SECOND);
  await listing.begun;
  // The page waits no longer for the filling, and finds the damage.
  clock.advance(MINUTE_MS / 4);
  const damages = () => logged.filter((message) => message.includes('damaged')).length;
  await eventually(() => expect(damages()).toBe(1));
  listing.end();
  expect(await waiting).toEqual({ containers: [], missing: [SECOND] });
  await eventually(async () => expect(await page(SECOND)).toEqual({ containers: ['kept'], missing: [] }));
  expect(damages()).toBe(1);
});

test('a damaged day doesn’t keep deleted requests, nor does it keep them in other days', async () => {
  for (const day of [FIRST, SECOND]) {
    put(day, ['deleted', 'kept']);
    await page(day);
  }
  await damage(FIRST);
  deleted.set('deleted', clock.date().getTime());
  // The first failure may have another cause than damage.
  for (const _ of ['failure', 'deletion']) await nextUpdate();
  await erased('deleted');
  for (const day of [FIRST, SECOND]) {
    await eventually(async () => expect(await page(day)).toEqual({ containers: ['kept'], missing: [] }));
  }
});

test('a day whose files can’t be read at one attempt to delete requests is not emptied', async () => {
  put(SECOND, ['deleted', 'kept']);
  await page(SECOND);
  // An emptied day would have no rows from now on.
  stored.clear();
  const [path = ''] = await filesOf(SECOND);
  await rename(path, join(dir, 'moved'));
  deleted.set('deleted', clock.date().getTime());
  await nextUpdate();
  await rename(join(dir, 'moved'), path);
  await nextUpdate();
  await erased('deleted');
  expect(await page(SECOND)).toEqual({ containers: ['kept'], missing: [] });
});

test('no day is emptied when requests are deleted while DuckDB can’t start', async () => {
  put(SECOND, ['deleted', 'kept']);
  await page(SECOND);
  const files = await filesOf(SECOND);
  await stop();
  await rm(join(dir, 'temporary'), { recursive: true, force: true });
  await writeFile(join(dir, 'temporary'), 'no folder');
  deleted.set('deleted', clock.date().getTime());
  start();
  for (const _ of [1, 2, 3]) await nextUpdate();
  expect(await filesOf(SECOND)).toEqual(files);
  await rm(join(dir, 'temporary'));
  await nextUpdate();
  await erased('deleted');
  expect(await page(SECOND)).toEqual({ containers: ['kept'], missing: [] });
});

test('a search finds the rows of a day, though it waits for another to open while old days are deleted', async () => {
  put(FIRST, ['kept']);
  const others = ['02', '03', '04', '05', '06', '07'].map((date) => `2026-01-${date}`);
  const oldest = '2026-01-01';
  for (const day of [oldest, FIRST, ...others]) await page(day);
  // The next day opens once its journal was written.
  const journal = join(folderOf('2026-02-02'), 'journal.ndjson');
  await mkdir(folderOf('2026-02-02'));
  await promisify(execFile)('mkfifo', [journal]);
  await nextUpdate();
  for (let file = 0; file < 1_000; file += 1) await writeFile(join(folderOf(oldest), `${file}`), '');
  clock.advance(11 * MINUTE_MS);
  const left = async () => (await readdir(folderOf(oldest)).catch(() => [])).length;
  while ((await left()) >= 1_000);
  const found = page(FIRST, 2);
  await eventually(() => expect(clock.sleeps()).toContain(MINUTE_MS / 4));
  await writeFile(journal, '');
  expect(await found).toEqual({ containers: ['kept'], missing: [] });
});
