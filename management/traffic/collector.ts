import { randomUUID } from 'node:crypto';
import { limit } from '../../base/limit.ts';
import type { Context } from '../context/context.ts';
import { repeatEvery } from '../context/repeat.ts';
import type { RawObject, RawObjects } from '../raw-objects/raw-objects.ts';
import { dayAt, daysBefore, daysBetween, recentPrefixes } from './calendar.ts';
import { continueDeletions, rewriteObject } from './deletions.ts';
import { collectedUntil, dropLeases, noteCollected, partOf, renewLeases } from './leases.ts';
import { dayOf, type ReadObject } from './object-set.ts';
import { extendCoverage, pruneTraffic } from './retention.ts';
import { notedFrom, noteFaults, noteObjects, objectId, readBefore, storeObjects } from './store.ts';

type Parts = Pick<Context, 'db' | 'log' | 'settings' | 'clock'> & { readonly rawObjects: RawObjects };

const RENEW_MS = 5_000;
/** Keys from yesterday to tomorrow are listed this often, those of older days every hour, for late objects. */
const SWEEP_MS = 600_000;
const OLD_SWEEP_MS = 3_600_000;
/** The time until which all is counted is noted this often. */
const NOTE_MS = 5_000;
/** After a longer pause, new objects may have keys that no longer count as recent. */
const GAP_MS = 180_000;
/** The most octets and objects that are counted in one transaction. */
const SET_OCTETS = 8 * 2 ** 20;
const SET_OBJECTS = 500;
/** The edge writes no larger objects: a delivery has at most 100 messages of 128 KB. */
const LARGEST = 64 * 2 ** 20;
const READS_AT_ONCE = 4;
/** How many ids of counted objects are remembered, so that they need no query. */
const REMEMBERED = 20_000;

/**
 * Reads each object of the raw logs once and adds its records up. All state is in the database: after a kill, another
 * process or the next start continues, and sums are exact (docs/traffic.md).
 */
