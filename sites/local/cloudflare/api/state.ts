import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';

const SCHEMA = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS account (id TEXT PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS zones (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_on TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS records (
    id TEXT PRIMARY KEY, zone TEXT NOT NULL REFERENCES zones, name TEXT NOT NULL, type TEXT NOT NULL,
    content TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (zone, name, type, content));
  CREATE TABLE IF NOT EXISTS routes (
    id TEXT PRIMARY KEY, zone TEXT NOT NULL REFERENCES zones, pattern TEXT NOT NULL, script TEXT, UNIQUE (zone, pattern));
  CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, created_on TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS queues (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_on TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS consumers (
    id TEXT PRIMARY KEY, queue TEXT NOT NULL REFERENCES queues, script TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (queue, script));
  CREATE TABLE IF NOT EXISTS namespaces (id TEXT PRIMARY KEY, title TEXT NOT NULL UNIQUE);
  CREATE TABLE IF NOT EXISTS kv (
    namespace TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, metadata TEXT, expiration INTEGER,
    PRIMARY KEY (namespace, name)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS kv_pending (
    number INTEGER PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, value TEXT, metadata TEXT,
    expiration INTEGER, due INTEGER NOT NULL, UNIQUE (namespace, name));
  CREATE INDEX IF NOT EXISTS kv_pending_due ON kv_pending (namespace, due, number);
  CREATE TABLE IF NOT EXISTS domains (
    id TEXT PRIMARY KEY, zone TEXT NOT NULL REFERENCES zones, hostname TEXT NOT NULL UNIQUE, service TEXT NOT NULL,
    environment TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS tag_gateways (zone TEXT PRIMARY KEY REFERENCES zones, config TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS scripts (name TEXT PRIMARY KEY, settings TEXT NOT NULL, created_on TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS versions (
    id TEXT PRIMARY KEY, script TEXT NOT NULL, number INTEGER NOT NULL, created_on TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (script, number));
  CREATE TABLE IF NOT EXISTS deployments (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, script TEXT NOT NULL, created_on TEXT NOT NULL,
    body TEXT NOT NULL);
  DROP TABLE IF EXISTS points;
  CREATE TABLE IF NOT EXISTS data_points (dataset TEXT NOT NULL, time INTEGER NOT NULL, point TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS data_points_time ON data_points (time);
`;

/** Opens the emulator's database. Each statement is on disk when it returns; `:memory:` keeps nothing. */
export function openState(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  db.exec(SCHEMA);
  return db;
}

/** Cloudflare's identifiers: 32 hex digits. */
export function newId(): string {
  return randomBytes(16).toString('hex');
}

/** Runs `work` in a transaction and rolls back if it throws. */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

const identified = z.object({ id: z.string() });

/** The emulator's only account, created at first use. */
export function accountId(db: DatabaseSync): string {
  db.prepare('INSERT INTO account (id) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM account)').run(newId());
  return identified.parse(db.prepare('SELECT id FROM account').get()).id;
}

export const zoneRow = z.object({ id: z.string(), name: z.string(), created_on: z.string() });
export type Zone = z.infer<typeof zoneRow>;

/** The zone of that name, created if missing. */
export function ensureZone(db: DatabaseSync, name: string, now: Date): Zone {
  db.prepare('INSERT OR IGNORE INTO zones (id, name, created_on) VALUES (?, ?, ?)').run(
    newId(),
    name,
    now.toISOString(),
  );
  return zoneRow.parse(db.prepare('SELECT * FROM zones WHERE name = ?').get(name));
}

const namespaceRow = z.object({ id: z.string(), title: z.string() });
export type Namespace = z.infer<typeof namespaceRow>;

export function listNamespaces(db: DatabaseSync): Namespace[] {
  return db
    .prepare('SELECT id, title FROM namespaces ORDER BY title')
    .all()
    .map((row) => namespaceRow.parse(row));
}

/** The namespace of that title, created if missing. */
export function ensureNamespace(db: DatabaseSync, title: string): Namespace {
  db.prepare('INSERT OR IGNORE INTO namespaces (id, title) VALUES (?, ?)').run(newId(), title);
  return namespaceRow.parse(db.prepare('SELECT id, title FROM namespaces WHERE title = ?').get(title));
}
