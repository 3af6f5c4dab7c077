import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { acquireLock } from '../../../base/lock.ts';
import { missingPackages } from '../../../base/runtime/optional.ts';
import type { RawObjects } from '../../raw-objects/raw-objects.ts';
import type { DeletedRequests } from '../rows/filter.ts';
import { forgetOldDays } from './day-cache.ts';
import { type DuckDb, duckDb } from './duckdb.ts';

export interface SearchOptions {
  /** SEARCH_CACHE_DIR. */
  readonly dir: string;
  readonly objects: RawObjects;
  /** Days that the cache holds at most. */
  readonly days: number;
  /** Requests that must not be kept in the cache. */
  readonly deleted: () => Promise<DeletedRequests>;
}

interface OpenCache {
  readonly duck: DuckDb;
  /** Releases the folder for other processes. */
  close(): void;
}

/** Opens the folder for this process alone, or throws. Keeps only the newest `days` days of this version. */
export async function openCache(
  { dir, days }: Pick<SearchOptions, 'dir' | 'days'>,
  version: string,
): Promise<OpenCache> {
  await mkdir(dir, { recursive: true });
  const lock = acquireLock(join(dir, 'lock'));
  try {
    await forgetOldDays(dir, version, days);
  } catch (error) {
    lock.release();
    throw error;
  }
  const duck = duckDb(dir, join(dir, 'temporary'));
  return {
    duck,
    close() {
      duck.close();
      lock.release();
    },
  };
}

/** Why the search can't be used: a package is missing. `null`: it is there. */
export const notInstalled = (): string | null =>
  missingPackages(['@duckdb/node-api']).length > 0
    ? 'the package @duckdb/node-api is not installed; install it: npm install --include=optional'
    : null;
