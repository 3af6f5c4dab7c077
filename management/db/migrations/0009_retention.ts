import { type Kysely, sql } from 'kysely';

/**
 * The API's role has no right to delete history except through this function. The function deletes only rows that are
 * over 30 days old, so that an intruder with the role can't hide recent actions. It deletes at most `most` rows, so
 * that no lock is held for long.
 */
const STATEMENTS = [
  sql`create function prune_history(kind text, days integer, most integer)
    returns integer
    language plpgsql security definer set search_path = public, pg_temp as $$
    declare
      oldest timestamptz := now() - make_interval(days => days);
      pruned integer;
    begin
      if days < 30 then
        raise exception 'history of the last 30 days can''t be deleted';
      end if;
      if kind = 'audit' then
        delete from audit_log where seq in (
          select seq from audit_log where at < oldest order by seq limit most);
      elsif kind = 'events' then
        delete from container_events where seq in (
          select seq from container_events where at < oldest order by seq limit most);
      elsif kind = 'operations' then
        -- Keeps a container's newest operation, because the API shows it.
        delete from operations where id in (
          select old.id from operations as old
          where old.updated_at < oldest and old.status <> 'running'
            and exists (
              select from operations as newer
              where newer.container_id = old.container_id and newer.seq > old.seq
            )
          order by old.seq limit most);
      else
        raise exception 'unknown history %', kind;
      end if;
      get diagnostics pruned = row_count;
      return pruned;
    end
    $$`,
  sql`revoke all on function prune_history from public`,
  sql`create index audit_log_by_age on audit_log (at)`,
  sql`create index container_events_by_age on container_events (at)`,
  sql`create index operations_by_age on operations (updated_at)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
