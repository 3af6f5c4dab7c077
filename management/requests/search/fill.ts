import { setImmediate } from 'node:timers/promises';
import type { RawObjects } from '../../raw-objects/raw-objects.ts';
import { type DeletedRequests, isDeletedRequest } from '../rows/filter.ts';
import { type KeyedRow, keyedRow } from '../rows/record.ts';
import type { CachedFile, DayCache } from './day-cache.ts';
import type { DuckDb } from './duckdb.ts';
import { mergeFiles, searchLine, writeRows } from './parquet.ts';

const HOUR_MS = 3_600_000;
/** Octets and objects that are converted at once: what one conversion holds in memory. */
const MOST_OCTETS = 8 * 1024 * 1024;
const MOST_OBJECTS = 256;
/** Objects that are read from the bucket at once. */
const READS = 8;
/** Lines parsed in one go: some milliseconds. */
const AT_ONCE = 500;
/** Files of an hour before they are merged. */
const MOST_FILES = 8;
/** How long an object may take from its first record until it is listed. Slower ones are found by a full listing. */
const OVERLAP_MS = 10 * 60_000;

/** The common prefix of the keys of a day's objects (`YYYY-MM-DD`). */
const prefixOf = (day: string): string => `raw/dt=${day}/`;

interface FillParts {
  readonly objects: RawObjects;
  readonly duck: DuckDb;
  readonly signal: AbortSignal;
  /** Requests that must not get into the cache. */
  readonly deleted: DeletedRequests;
}

interface FoundObject {
  readonly key: string;
  readonly size: number;
}

/**
 * Adds to a day's cache the objects that it lacks. `since`: lists only those from `OVERLAP_MS` before that time on;
 * `null`: all. If one changed or, for `null`, is gone, the cache is rebuilt. Returns how many lines were no records.
 */
export async function fillDay(
  { objects, duck, signal, deleted }: FillParts,
  { day, cache, since }: { readonly day: string; readonly cache: DayCache; readonly since: Date | null },
): Promise<number> {
  await cache.sweep();
  let found = await missingObjects(objects, cache, day, since);
  if (found === 'changed') {
    await cache.clear();
    found = await missingObjects(objects, cache, day, null);
  }
  if (found === 'changed') return 0;
  let invalid = 0;
  for (const some of batches(found)) {
    if (signal.aborted) return invalid;
    invalid += await convert({ objects, duck, deleted }, cache, day, some);
  }
  await compact(duck, cache, signal);
  return invalid;
}

async function missingObjects(
  objects: RawObjects,
  cache: DayCache,
  day: string,
  since: Date | null,
): Promise<FoundObject[] | 'changed'> {
  const prefix = prefixOf(day);
  const time = since && new Date(since.getTime() - OVERLAP_MS).toISOString().replaceAll(':', '');
  const missing: FoundObject[] = [];
  let known = 0;
  for await (const { key, size } of objects.list(prefix, time === null ? undefined : prefix + time)) {
    const before = cache.objects.get(key);
    if (before === undefined) missing.push({ key, size });
    else if (before === size) known += 1;
    else return 'changed';
  }
  return since === null && known < cache.objects.size ? 'changed' : missing;
}

function* batches(found: readonly FoundObject[]): Generator<FoundObject[]> {
  let some: FoundObject[] = [];
  let octets = 0;
  for (const one of found) {
    some.push(one);
    octets += one.size;
    if (octets < MOST_OCTETS && some.length < MOST_OBJECTS) continue;
    yield some;
    some = [];
    octets = 0;
  }
  if (some.length > 0) yield some;
}

async function convert(
  { objects, duck, deleted }: Omit<FillParts, 'signal'>,
  cache: DayCache,
  day: string,
  some: readonly FoundObject[],
): Promise<number> {
  const byHour = new Map<number, string[]>();
  const start = Date.parse(day);
  let [invalid, parsed] = [0, 0];
  for (let first = 0; first < some.length; first += READS) {
    const read = await Promise.all(
      some.slice(first, first + READS).map(async ({ key }) => ({ key, body: await objects.read(key) })),
    );
    for (const { key, body } of read) {
      for (const row of rowsOf(key, body?.toString('utf8') ?? '')) {
        parsed += 1;
        // Lets the process answer other requests in between.
        if (parsed % AT_ONCE === 0) await setImmediate();
        const hour = row === null ? -1 : Math.floor((row.at - start) / HOUR_MS);
        // An object of a day has only records of that day.
        if (row === null || hour < 0 || hour > 23) {
          invalid += 1;
          continue;
        }
        if (isDeletedRequest(row.row, deleted)) continue;
        const lines = byHour.get(hour) ?? [];
        lines.push(searchLine(row));
        byHour.set(hour, lines);
      }
    }
  }
  const files: CachedFile[] = [];
  for (const [hour, lines] of byHour) files.push(await writeRows(duck, cache, { hour, lines }));
  await cache.record({ objects: some.map(({ key, size }) => [key, size]), files });
  return invalid;
}

function* rowsOf(key: string, text: string): Generator<KeyedRow | null> {
  let index = 0;
  for (const line of text.split('\n')) {
    if (line !== '') yield keyedRow(line, { batch: key, index });
    index += 1;
  }
}

/** Merges the files of hours that have many. Beside a much larger file, only the small ones are merged. */
async function compact(duck: DuckDb, cache: DayCache, signal: AbortSignal): Promise<void> {
  const byHour = Map.groupBy(cache.files, ({ hour }) => hour);
  for (const [hour, all] of byHour) {
    if (signal.aborted || all.length <= MOST_FILES) continue;
    const sizes = all.map(({ rows }) => rows).sort((a, b) => a - b);
    const small = sizes.slice(0, -1).reduce((sum, rows) => sum + rows, 0);
    // A large file is rewritten only when the small ones together are at least half as large, so each row is rewritten
    // rarely.
    const largest = sizes.at(-1) ?? 0;
    const files = small * 2 < largest ? all.filter(({ rows }) => rows < largest) : all;
    const merged = await mergeFiles(duck, cache, { hour, files });
    await cache.record({ files: [merged], replaced: files.map(({ name }) => name) });
  }
}
