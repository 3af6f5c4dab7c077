import { type Kysely, sql } from 'kysely';

/**
 * How many containers each client has by status, health and suspension, because counting a hundred thousand rows takes
 * too long for each request. A change appends the difference and locks nothing, so that changes don't wait for each
 * other. A count is the sum of its rows; `fold_container_counts` makes one row of them.
 */
const STATEMENTS = [
  sql`create table container_counts (
    client_id uuid not null,
    status text not null,
    health text not null,
    suspended boolean not null,
    containers bigint not null
  )`,
  sql`create index container_counts_by_client on container_counts (client_id, status, health, suspended)
    include (containers)`,
  sql`create function count_containers() returns trigger
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
      if tg_op = 'INSERT' then
        insert into container_counts
        select client_id, status, health, suspended, count(*) from added group by 1, 2, 3, 4;
      elsif tg_op = 'DELETE' then
        insert into container_counts
        select client_id, status, health, suspended, -count(*) from deleted group by 1, 2, 3, 4;
      else
        insert into container_counts
        select client_id, status, health, suspended, sum(containers) from (
          select client_id, status, health, suspended, 1 as containers from added
          union all select client_id, status, health, suspended, -1 from deleted
        ) as changes
        group by 1, 2, 3, 4 having sum(containers) <> 0;
      end if;
      return null;
    end
    $$`,
  sql`create trigger count_added_containers after insert on containers
    referencing new table as added for each statement execute function count_containers()`,
  sql`create trigger count_changed_containers after update on containers
    referencing old table as deleted new table as added for each statement execute function count_containers()`,
  sql`create trigger count_deleted_containers after delete on containers
    referencing old table as deleted for each statement execute function count_containers()`,
  // After the triggers: creating them waits for all writers, so that no change is missed or counted twice.
  sql`insert into container_counts
    select client_id, status, health, suspended, count(*) from containers group by 1, 2, 3, 4`,
  sql`create function fold_container_counts() returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
    begin
      with folded as (
        delete from container_counts where client_id in (
          select client_id from container_counts group by client_id, status, health, suspended having count(*) > 1)
        returning *
      )
      insert into container_counts
      select client_id, status, health, suspended, sum(containers) from folded
      group by 1, 2, 3, 4 having sum(containers) <> 0;
    end
    $$`,
  sql`revoke all on function fold_container_counts from public`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
