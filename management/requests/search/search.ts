import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { limit } from '../../../base/limit.ts';
import type { RequestFilter } from '../rows/filter.ts';
import type { KeyedRow } from '../rows/record.ts';
import { CachedDay } from './cached-day.ts';
import { DayCache } from './day-cache.ts';
import { DayQueue } from './day-queue.ts';
import type { DuckDb } from './duckdb.ts';
import { Erasure } from './erasure.ts';
import { fillDay } from './fill.ts';
import { notInstalled, openCache, type SearchOptions } from './open.ts';
import { queryHours } from './query.ts';
import { type FoundRows, type PageQuery, type RangeReader, readRange } from './range.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The most hours that one query reads. */
const MOST_HOURS = 24;
/** Milliseconds between two listings of today and yesterday. */
const FILL_MS = 15_000;
/** Milliseconds after which a day is listed as a whole again, for late, changed and deleted objects. */
const WHOLE_MS = 5 * 60_000;
/** Milliseconds for which a day that a search has used is kept in all cases: the next page needs it. */
const IDLE_MS = 10 * 60_000;
/** Milliseconds that a page waits for days that aren't read yet. */
const WAIT_MS = 1_500;
/** Milliseconds after which a page ends, even if it isn't full. */
const BUDGET_MS = 2_500;
/** Queries at once. */
const QUERIES = 2;
/** The name of a folder in SEARCH_CACHE_DIR. Another release's folder is not read. */
const VERSION = 'v1';

