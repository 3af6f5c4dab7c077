import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import type { KvStore } from '../api/stores.ts';

/** Sorts after every other character in byte order, so a prefix with it appended is above all names with that prefix. */
const LAST_CHARACTER = '\u{10ffff}';

const valueRow = z.object({ value: z.string() });
const keyRow = z.object({
  name: z.string(),
  metadata: z.string().nullable(),
  expiration: z.number().nullable(),
});

/** A namespace in the emulator's own database, for namespaces without a binding in the worker and for tests. */
export function sqliteKvStore(db: DatabaseSync, namespaceId: string, now: () => Date): KvStore {
  const seconds = () => Math.floor(now().getTime() / 1000);
  return {
    async get(key) {
      const row = db
        .prepare(
          'SELECT value FROM kv WHERE namespace = ? AND name = ? AND (expiration IS NULL OR expiration > ?)',
        )
        .get(namespaceId, key, seconds());
      return row === undefined ? null : valueRow.parse(row).value;
    },
    async put(key, value, { metadata, expiration, expirationTtl } = {}) {
      const until = expiration ?? (expirationTtl === undefined ? null : seconds() + expirationTtl);
      db.prepare(
        'INSERT OR REPLACE INTO kv (namespace, name, value, metadata, expiration) VALUES (?, ?, ?, ?, ?)',
      ).run(namespaceId, key, value, metadata === undefined ? null : JSON.stringify(metadata), until);
    },
    async delete(key) {
      db.prepare('DELETE FROM kv WHERE namespace = ? AND name = ?').run(namespaceId, key);
    },
    async list({ prefix = '', limit = 1000, cursor } = {}) {
      const after = cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString();
      const rows = db
        .prepare(
          `SELECT name, metadata, expiration FROM kv
           WHERE namespace = ? AND name > ? AND name >= ? AND name < ? AND (expiration IS NULL OR expiration > ?)
           ORDER BY name LIMIT ?`,
        )
        .all(namespaceId, after, prefix, `${prefix}${LAST_CHARACTER}`, seconds(), limit + 1)
        .map((row) => keyRow.parse(row));
      const keys = rows.slice(0, limit).map(({ name, metadata, expiration }) => ({
        name,
        ...(metadata === null ? {} : { metadata: JSON.parse(metadata) as unknown }),
        ...(expiration === null ? {} : { expiration }),
      }));
      const last = keys.at(-1);
      return rows.length > limit && last !== undefined
        ? { keys, cursor: Buffer.from(last.name).toString('base64url'), complete: false }
        : { keys, complete: true };
    },
  };
}
