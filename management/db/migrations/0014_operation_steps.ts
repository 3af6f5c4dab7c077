import { type Kysely, sql } from 'kysely';

/**
 * The steps that an operation has taken, with their times, and a notice when it ends (`operation <id>`). The audit log
 * knows the client of each row, so that a client's members can read it. Operators read how full the port pool is, and
 * the plans that they made.
 */
const STATEMENTS = [
  sql`alter table operations
    add column steps jsonb not null default '[]',
    add column host_steps jsonb not null default '[]'`,
  sql`create function record_step() returns trigger language plpgsql as $$
    declare
      format constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
    begin
      if old.status <> 'running' or (new.step = old.step and new.status = 'running') then
        return new;
      end if;
      new.steps := old.steps || jsonb_build_object(
        'name', old.step,
        'state', case
          when new.status = 'cancelled' then 'cancelled'
          when new.step <> old.step and new.step in ('withdraw', 'tombstone') then 'failed'
          else 'succeeded'
        end,
        'startedAt', to_char(old.updated_at at time zone 'UTC', format),
        'endedAt', to_char(new.updated_at at time zone 'UTC', format)
      );
      if new.status <> 'running' then
        perform pg_notify('tagyard', 'operation ' || new.id);
      end if;
      return new;
    end
    $$`,
  sql`create trigger record_step before update on operations for each row execute function record_step()`,

  sql`create function count_ports(host_name text) returns table (size integer, free integer)
    language sql stable security definer set search_path = public, pg_temp as $$
      select count(*)::integer, (count(*) filter (where leased_by is null))::integer
      from port_pool where host = host_name
    $$`,
  sql`revoke all on function count_ports from public`,
  sql`create table plans (
    checksum text primary key,
    ref text,
    report jsonb not null,
    actor text not null,
    created_at timestamptz not null default now(),
    approved_at timestamptz
  )`,

  sql`update audit_log set client_id = containers.client_id
    from containers where containers.id = audit_log.container_id and audit_log.client_id is null`,
  sql`create index audit_log_by_client on audit_log (client_id, seq)`,
  sql`create index audit_log_by_actor on audit_log (actor, seq)`,
  sql`create function name_audit_client() returns trigger
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
      if new.client_id is null and new.container_id is not null then
        select client_id into new.client_id from containers where id = new.container_id;
      end if;
      return new;
    end
    $$`,
  sql`create trigger name_audit_client before insert or update on audit_log
    for each row execute function name_audit_client()`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
