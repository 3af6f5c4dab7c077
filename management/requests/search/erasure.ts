import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { DeletedRequests } from '../rows/filter.ts';
import type { DayCache } from './day-cache.ts';
import type { DuckDb, Parameters } from './duckdb.ts';
import { isErased, mergeFiles } from './parquet.ts';

const DONE = 'erased.json';
const done = z.record(z.string(), z.number());

/**
 * Applies deletions to the whole cache. A file beside the days records which deletions were applied, so that a restart
 * doesn't apply them again.
 */
export class Erasure {
  readonly #dir: string;
  readonly #version: string;
  /** Days with files that a query may still read. */
  #replaced: DayCache[] = [];

  constructor(dir: string, version: string) {
    this.#dir = dir;
    this.#version = version;
  }

  /**
   * Deletes these requests from all days of the cache, once. `within` calls the work with a day while nothing else
   * writes to that day. Raw logs that are read later must be filtered by the same deletions.
   */
  async follow(
    deleted: DeletedRequests,
    duck: DuckDb,
    within: (day: string, work: (cache: DayCache) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const replaced = this.#replaced;
    this.#replaced = [];
    for (const cache of replaced) await cache.sweep();
    const path = join(this.#dir, DONE);
    const known = await readFile(path, 'utf8').then(
      (text) => done.safeParse(parsed(text)).data ?? {},
      () => ({}) as Record<string, number>,
    );
    const due = new Map([...deleted].filter(([container, until]) => (known[container] ?? 0) < until));
    if (due.size === 0) return;
    // If DuckDB can't start, that is no fault of a day.
    await duck.open();
    for (const name of await readdir(join(this.#dir, this.#version))) {
      await within(name.replace(/^dt=/, ''), async (cache) => {
        // Before the work: it may replace some files and fail at the next one.
        this.#replaced.push(cache);
        await eraseRows(duck, cache, due);
      });
    }
    await writeFile(path, JSON.stringify(Object.fromEntries(deleted)));
  }
}

/** Rewrites the files of a day that have rows of deleted requests. */
async function eraseRows(duck: DuckDb, cache: DayCache, deleted: DeletedRequests): Promise<void> {
  const { condition, parameters } = isErased(deleted);
  for (const file of cache.files) {
    const files: Parameters = { ...parameters, files: [cache.pathOf(file)] };
    const [found] = await duck.rows(
      `SELECT count(*) AS count FROM read_parquet($files) WHERE ${condition}`,
      files,
    );
    const count = Number(found?.count ?? 0);
    if (count === 0) continue;
    const whole = count === file.rows;
    const kept = whole ? [] : [await mergeFiles(duck, cache, { hour: file.hour, files: [file], deleted })];
    await cache.record({ files: kept, replaced: [file.name] });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
