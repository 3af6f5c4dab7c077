import { type Kysely, sql } from 'kysely';

/** Events of what a policy script refuses; and when the lines of a container were deleted on its host on demand. */
const STATEMENTS = [
  sql`alter table container_events drop constraint container_events_kind_check`,
  sql`alter table container_events add constraint container_events_kind_check
    check (kind in ('status', 'changed', 'manifest_refused', 'host', 'proof', 'policy'))`,
  sql`alter table traffic_deletions add column logs_deleted_at timestamptz`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
