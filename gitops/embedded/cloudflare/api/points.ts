import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import type { Table, TimeRange } from '../analytics/sql/query.ts';
import type { Column, Value } from '../analytics/sql/values.ts';
import { transaction } from './state.ts';

/** A data point as the worker has written it; `time` in milliseconds since 1970. */
interface WrittenPoint {
  readonly dataset: string;
  readonly time: number;
  readonly index: string;
  readonly blobs: readonly string[];
  readonly doubles: readonly number[];
}

/** The limits above which a row counts for several points (docs/facts.md, Cloudflare Workers). */
export interface SamplingLimits {
  /**
   * If an index gets up to this many points in a window, all are stored. Beyond that, each doubling of the points
   * adds rows: about half as many as this limit.
   */
  readonly points: number;
  readonly seconds: number;
  /** The most rows that a query reads. If there are more, it reads a tenth of them, a hundredth … */
  readonly rows: number;
}

interface PointsOptions {
  readonly now: () => Date;
  readonly limits: SamplingLimits;
  /** From 0 to below 1. Default: `Math.random`. */
  readonly random?: () => number;
}

const FIELDS = 20;
const MONTHS = 3;
const SWEEP_MS = 3_600_000;

const numbered = (name: string, type: Column['type']): Column[] =>
  Array.from({ length: FIELDS }, (_, index) => ({ name: `${name}${index + 1}`, type }));
const COLUMNS: readonly Column[] = [
  { name: 'dataset', type: 'String' },
  { name: 'timestamp', type: 'DateTime' },
  { name: '_sample_interval', type: 'UInt32' },
  { name: 'index1', type: 'String' },
  ...numbered('blob', 'String'),
  ...numbered('double', 'Float64'),
];

/** Written by this class alone and read by the thousand, so it is not validated. */
interface StoredPoint {
  readonly time: number;
  readonly sampled: number;
  readonly name: string;
  /** JSON, which has no NaN. */
  readonly fields: string;
}
type Fields = [blobs: string[], doubles: (number | null)[]];

const EMPTY = Array.from({ length: FIELDS }, () => '');
const ZERO = Array.from({ length: FIELDS }, () => 0);
const total = z.object({ rows: z.number() });
const named = z.object({ dataset: z.string() });

/**
 * The data points of Analytics Engine, sampled as Cloudflare’s: on write where one index gets more than its limit in a
 * window, on read where a query would read too many rows. Either way, each row says how many points it counts for.
 */
export class Points {
  readonly #db: DatabaseSync;
  readonly #now: () => Date;
  readonly #limits: SamplingLimits;
  readonly #random: () => number;
  /** Points of this window by dataset and index. */
  #written = new Map<string, number>();
  #window = 0;
  #sweptAt = 0;

  constructor(db: DatabaseSync, { now, limits, random = Math.random }: PointsOptions) {
    this.#db = db;
    this.#now = now;
    this.#limits = limits;
    this.#random = random;
  }

  write(points: readonly WrittenPoint[]): void {
    const insert = this.#db.prepare(
      'INSERT INTO points (dataset, time, name, sampled, level, fields) VALUES (?, ?, ?, ?, ?, ?)',
    );
    transaction(this.#db, () => {
      this.#sweep();
      for (const { dataset, time, index, blobs, doubles } of points) {
        const interval = this.#interval(dataset, index, time);
        if (interval > 1 && this.#random() >= 1 / interval) continue;
        const fields = JSON.stringify([blobs, doubles]);
        insert.run(dataset, Math.floor(time / 1_000), index, interval, this.#random(), fields);
      }
    });
  }

  /** How many points a row of this index counts for now: twice as many for each doubling beyond the limit. */
  #interval(dataset: string, index: string, time: number): number {
    const window = Math.floor(time / (this.#limits.seconds * 1_000));
    if (window > this.#window) {
      this.#window = window;
      this.#written = new Map();
    }
    const key = JSON.stringify([dataset, index]);
    const count = (this.#written.get(key) ?? 0) + 1;
    this.#written.set(key, count);
    const { points } = this.#limits;
    return count <= points ? 1 : 2 ** Math.ceil(Math.log2(count / points));
  }

  /** The oldest second that is kept. */
  #oldest(): number {
    const date = this.#now();
    date.setUTCMonth(date.getUTCMonth() - MONTHS);
    return Math.floor(date.getTime() / 1_000);
  }

  #sweep(): void {
    const time = this.#now().getTime();
    if (time - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = time;
    this.#db.prepare('DELETE FROM points WHERE time < ?').run(this.#oldest());
  }

  /** Datasets with points, by name. */
  datasets(): string[] {
    return this.#db
      .prepare('SELECT DISTINCT dataset FROM points ORDER BY dataset')
      .all()
      .map((one) => named.parse(one).dataset);
  }

  /** `null`: no dataset of this name has points. */
  table(dataset: string): Table | null {
    if (!this.datasets().includes(dataset)) return null;
    return { columns: COLUMNS, rows: (range) => this.#rows(dataset, range) };
  }

  *#rows(dataset: string, range: TimeRange): Generator<Value[]> {
    const from = Math.max(range.from, this.#oldest());
    const to = Math.min(range.to, Number.MAX_SAFE_INTEGER);
    const where = 'FROM points WHERE dataset = ? AND time BETWEEN ? AND ?';
    const count = total.parse(
      this.#db.prepare(`SELECT count(*) AS rows ${where}`).get(dataset, from, to),
    ).rows;
    const resolution = 10 ** Math.max(0, Math.ceil(Math.log10(count / this.#limits.rows)));
    const found = this.#db
      .prepare(`SELECT time, sampled, name, fields ${where} AND level < ?`)
      .iterate(dataset, from, to, 1 / resolution);
    for (const one of found) {
      const { time, sampled, name, fields } = one as unknown as StoredPoint; // as `write` has stored it
      const [blobs, doubles] = JSON.parse(fields) as Fields; // likewise
      yield [
        dataset,
        time,
        sampled * resolution,
        name,
        ...[...blobs, ...EMPTY].slice(0, FIELDS),
        ...[...doubles.map((value) => value ?? Number.NaN), ...ZERO].slice(0, FIELDS),
      ];
    }
  }
}
