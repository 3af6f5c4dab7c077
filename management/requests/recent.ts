import { isAskedFor, type RequestFilter } from './rows/filter.ts';
import type { KeyedRow } from './rows/record.ts';

/** Rows kept of one container, and of all together. A row takes about half a kilobyte. */
const MOST_OF_ONE = 6_000;
const MOST = 40_000;
/** After this time, a row is in the bucket. */
const LONGEST_MS = 15 * 60_000;
/** Batches whose repetition is noticed. */
const MOST_BATCHES = 8_192;

/** Limits of the rows in memory; tests set smaller ones. */
interface RecentLimits {
  readonly ofOne: number;
  readonly all: number;
}

/**
 * The newest requests of each container, in the memory of this process: what live streams read, and what search shows
 * before it is in an object of the bucket. This memory may be lost at any time, because the objects of the bucket have
 * all requests.
 */
export class RecentRequests {
  readonly #limits: RecentLimits;
  /** Rows by container id in the order of arrival; `''`: of unknown hosts. */
  readonly #rows = new Map<string, { readonly arrivedAt: number; readonly row: KeyedRow }[]>();
  #count = 0;
  /** Indexes of the rows seen, by batch. */
  readonly #seen = new Map<string, Set<number>>();

  constructor(limits: RecentLimits = { ofOne: MOST_OF_ONE, all: MOST }) {
    this.#limits = limits;
  }

  /** Keeps the rows that are new, and returns them. `now` in milliseconds since the epoch. */
  add(rows: readonly KeyedRow[], now: number): KeyedRow[] {
    const fresh = rows.filter((row) => this.#isNew(row));
    for (const row of fresh) {
      const container = row.row.container ?? '';
      const own = this.#rows.get(container) ?? [];
      own.push({ arrivedAt: now, row });
      this.#rows.set(container, own);
      this.#count += 1;
      if (own.length > this.#limits.ofOne) this.#drop(container, own, 1);
    }
    while (this.#count > this.#limits.all) this.#dropOfLongest();
    return fresh;
  }

  /** Drops what is older than a quarter of an hour. */
  expire(now: number): void {
    for (const [container, own] of this.#rows) {
      const kept = own.findIndex(({ arrivedAt }) => now - arrivedAt < LONGEST_MS);
      this.#drop(container, own, kept === -1 ? own.length : kept);
    }
  }

  /** The rows that match, one container after another, each in the order of arrival. */
  find(filter: RequestFilter): KeyedRow[] {
    const lists =
      filter.containers === null
        ? [...this.#rows.values()]
        : filter.containers.flatMap((id) => {
            const own = this.#rows.get(id);
            return own === undefined ? [] : [own];
          });
    return lists.flat().flatMap(({ row }) => (isAskedFor(row.row, filter) ? [row] : []));
  }

  /** The rows of the container that arrived after the row `id`, or `null` if that is not here any more. */
  after(container: string, id: string): KeyedRow[] | null {
    const own = this.#rows.get(container) ?? [];
    const at = own.findIndex(({ row }) => row.row.id === id);
    return at === -1 ? null : own.slice(at + 1).map(({ row }) => row);
  }

  /**
   * Drops rows of the longest list, so that a busy site never displaces a quiet one's rows. Drops a quarter of the list
   * at once, because finding the longest list takes time.
   */
  #dropOfLongest(): void {
    let longest: [string, { readonly arrivedAt: number; readonly row: KeyedRow }[]] | null = null;
    for (const one of this.#rows) if (longest === null || one[1].length > longest[1].length) longest = one;
    if (longest !== null) this.#drop(...longest, Math.ceil(longest[1].length / 4));
  }

  #drop(container: string, rows: unknown[], count: number): void {
    rows.splice(0, count);
    this.#count -= count;
    if (rows.length === 0) this.#rows.delete(container);
  }

  #isNew({ batch, index }: KeyedRow): boolean {
    const seen = this.#seen.get(batch) ?? new Set();
    if (seen.has(index)) return false;
    seen.add(index);
    this.#seen.set(batch, seen);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_BATCHES && oldest !== undefined) this.#seen.delete(oldest);
    return true;
  }
}
