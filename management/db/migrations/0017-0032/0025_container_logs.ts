import { type Kysely, sql } from 'kysely';

/** When the lines of a container were deleted on its host, for a demand to delete its records. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table traffic_deletions add column logs_deleted_at timestamptz`.execute(db);
}
