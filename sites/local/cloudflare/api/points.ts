import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { transaction } from './state.ts';

/** Cloudflare keeps data points for three months. */
const KEPT_MONTHS = 3;

const row = z.object({ point: z.string() });

/** Keeps data points of Analytics Engine, each whole, and deletes those that are too old. */
export function writePoints(
  db: DatabaseSync,
  points: readonly { readonly dataset: string; readonly time: number }[],
  now: Date,
): void {
  const oldest = new Date(now);
  oldest.setUTCMonth(oldest.getUTCMonth() - KEPT_MONTHS);
  const insert = db.prepare('INSERT INTO data_points (dataset, time, point) VALUES (?, ?, ?)');
  transaction(db, () => {
    db.prepare('DELETE FROM data_points WHERE time < ?').run(oldest.getTime());
    for (const point of points) insert.run(point.dataset, point.time, JSON.stringify(point));
  });
}

/** The data points of a dataset in the order in which they were written. */
export function readPoints(db: DatabaseSync, dataset: string): unknown[] {
  const rows = db.prepare('SELECT point FROM data_points WHERE dataset = ? ORDER BY rowid').all(dataset);
  return rows.map((one) => JSON.parse(row.parse(one).point));
}
