import { type Kysely, sql } from 'kysely';

/**
 * The state of each container with the facts that it is made of: what the host reports (until now among the reasons of
 * the status, where one hid the other), what DNS answers for its custom domains, and its first visit. The process that
 * starts next derives the states of rows that have the default.
 */
const STATEMENTS = [
  sql`alter table containers
    add column host_reason text,
    add column host_detail text,
    add column dns jsonb not null default '{}',
    add column dns_next_at timestamptz,
    add column first_visit_at timestamptz,
    add column state jsonb not null default '{"name": "setting_up", "since": "1970-01-01T00:00:00.000Z",
      "sentence": "It is being set up.", "remedy": null, "detail": null, "also": []}'`,
  sql`alter table containers add column state_name text generated always as (state->>'name') stored`,
  sql`update containers set host_reason = status_reason, host_detail = status_detail,
      status_reason = null, status_detail = null
    where status_reason in ('host_trouble', 'suspended')`,
  // The route that each page asks, and so the first sign of a visit that the sums have.
  sql`update containers set first_visit_at = seen.at from (
      select container, min(time) as at from traffic_days
      where not probe and counts ?& array['r:/boot', 's:2'] group by container
    ) as seen where seen.container = containers.id`,
  sql`create index containers_by_state on containers (state_name, seq)`,
  sql`create index containers_dns_due on containers (dns_next_at nulls first)
    where status in ('provisioning', 'active', 'verified', 'verification_failed')
      and jsonb_array_length(manifest->'customDomains') > 0`,
  sql`alter table container_events add column state text`,
  sql`alter table container_counts add column state text not null default 'setting_up'`,
  sql`create or replace function count_containers() returns trigger
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
      if tg_op = 'INSERT' then
        insert into container_counts (client_id, status, health, suspended, state, containers)
        select client_id, status, health, suspended, state_name, count(*) from added group by 1, 2, 3, 4, 5;
      elsif tg_op = 'DELETE' then
        insert into container_counts (client_id, status, health, suspended, state, containers)
        select client_id, status, health, suspended, state_name, -count(*) from deleted group by 1, 2, 3, 4, 5;
      else
        insert into container_counts (client_id, status, health, suspended, state, containers)
        select client_id, status, health, suspended, state_name, sum(containers) from (
          select client_id, status, health, suspended, state_name, 1 as containers from added
          union all select client_id, status, health, suspended, state_name, -1 from deleted
        ) as changes
        group by 1, 2, 3, 4, 5 having sum(containers) <> 0;
      end if;
      return null;
    end
    $$`,
  sql`create or replace function fold_container_counts() returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
      with folded as (
        delete from container_counts where client_id in (
          select client_id from container_counts
          group by client_id, status, health, suspended, state having count(*) > 1)
        returning *
      )
      insert into container_counts (client_id, status, health, suspended, state, containers)
      select client_id, status, health, suspended, state, sum(containers) from folded
      group by 1, 2, 3, 4, 5 having sum(containers) <> 0;
    end
    $$`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
