import { type Kysely, sql } from 'kysely';

/** When the host deleted a container's log lines, after a request to delete its records. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table traffic_deletions add column logs_deleted_at timestamptz`.execute(db);
}
