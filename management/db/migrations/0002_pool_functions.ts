import { type Kysely, sql } from 'kysely';

/**
 * The only access to the port pool for a role without rights on its table. The functions run with the rights of the
 * table's owner, inside the caller's transaction. They name `pg_temp` last, so that no temporary table can replace a
 * real one (PostgreSQL, CREATE FUNCTION, “Writing SECURITY DEFINER Functions Safely”).
 */
const STATEMENTS = [
  // Leases the lowest free pair. No row: none is free, or the container has a pair. Pairs that concurrent transactions
  // are leasing are skipped.
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
  // Leases exactly these ports and releases any others of the container. False, with nothing changed: another container
  // holds one of them. Ports outside the pool are not leased.
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
  // Refused while the container is live, so that two running containers never have the same port.
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
