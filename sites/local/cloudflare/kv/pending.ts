import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';

/** A write that the worker doesn't see yet. */
const pendingRow = z.object({
  number: z.number(),
  name: z.string(),
  /** `null`: the key was deleted. */
  value: z.string().nullable(),
  metadata: z
    .string()
    .nullable()
    .transform((text) =>
      text === null ? undefined : z.record(z.string(), z.unknown()).parse(JSON.parse(text)),
    ),
  /** Seconds since the epoch. */
  expiration: z.number().nullable(),
  /** Milliseconds since the epoch. */
  due: z.number(),
});
export type PendingWrite = z.output<typeof pendingRow>;

const dueRow = z.object({ due: z.number().nullable() });

/** The pending writes of one namespace: on disk, because the API has acknowledged them. At most one for each key. */
export function pendingWrites(db: DatabaseSync, namespace: string) {
  const every = db.prepare('SELECT * FROM kv_pending WHERE namespace = ? ORDER BY due, number');
  const one = db.prepare('SELECT * FROM kv_pending WHERE namespace = ? AND name = ?');
  const until = db.prepare(
    'SELECT * FROM kv_pending WHERE namespace = ? AND due <= ? ORDER BY due, number LIMIT 100',
  );
  const next = db.prepare('SELECT min(due) AS due FROM kv_pending WHERE namespace = ?');
  // A key that is written again and again still arrives when its first write was due.
  const insert = db.prepare(
    `INSERT OR REPLACE INTO kv_pending (namespace, name, value, metadata, expiration, due)
     SELECT ?1, ?2, ?3, ?4, ?5, min(?6, coalesce((SELECT due FROM kv_pending WHERE namespace = ?1 AND name = ?2), ?6))`,
  );
  const remove = db.prepare('DELETE FROM kv_pending WHERE number = ?');
  return {
    all: (): PendingWrite[] => every.all(namespace).map((row) => pendingRow.parse(row)),
    of(name: string): PendingWrite | null {
      const row = one.get(namespace, name);
      return row === undefined ? null : pendingRow.parse(row);
    },
    /** Up to a hundred that are due at this time, the oldest first. */
    due: (now: number): PendingWrite[] => until.all(namespace, now).map((row) => pendingRow.parse(row)),
    nextDue: (): number | null => dueRow.parse(next.get(namespace)).due,
    add({ name, value, metadata, expiration, due }: Omit<PendingWrite, 'number'>): void {
      const text = metadata === undefined ? null : JSON.stringify(metadata);
      insert.run(namespace, name, value, text, expiration, due);
    },
    remove: ({ number }: PendingWrite): void => void remove.run(number),
  };
}
