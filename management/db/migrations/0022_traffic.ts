import { type Kysely, sql } from 'kysely';

const SUMS = ['traffic_minutes', 'traffic_hours', 'traffic_days'];

/** Sums of the edge's records, and what keeps each record from being counted twice. */
const STATEMENTS = [
  sql`create table traffic_state (
    single boolean primary key default true check (single),
    since timestamptz,
    minutes_from timestamptz,
    hours_from timestamptz,
    days_from timestamptz
  )`,
  sql`insert into traffic_state default values`,
  sql`create table traffic_collectors (id uuid primary key, seen_at timestamptz not null default now())`,
  sql`create table traffic_leases (
    part smallint primary key,
    holder uuid,
    until timestamptz,
    collected_until timestamptz
  ) with (fillfactor = 50)`,
  sql`insert into traffic_leases (part) select generate_series(0, 15)`,
  sql`create table traffic_objects (id uuid primary key, day date not null)`,
  sql`create index traffic_objects_by_day on traffic_objects using brin (day)`,
  sql`create table traffic_batches (
    batch uuid not null,
    block smallint not null,
    seen bigint not null,
    day date not null,
    primary key (batch, block)
  )`,
  sql`create index traffic_batches_by_day on traffic_batches using brin (day)`,
  sql`create table traffic_faults (
    key text not null,
    kind text not null,
    lines integer not null,
    at timestamptz not null default now(),
    primary key (key, kind)
  )`,
  // A row is updated again and again until its time is over. With free space in its page, the updates don't touch the
  // indexes.
  ...SUMS.map(
    (name) => sql`create table ${sql.table(name)} (
      container uuid not null,
      time timestamptz not null,
      probe boolean not null,
      counts jsonb not null,
      primary key (container, time, probe)
    ) with (fillfactor = 75)`,
  ),
  ...SUMS.map(
    (name) => sql`create index ${sql.id(`${name}_by_time`)} on ${sql.table(name)} using brin (time)`,
  ),
  sql`create table traffic_deletions (
    container uuid primary key,
    until timestamptz not null,
    requested_by text not null,
    requested_at timestamptz not null,
    position text,
    objects integer not null default 0,
    records integer not null default 0,
    completed_at timestamptz
  )`,
  // The sum of two sets of counts, name by name. What becomes zero is dropped.
  sql`create function add_counts(one jsonb, other jsonb, factor bigint default 1) returns jsonb
    language sql immutable parallel safe set search_path = pg_catalog as $$
      select coalesce(jsonb_object_agg(name, total), '{}') from (
        select name, sum(count) as total from (
          select key as name, value::bigint as count from jsonb_each_text(one)
          union all select key, factor * value::bigint from jsonb_each_text(other)
        ) as counts group by name having sum(count) <> 0
      ) as totals
    $$`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
