import type { DayCache } from './day-cache.ts';

/** An open day of the cache. Only one piece of work writes to it at a time: a filling, or something else. */
export class CachedDay {
  readonly name: string;
  readonly cache: DayCache;
  /** When it was last listed, and last listed as a whole, by `clock.now()`; `null`: not since the start. */
  listedAt: number | null = null;
  wholeAt: number | null = null;
  usedAt: number;
  /** A query has found damage: the next filling makes the day again. */
  isDamaged = false;
  /** The last attempt to delete requests from it has failed. */
  hasFailedErasure = false;
  /** What writes to the day now. Never rejects. */
  #writing: Promise<void> | null = null;

  constructor(name: string, cache: DayCache, usedAt: number) {
    this.name = name;
    this.cache = cache;
    this.usedAt = usedAt;
  }

  get isIdle(): boolean {
    return this.#writing === null;
  }

  /** Begins a filling; if something writes to the day already, only waits for that. */
  async fill(filling: () => Promise<void>): Promise<void> {
    if (this.#writing === null) await this.#write(filling);
    else await this.#writing;
  }

  /** Runs this work in all cases, once nothing else writes to the day. */
  async alone(work: () => Promise<void>): Promise<void> {
    // Others wait for the same work, and may begin theirs first when it ends.
    while (this.#writing !== null) await this.#writing;
    await this.#write(work);
  }

  /** Waits for what writes to the day now. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Empties the day, so that the next filling reads all of it. Call it only in work that writes to the day. */
  async clear(): Promise<void> {
    this.wholeAt = null;
    await this.cache.clear();
    this.isDamaged = false;
    this.hasFailedErasure = false;
  }

  async #write(work: () => Promise<void>): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#writing = done.promise;
    try {
      await work();
    } finally {
      this.#writing = null;
      done.resolve();
    }
  }
}
