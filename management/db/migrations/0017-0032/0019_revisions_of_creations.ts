import { type Kysely, sql } from 'kysely';

/** The commit of a creation: its container's own revision may be that of a later edit before the container is active. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table operations add column revision text`.execute(db);
}
