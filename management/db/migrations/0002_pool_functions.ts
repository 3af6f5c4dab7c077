import { type Kysely, sql } from 'kysely';

/**
 * The only ways to the port pool for a role that may not touch its table. They run with the rights of the role that
 * owns the table, inside the transaction of whoever calls them, and name `pg_temp` last, so that no temporary table
 * can stand in for a real one (PostgreSQL, CREATE FUNCTION, “Writing SECURITY DEFINER Functions Safely”).
 */
const STATEMENTS = [
  // The lowest free pair; no row where there is none, or where the container has one. Pairs that others are leasing
  // are passed over.
  sql`create function lease_ports(for_host text, for_container uuid)
    returns table (processing integer, preview integer)
    language sql security definer set search_path = public, pg_temp as $$
      with free as materialized (
        select pair.processing from port_pool as pair
        where pair.host = for_host and pair.leased_by is null
          and not exists (select from port_pool as own where own.leased_by = for_container)
        order by pair.processing limit 1
        for update skip locked
      )
      update port_pool as pair set leased_by = for_container
      from free
      where pair.host = for_host and pair.processing = free.processing
      returning pair.processing, pair.preview
    $$`,
  // Exactly these ports, instead of any others of the container; false, and nothing changed, where somebody else
  // holds one of them. Ports outside the pool are nobody's to lease.
  sql`create function hold_ports(for_host text, for_container uuid, wanted integer[])
    returns boolean
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
      perform from port_pool
        where host = for_host and (processing = any (wanted) or preview = any (wanted))
        order by processing for update;
      if exists (
        select from port_pool
        where host = for_host and (processing = any (wanted) or preview = any (wanted))
          and leased_by <> for_container
      ) then
        return false;
      end if;
      update port_pool set leased_by = null
        where leased_by = for_container
          and not (host = for_host and (processing = any (wanted) or preview = any (wanted)));
      update port_pool set leased_by = for_container
        where host = for_host and (processing = any (wanted) or preview = any (wanted)) and leased_by is null;
      return true;
    end
    $$`,
  // Only of a container that doesn't stand any more: whatever else goes wrong, no two that run share a port.
  sql`create function release_ports(for_container uuid)
    returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
      if exists (
        select from containers
        where id = for_container and status not in ('failed', 'deprovisioning', 'removed')
      ) then
        raise exception 'container % still has its ports in use', for_container;
      end if;
      update port_pool set leased_by = null where leased_by = for_container;
    end
    $$`,
  sql`create function count_free_ports()
    returns integer
    language sql stable security definer set search_path = public, pg_temp as $$
      select count(*)::integer from port_pool where leased_by is null
    $$`,
  sql`revoke all on function lease_ports, hold_ports, release_ports, count_free_ports from public`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
