import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  sql`alter table containers add column health text not null default 'unknown'
    check (health in ('unknown', 'healthy', 'degraded'))`,
  sql`alter table container_events drop constraint container_events_kind_check`,
  sql`alter table container_events add check (kind in ('status', 'changed', 'manifest_refused', 'host'))`,
  sql`alter table operations add check (step in ('commit', 'provision', 'record', 'follow', 'withdraw', 'tombstone',
    'clean'))`,
  // Only a running operation may hold the manifest, because it contains the encrypted configuration.
  sql`alter table operations add check (manifest is null or status = 'running')`,
  sql`create index containers_by_status on containers (status, seq)`,
  // The row is inserted before the mutation and updated with its outcome. No foreign keys: the row outlives the rows
  // that it refers to.
  sql`create table audit_log (
    seq bigint generated always as identity primary key,
    at timestamptz not null default now(),
    actor text not null,
    action text not null,
    request_id text not null,
    container_id uuid,
    client_id uuid,
    status integer,
    code text,
    revision text
  )`,
  sql`create index audit_log_by_container on audit_log (container_id, seq)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
