import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RELEASE } from '../../../base/release.ts';
import { connectEmbedded } from '../../../management/db/connect.ts';
import type { Database } from '../../../management/db/database.ts';
import { appliedTo, migrate } from '../../../management/db/migrate.ts';
import { countFreePorts, fitPool, leasePorts } from '../../../management/ports/ports.repository.ts';
import { prepare } from '../../../management/prepare.ts';
import { migratedDatabase } from '../../support/management/embedded.ts';
import { lendEngine } from '../../support/management/engines.ts';

let db: Database;
beforeEach(async () => {
  db = await migratedDatabase();
});
afterEach(() => db.destroy());

const insert = (target: Database, id: string) =>
  target
    .insertInto('clients')
    .values({ id: `7c9e6679-7425-40de-944b-e07fc1f90a${id}`, name: id })
    .execute();
const names = async () =>
  (await db.selectFrom('clients').select('name').orderBy('name').execute()).map(({ name }) => name);

test('an embedded database separates transactions from concurrent queries on its one connection', async () => {
  const rolledBack = db.transaction().execute(async (trx) => {
    await insert(trx, '01');
    throw new Error('no');
  });
  const beside = insert(db, '02');
  const committed = db.transaction().execute((trx) => insert(trx, '03'));
  await expect(rolledBack).rejects.toThrow('no');
  await Promise.all([beside, committed]);
  expect(await names()).toEqual(['02', '03']);
});

test('an embedded database keeps its rows over a restart, and migrates its schema once', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-embedded-'));
  try {
    for (const again of [false, true]) {
      await db.destroy();
      db = connectEmbedded(join(dir, 'data'));
      await migrate(db);
      if (!again) await insert(db, '01');
    }
    expect(await names()).toEqual(['01']);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});

test('a start finds out by two queries that no migration is left', async () => {
  await db.selectFrom('clients').select('id').execute();
  const queries = vi.spyOn(db.getExecutor(), 'executeQuery');
  await migrate(db);
  expect(queries).toHaveBeenCalledTimes(2);
});

test('a start runs a migration that is missing, and names one that only a newer version knows', async () => {
  await sql`delete from kysely_migration where name >= '0030'`.execute(db);
  await expect(migrate(db)).rejects.toThrow('0030_place_holds could not be applied to the database');
  await sql`insert into kysely_migration values
    ('0030_place_holds', now()), ('0031_unicode_names', now()),
    ('0032_host_refusals', now()), ('9999_later', now())`.execute(db);
  await expect(migrate(db)).rejects.toThrow(
    'the database was made by a newer version of Tagyard (migration 9999_later): run that version, or restore a copy of the database from before its upgrade',
  );
});

test('a schema of a newer version is used as it is, if its migrations leave room for this one', async () => {
  const [major, minor] = RELEASE.split('.').map(Number);
  const later = async (name: string) => {
    await sql`alter table clients add column if not exists later text`.execute(db);
    await sql`insert into kysely_migration values (${name}, now())`.execute(db);
  };
  await later(`9998_later@${major}.${minor}`);
  await prepare(db, db, { host: 'tag-1', ports: { first: 20000, last: 20005 } });
  await insert(db, '07');
  expect(await appliedTo(db)).toContain(`9998_later@${major}.${minor}`);
  await later(`9999_later@${major}.${(minor ?? 0) + 1}`);
  await expect(migrate(db)).rejects.toThrow('the database was made by a newer version of Tagyard');
});

test('an engine that is used again has the content of a new one', async () => {
  const content = async () => {
    const tables = await sql<{ name: string }>`
      select tablename as name from pg_tables where schemaname = 'public' order by 1`.execute(db);
    const rows = await Promise.all(
      tables.rows.map(({ name }) => sql`select t.* from ${sql.table(name)} t order by t::text`.execute(db)),
    );
    const sequences = await sql`select * from pg_sequences order by sequencename`.execute(db);
    return { tables, rows: rows.map((one) => one.rows), sequences: sequences.rows };
  };
  const first = await content();
  await fitPool(db, 'tag-1', { first: 20000, last: 20005 });
  await insert(db, '01');
  await sql`select nextval('event_positions')`.execute(db);
  await sql`delete from kysely_migration`.execute(db);
  await sql`update traffic_leases set collected_until = now()`.execute(db);
  expect(await content()).not.toEqual(first);
  await db.destroy();
  db = await migratedDatabase();
  expect(await content()).toEqual(first);

  await sql`alter table clients add column more text`.execute(db);
  await sql`create function more() returns integer language sql as $$ select 1 $$`.execute(db);
  await db.destroy();
  db = await migratedDatabase();
  expect(await content()).toEqual(first);
  await expect(sql`select more()`.execute(db)).rejects.toThrow('does not exist');
});

test.each([
  'alter table clients enable row level security',
  'alter table clients set (fillfactor = 50)',
  'alter sequence event_positions increment by 5',
  'alter role current_user set extra_float_digits = 0',
])('an engine is not used again after: %s', async (statement) => {
  const content = async () => {
    const tables =
      await sql`select relrowsecurity, reloptions from pg_class where relname = 'clients'`.execute(db);
    const sequences = await sql`select * from pg_sequence order by seqrelid`.execute(db);
    const settings = await sql`select * from pg_db_role_setting`.execute(db);
    return [tables.rows, sequences.rows, settings.rows];
  };
  const first = await content();
  await sql.raw(statement).execute(db);
  expect(await content()).not.toEqual(first);
  await db.destroy();
  db = await migratedDatabase();
  expect(await content()).toEqual(first);
});

test('an engine that was closed twice is not lent to two databases', async () => {
  await db.destroy();
  const closed = await lendEngine(() => Promise.reject(new Error('an engine is idle')));
  await Promise.all([closed.close(), closed.close()]);
  db = await migratedDatabase();
  await insert(db, '01');
  await using other = await migratedDatabase();
  expect(await other.selectFrom('clients').selectAll().execute()).toEqual([]);
});

test('nothing reaches an engine through a database that was closed', async () => {
  await db.destroy();
  const closed = await lendEngine(() => Promise.reject(new Error('an engine is idle')));
  await closed.close();
  expect(closed.closed).toBe(true);
  expect(() => closed.query('select 1')).toThrow('the database is closed');
});

test('a start fits the port pool to its range without overlap, and keeps leased pairs', async () => {
  const pairs = async () =>
    (await db.selectFrom('port_pool').select('processing').orderBy('processing').execute()).map(
      ({ processing }) => processing,
    );
  await fitPool(db, 'tag-1', { first: 20000, last: 20005 });
  await fitPool(db, 'tag-1', { first: 20000, last: 20005 });
  expect(await pairs()).toEqual([20000, 20002, 20004]);

  await insert(db, '01');
  const container = '3f0a6679-7425-40de-944b-e07fc1f90001';
  const client_id = '7c9e6679-7425-40de-944b-e07fc1f90a01';
  const row = { id: container, site_id: 'a', client_id, status: 'active' as const, manifest: '{}' };
  await db.insertInto('containers').values(row).execute();
  expect(await leasePorts(db, 'tag-1', container)).toEqual({ processing: 20000, preview: 20001 });
  expect(await leasePorts(db, 'tag-2', container)).toBeNull();

  // The new range starts with an odd port and has an odd number of ports.
  await fitPool(db, 'tag-1', { first: 20003, last: 20009 });
  expect(await pairs()).toEqual([20000, 20004, 20007]);
  expect(await countFreePorts(db)).toBe(2);
});