export class Collector {
  /** The name under which the collector holds its leases. */
  readonly id = randomUUID();
  /** What this process has done since its start. */
  readonly figures = { objects: 0, failed: 0, refused: 0, records: 0, doubledBatches: 0 };
  readonly #parts: Parts;
  readonly #width = limit(READS_AT_ONCE);
  #held: ReadonlySet<number> = new Set();
  /** Parts that the present pass collects: those that were held when it began and at each renewal since. */
  #passing: ReadonlySet<number> = new Set();
  /** Parts whose days were all listed since this process leased them. */
  #swept: ReadonlySet<number> = new Set();
  #known = new Set<string>();
  #polledAt = Number.NEGATIVE_INFINITY;
  #notedAt = Number.NEGATIVE_INFINITY;
  #sweptAt = Number.NEGATIVE_INFINITY;
  #oldSweptAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Collects until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings, log, db } = this.#parts;
    const renewing = repeatEvery(() => this.#renew(), signal, RENEW_MS);
    const pruning = repeatEvery(() => pruneTraffic(this.#parts), signal);
    while (!signal.aborted) {
      try {
        await this.collect(signal);
        // Only the process that has part 0 searches the bucket for the records that are to be deleted.
        if (this.#held.has(0)) await continueDeletions(this.#parts, signal);
      } catch (err) {
        log.error({ err }, 'traffic can’t be collected; it is tried again');
      }
      await clock.sleep(settings.traffic.pollMs, { signal, ref: false });
    }
    await Promise.all([renewing, pruning]);
    await dropLeases(db, this.id).catch((err: unknown) =>
      log.warn({ err }, 'the leases of the raw logs could not be released; they end by themselves'),
    );
  }

  /** One pass: counts the objects that are new. */
  async collect(signal?: AbortSignal): Promise<void> {
    const { clock, db } = this.#parts;
    if (this.#held.size === 0) await this.#renew();
    this.#passing = this.#held;
    const now = clock.date();
    const prefixes = await this.#prefixes(now.getTime(), this.#passing);
    let isWhole = true;
    let isIdle = true;
    for (const prefix of prefixes) {
      for await (const listed of this.#newObjects(prefix)) {
        // A pass over a large backlog takes long: parts that another process has leased meanwhile belong to that
        // process.
        const set = listed.filter((object) => this.#passing.has(partOf(objectId(object))));
        if (set.length === 0) continue;
        isIdle = false;
        // Noted first: if the process is killed after counting, no later pass meets these objects again to note them.
        await extendCoverage(db, set.map(({ key }) => key).sort()[0] ?? null, now);
        if (!(await this.#count(set))) isWhole = false;
        if (signal?.aborted === true) return;
      }
    }
    if (isIdle && this.#polledAt < 0) await extendCoverage(db, null, now);
    if (!isWhole) return;
    const at = clock.now();
    this.#polledAt = at;
    if (this.#sweptAt === Number.POSITIVE_INFINITY) this.#sweptAt = at;
    if (this.#oldSweptAt === Number.POSITIVE_INFINITY) {
      this.#oldSweptAt = at;
      this.#swept = this.#passing;
    } else if (isIdle && at - this.#notedAt < NOTE_MS) return;
    this.#notedAt = at;
    await noteCollected(
      db,
      this.id,
      [...this.#passing].filter((part) => this.#swept.has(part)),
      now,
    );
  }

  /** The prefixes to list now. A sweep that has begun has the time Infinity until all that it finds is counted. */
  async #prefixes(now: number, held: ReadonlySet<number>): Promise<string[]> {
    const { clock, db, settings } = this.#parts;
    const prefixesOf = (days: readonly string[]) => {
      // An object may be delivered anew with records that were deleted from it: then it must be read again.
      this.#known.clear();
      return days.map((day) => `raw/dt=${day}/`);
    };
    const isNew = [...held].some((part) => !this.#swept.has(part));
    const isDue = (at: number, every: number) => at === Number.POSITIVE_INFINITY || clock.now() - at > every;
    const gap = clock.now() - this.#polledAt > GAP_MS;
    if (isNew || isDue(this.#oldSweptAt, OLD_SWEEP_MS)) {
      this.#oldSweptAt = Number.POSITIVE_INFINITY;
      this.#sweptAt = Number.POSITIVE_INFINITY;
      const until = (await collectedUntil(db))?.getTime() ?? now;
      const from = daysBefore(Math.min(now, until), settings.traffic.lateDays);
      const first = await notedFrom(db);
      const days = daysBetween(from, daysBefore(now, -1)).filter((day) => day >= first);
      return prefixesOf(days);
    }
    if (gap || isDue(this.#sweptAt, SWEEP_MS)) {
      this.#sweptAt = Number.POSITIVE_INFINITY;
      return prefixesOf(daysBetween(daysBefore(now, 1), daysBefore(now, -1)));
    }
    return recentPrefixes(now);
  }

  /** Objects of this process's parts that were not read before, in sets that fit into the memory. */
  async *#newObjects(prefix: string): AsyncGenerator<RawObject[]> {
    let set: RawObject[] = [];
    let octets = 0;
    for await (const page of this.#pages(prefix)) {
      for (const object of page) {
        if (set.length > 0 && (octets + object.size > SET_OCTETS || set.length >= SET_OBJECTS)) {
          yield set;
          set = [];
          octets = 0;
        }
        set.push(object);
        octets += object.size;
      }
    }
    if (set.length > 0) yield set;
  }

  async *#pages(prefix: string): AsyncGenerator<RawObject[]> {
    const { db, rawObjects } = this.#parts;
    let page = new Map<string, RawObject>();
    const unread = async () => {
      const read = await readBefore(db, [...page.keys()]);
      for (const id of read) this.#remember(id);
      const objects = [...page].filter(([id]) => !read.has(id)).map(([, object]) => object);
      page = new Map();
      return objects;
    };
    for await (const object of rawObjects.list(prefix)) {
      const id = objectId(object);
      if (!this.#passing.has(partOf(id)) || this.#known.has(id)) continue;
      page.set(id, object);
      if (page.size >= SET_OBJECTS) yield await unread();
    }
    yield await unread();
  }

  #remember(id: string): void {
    if (this.#known.size >= REMEMBERED) this.#known = new Set([...this.#known].slice(REMEMBERED / 2));
    this.#known.add(id);
  }

  /** `false`: some of the objects can't be read. */
  async #count(set: readonly RawObject[]): Promise<boolean> {
    const { db, log, rawObjects } = this.#parts;
    const foreign = set.filter(({ key, size }) => dayOf(key) === null || size > LARGEST);
    if (foreign.length > 0) await this.#refuse(foreign);
    const bodies = await Promise.all(
      set
        .filter((object) => !foreign.includes(object))
        .map((object) =>
          this.#width(async () => {
            try {
              return { ...object, body: await rawObjects.read(object.key) };
            } catch (err) {
              this.figures.failed += 1;
              log.warn({ err, key: object.key }, 'an object of the raw logs can’t be read');
              return null;
            }
          }),
        ),
    );
    // An object that is gone was removed on purpose.
    const objects = bodies.filter((one): one is ReadObject => one !== null && one.body !== null);
    if (objects.length > 0) {
      const { records, doubledBatches, faults, deletedIn } = await storeObjects(db, objects);
      this.figures.objects += objects.length;
      this.figures.records += records;
      this.figures.doubledBatches += doubledBatches;
      for (const object of objects) {
        if (!deletedIn.includes(object.key)) this.#remember(objectId(object));
      }
      for (const fault of faults)
        log.warn(fault, 'invalid lines of an object of the raw logs are not counted');
      for (const key of deletedIn) await rewriteObject(this.#parts, key);
      log.debug({ objects: objects.length, records }, 'records were counted');
    }
    return !bodies.includes(null);
  }

  async #refuse(objects: readonly RawObject[]): Promise<void> {
    const { db, log, clock } = this.#parts;
    const today = dayAt(clock.date().getTime());
    this.figures.refused += objects.length;
    await db.transaction().execute(async (trx) => {
      await noteObjects(trx, objects, today);
      await noteFaults(
        trx,
        objects.map(({ key }) => ({ key, kind: 'object', lines: 0 })),
      );
    });
    for (const { key, size } of objects)
      log.warn({ key, size }, 'an object in the bucket is not one that the edge writes; it is not counted');
  }

  async #renew(): Promise<void> {
    const { db, log } = this.#parts;
    try {
      const held = await renewLeases(db, this.id);
      this.#swept = new Set([...this.#swept].filter((part) => held.has(part)));
      // A lost part is no longer of this pass, even if it comes back: its objects must be listed anew.
      this.#passing = new Set([...this.#passing].filter((part) => held.has(part)));
      this.#held = held;
    } catch (err) {
      log.error({ err }, 'the parts of the raw logs can’t be leased');
    }
  }
}