interface SearchLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Searches requests by DuckDB in a cache of the raw logs, which it fills itself and makes again where it is damaged. */
export class RequestSearch {
  readonly #options: SearchOptions;
  readonly #clock: Clock;
  readonly #log: SearchLog;
  readonly #days = new Map<string, Promise<CachedDay>>();
  readonly #queries = limit(QUERIES);
  readonly #fills = new DayQueue();
  readonly #erasure: Erasure;
  readonly #reading: RangeReader = {
    files: (at) => this.#files(at),
    query: (filter, query) => this.#queries(() => queryHours(this.#demandOpen().duck, filter, query)),
  };
  #open: { readonly duck: DuckDb; readonly signal: AbortSignal } | null = null;
  #reason = 'the search is starting; try again in a moment';

  constructor(options: SearchOptions, { clock, log }: { readonly clock: Clock; readonly log: SearchLog }) {
    this.#options = options;
    this.#erasure = new Erasure(options.dir, VERSION);
    this.#clock = clock;
    this.#log = log;
  }

  /** Why the search can't be used now; `null`: it can. */
  async unavailable(): Promise<string | null> {
    if (this.#open === null) return this.#reason;
    try {
      await this.#open.duck.open();
      return null;
    } catch (err) {
      this.#log.warn({ err }, 'requests can’t be searched');
      return `DuckDB can’t be used: ${err instanceof Error ? err.message : err}`;
    }
  }

  /**
   * The newest rows first, each once. If there are fewer than `limit` although more follow, `reached` says where it
   * stopped.
   */
  async page(filter: RequestFilter, { from, to, after, limit: most }: PageQuery): Promise<FoundRows> {
    const missing = new Set(await this.#prepared(from, to));
    const until = this.#clock.now() + BUDGET_MS;
    const rows: KeyedRow[] = [];
    const newest = Math.min(to, (after?.at ?? to) + 1) - 1;
    let end = newest - (newest % HOUR_MS) + HOUR_MS;
    // Each query reads more hours than the last one, up to a limit: even one that finds few rows takes time.
    for (let hours = 1; end > from; hours = Math.min(2 * hours, MOST_HOURS)) {
      const start = end - hours * HOUR_MS;
      const range = { from: Math.max(from, start), to: Math.min(to, end) };
      const query = { ...range, after, limit: most - rows.length };
      const found = await readRange(this.#reading, filter, query);
      rows.push(...found.rows);
      for (const { at, cause } of found.damaged) {
        missing.add(dayOf(at));
        await this.#remake(at, cause);
      }
      if (rows.length >= most) break;
      if (start > from && this.#clock.now() > until) {
        return { rows, reached: start, missing: [...missing].sort() };
      }
      end = start;
    }
    return { rows, reached: null, missing: [...missing].sort() };
  }

  /** The files of the hour of this time. */
  async #files(at: number): Promise<string[]> {
    const { cache } = await this.#day(dayOf(at));
    const hour = new Date(at).getUTCHours();
    return cache.files.flatMap((file) => (file.hour === hour ? [cache.pathOf(file)] : []));
  }

  /** Waits until stale days are read again, but for a limited time. Returns those that are stale still. */
  async #prepared(from: number, to: number): Promise<string[]> {
    const last = Math.min(to, this.#clock.date().getTime());
    const names: string[] = [];
    // Compared as numbers: as texts, years beyond 9999 come before all others.
    const first = Math.floor(from / DAY_MS) * DAY_MS;
    for (let at = last - 1; at >= first; at -= DAY_MS) names.push(dayOf(at));
    const days = await Promise.all(names.map((name) => this.#usedDay(name)));
    const now = this.#clock.now();
    const isUnread = ({ isDamaged, wholeAt, listedAt }: CachedDay, most: number) =>
      isDamaged || wholeAt === null || listedAt === null || now - listedAt > most;
    const stale = days.filter((day) => isUnread(day, this.#isCurrent(day.name) ? 2 * FILL_MS : WHOLE_MS));
    // The other stale days are named as missing, and are read when they are asked for again.
    const able = stale.filter((day) => this.#isCurrent(day.name) || this.#fills.hasRoom);
    const reading = Promise.all(able.map((day) => this.#fill(day)));
    if (stale.length > 0) await Promise.race([reading, this.#clock.sleep(WAIT_MS, { ref: false })]);
    return stale.flatMap((day) => (isUnread(day, 0) ? [day.name] : []));
  }

  /** Fills today and yesterday until the signal. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const close = await this.#start(signal);
      while (close !== null && !signal.aborted) {
        try {
          await this.#fillCurrent();
          await this.#erase();
        } catch (err) {
          this.#log.error({ err }, 'the search cache can’t be updated; it is tried again');
        }
        await this.#clock.sleep(FILL_MS, { signal, ref: false });
      }
      await close?.();
      await this.#clock.sleep(FILL_MS, { signal, ref: false });
    }
  }

  async #fillCurrent(): Promise<void> {
    const today = this.#clock.date().getTime();
    const days = await Promise.all([today, today - DAY_MS].map((at) => this.#day(dayOf(at))));
    await Promise.all(days.map((day) => this.#fill(day)));
    await this.#evict();
  }

  async #erase(): Promise<void> {
    const { duck } = this.#demandOpen();
    await this.#erasure.follow(await this.#options.deleted(), duck, async (name, work) => {
      const day = await this.#day(name);
      await day.alone(async () => {
        try {
          await work(day.cache);
          day.hasFailedErasure = false;
        } catch (err) {
          // One failure may have another cause than damage, such as a full disk: the erasure is tried again.
          if (!day.hasFailedErasure) {
            day.hasFailedErasure = true;
            throw err;
          }
          this.#log.error({ err, day: name }, 'requests can’t be deleted from a day, which is made again');
          await day.clear();
        }
      });
    });
  }

  #demandOpen() {
    if (this.#open === null) throw new Error(this.#reason);
    return this.#open;
  }

  /** Opens the cache, and returns how to close it; `null`: it can't be opened now. */
  async #start(signal: AbortSignal): Promise<(() => Promise<void>) | null> {
    const missing = notInstalled();
    if (missing !== null) {
      this.#reason = missing;
      return null;
    }
    try {
      const { duck, close } = await openCache(this.#options, VERSION);
      this.#open = { duck, signal };
      return async () => {
        this.#open = null;
        this.#reason = 'the process is stopping';
        const days = await Promise.all(this.#days.values());
        await Promise.all(days.map((day) => day.settled()));
        await this.#queries(() => undefined);
        this.#days.clear();
        close();
      };
    } catch (err) {
      this.#reason = `the folder of SEARCH_CACHE_DIR can’t be used: ${err instanceof Error ? err.message : err}`;
      this.#log.warn({ err }, 'requests can’t be searched');
      return null;
    }
  }

  async #day(name: string): Promise<CachedDay> {
    // A search may still run when the folder belongs to another process. Then it must open no day.
    this.#demandOpen();
    const known = this.#days.get(name);
    if (known !== undefined) return await known;
    const opening = DayCache.open(join(this.#options.dir, VERSION, `dt=${name}`)).then(
      (cache) => new CachedDay(name, cache, this.#clock.now()),
    );
    this.#days.set(name, opening);
    opening.catch(() => this.#days.delete(name));
    return opening;
  }

  /** A day that is kept from now on, also while other days are still opened. */
  async #usedDay(name: string): Promise<CachedDay> {
    const day = await this.#day(name);
    day.usedAt = this.#clock.now();
    return day;
  }

  /** Fills a day; each day has one filling at a time. What fails is logged, and tried again at the next listing. */
  async #fill(day: CachedDay): Promise<void> {
    await day.fill(() => this.#fills.run(this.#isCurrent(day.name), () => this.#read(day)));
  }

  async #read(day: CachedDay): Promise<void> {
    if (this.#open === null) return;
    const { duck, signal } = this.#open;
    const startedAt = this.#clock.now();
    try {
      if (day.isDamaged) await day.clear();
      const isWhole = day.wholeAt === null || startedAt - day.wholeAt > WHOLE_MS;
      const since = isWhole ? null : this.#clock.date();
      const deleted = await this.#options.deleted();
      const parts = { objects: this.#options.objects, duck, signal, deleted };
      const invalid = await fillDay(parts, { day: day.name, cache: day.cache, since });
      if (invalid > 0) this.#log.warn({ day: day.name, invalid }, 'invalid lines of raw logs are skipped');
      if (signal.aborted) return;
      day.listedAt = this.#clock.now();
      if (isWhole) day.wholeAt = startedAt;
    } catch (err) {
      this.#log.error({ err, day: day.name }, 'raw logs can’t be read for the search; it is tried again');
    }
  }

  async #remake(at: number, err: unknown): Promise<void> {
    const day = await this.#day(dayOf(at));
    if (day.isDamaged || day.wholeAt === null) return; // it is made again already
    this.#log.error({ err, day: day.name }, 'the search cache of a day is damaged and is made again');
    // A filling that runs now began before `isDamaged` was set, so the next one makes the day again.
    day.isDamaged = true;
    void day.settled().then(() => this.#fill(day));
  }

  async #evict(): Promise<void> {
    const days = await Promise.all(this.#days.values());
    const idleAt = this.#clock.now() - IDLE_MS;
    const isOld = ({ usedAt, name }: CachedDay) => usedAt < idleAt && !this.#isCurrent(name);
    const old = days.filter((day) => day.isIdle && isOld(day)).sort((a, b) => a.usedAt - b.usedAt);
    for (const day of old.slice(0, Math.max(0, days.length - this.#options.days))) {
      // A search may have begun with it while others were deleted.
      if (!day.isIdle || !isOld(day)) continue;
      await day.alone(async () => {
        await day.clear();
        // A search that has begun with it meanwhile fills it again.
        if (!isOld(day)) return;
        await rm(day.cache.dir, { recursive: true, force: true });
        this.#days.delete(day.name);
      });
    }
  }

  #isCurrent(name: string): boolean {
    return name >= dayOf(this.#clock.date().getTime() - DAY_MS);
  }
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
