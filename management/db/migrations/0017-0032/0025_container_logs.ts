import { type Kysely, sql } from 'kysely';

/** When the host deleted a container's log lines, as a request to delete its records demands. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table traffic_deletions add column logs_deleted_at timestamptz`.execute(db);
}
