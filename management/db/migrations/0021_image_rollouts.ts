import { type Kysely, sql } from 'kysely';

/** Rollouts of an image over the sites, and how far each has come, so that another process can continue them. */
const STATEMENTS = [
  sql`create table image_rollouts (
    id uuid primary key default gen_random_uuid(),
    seq bigint generated always as identity unique,
    image text not null,
    waves jsonb not null,
    watch_seconds integer not null,
    status text not null default 'running',
    reason text,
    detail text,
    actor jsonb not null,
    request_id text not null,
    leased_by uuid,
    leased_until timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  // Two rollouts at once would change the same sites.
  sql`create unique index one_active_rollout on image_rollouts ((true))
    where status in ('running', 'stopping', 'reverting')`,
  sql`create table image_rollout_sites (
    rollout_id uuid not null references image_rollouts,
    position integer not null,
    site_id text not null,
    container_id uuid not null references containers,
    wave integer,
    state text not null default 'pending',
    from_image text,
    reason text,
    detail text,
    revision text,
    since timestamptz,
    well_since timestamptz,
    primary key (rollout_id, position),
    unique (rollout_id, site_id)
  )`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
