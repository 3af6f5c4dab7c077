import { type Kysely, sql } from 'kysely';

/** The commit of a creation. The container's own revision may already be that of an edit during the creation. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table operations add column revision text`.execute(db);
}
