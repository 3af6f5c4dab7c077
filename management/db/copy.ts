import { sql, type Transaction } from 'kysely';
import type { Database, Tables } from './database.ts';
import { appliedTo, MIGRATIONS, migrate } from './migrate.ts';

/** Rows of one table, each in PostgreSQL's text form of a row, which keeps every type exactly. */
export interface Rows {
  readonly table: string;
  readonly rows: readonly string[];
}

/** What is needed beside the rows. */
export interface DatabaseVersion {
  /** The newest migration of the schema. */
  readonly migration: string;
  /** By sequence, the last number that was given. */
  readonly sequences: Readonly<Record<string, string>>;
}

/** A batch is held in memory, and a row may have a manifest of 256 KiB. */
const BATCH = 200;
/** The schema's own tables, and logins: a copy that is read by a stranger must let nobody in. */
const LEFT_OUT: ReadonlySet<string> = new Set(['kysely_migration', 'kysely_migration_lock', 'sessions']);

/** Reads all tables in one snapshot, in an order in which they can be filled. */
export async function readTables(
  owner: Database,
  write: (rows: Rows) => Promise<void>,
): Promise<DatabaseVersion> {
  return await owner
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (trx) => {
      for (const table of await tablesOf(trx)) {
        await sql`declare copied no scroll cursor for select one::text as row from ${sql.table(table)} as one`.execute(
          trx,
        );
        for (;;) {
          const { rows } = await sql<{ row: string }>`fetch ${sql.lit(BATCH)} from copied`.execute(trx);
          if (rows.length === 0) break;
          await write({ table, rows: rows.map(({ row }) => row) });
        }
        await sql`close copied`.execute(trx);
      }
      const { rows } = await sql<{ name: string; last: string }>`
        select sequencename as name, last_value::text as last from pg_sequences
        where schemaname = 'public' and last_value is not null`.execute(trx);
      const migration = (await appliedTo(trx)).toSorted().at(-1);
      if (migration === undefined) throw new Error('the database has no schema of Tagyard yet');
      return { migration, sequences: Object.fromEntries(rows.map(({ name, last }) => [name, last])) };
    });
}

/**
 * Fills an empty database with a copy, in one transaction, with the schema that the copy has. Throws where the database
 * isn't empty.
 */
export async function fillTables(
  owner: Database,
  { migration, sequences }: DatabaseVersion,
  copied: AsyncIterable<Rows>,
): Promise<void> {
  if (!isKnown(migration)) {
    throw new Error(
      `the backup was made by a newer version of Tagyard (migration ${migration}): restore it with that version`,
    );
  }
  await demandEmpty(owner, migration);
  await migrate(owner, migration);
  await owner.transaction().execute(async (trx) => {
    const tables = await tablesOf(trx);
    const names = sql.join(tables.map((table) => sql.table(table)));
    // The schema brings some rows along, such as an installation's key.
    await sql`truncate ${names}`.execute(trx);
    for (const table of tables) await sql`alter table ${sql.table(table)} disable trigger user`.execute(trx);
    for await (const { table, rows } of copied) await insert(trx, table, rows);
    for (const [name, last] of Object.entries(sequences)) {
      await sql`select setval(${name}::regclass, ${last}::bigint)`.execute(trx);
    }
    for (const table of tables) await sql`alter table ${sql.table(table)} enable trigger user`.execute(trx);
  });
}

async function insert(trx: Transaction<Tables>, table: string, rows: readonly string[]): Promise<void> {
  const { rows: columns } = await sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''
    order by attnum`.execute(trx);
  const names = columns.map(({ name }) => sql.ref(name));
  const values = columns.map(({ name }) => sql`(one).${sql.ref(name)}`);
  // Without the offset, each column would parse the row's text again.
  await sql`
    insert into ${sql.table(table)} (${sql.join(names)}) overriding system value
    select ${sql.join(values)}
    from (select line::${sql.table(table)} as one from unnest(${rows}::text[]) as line offset 0) as parsed`.execute(
    trx,
  );
}

function isKnown(migration: string): migration is keyof typeof MIGRATIONS {
  return migration in MIGRATIONS;
}

/** An earlier attempt may have made the schema. */
async function demandEmpty(owner: Database, migration: string): Promise<void> {
  const applied = (await appliedTo(owner)).toSorted().at(-1);
  const tables = await tablesOf(owner);
  if (applied === undefined && tables.length === 0) return;
  const used =
    applied === migration
      ? await sql<{ used: boolean }>`
          select exists (select from clients) or exists (select from organisations)
            or exists (select from containers) or exists (select from audit_log) as used`.execute(owner)
      : null;
  if (used?.rows[0]?.used === false) return;
  throw new Error('the database isn’t empty: restore into a new one');
}

/** The tables with data. A table that refers to another one comes after it. */
async function tablesOf(db: Database): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    with recursive placed(oid, place) as (
      select oid, 0 from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
      union
      select conrelid, place + 1 from placed
      join pg_constraint on confrelid = placed.oid and contype = 'f' and conrelid <> confrelid)
    select relname as name from placed join pg_class using (oid)
    group by relname order by max(place), relname`.execute(db);
  return rows.map(({ name }) => name).filter((name) => !LEFT_OUT.has(name));
}
