import { type Kysely, sql } from 'kysely';

/** Organisations can be archived, as clients can. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table organisations add column archived_at timestamptz`.execute(db);
}
