import { type Kysely, sql } from 'kysely';

/**
 * Notices for event streams. PostgreSQL sends them when the transaction commits (NOTIFY): `event <container> <seq>` for
 * each new event, and `member <client> <subject>` when a membership has changed or ended.
 */
const STATEMENTS = [
  sql`create function notify_event() returns trigger language plpgsql as $$
    begin
      perform pg_notify('tagyard', 'event ' || new.container_id || ' ' || new.seq);
      return null;
    end
    $$`,
  sql`create trigger notify_event after insert on container_events
    for each row execute function notify_event()`,
  sql`create function notify_member() returns trigger language plpgsql as $$
    begin
      perform pg_notify('tagyard', 'member ' || old.client_id || ' ' || old.subject);
      return null;
    end
    $$`,
  sql`create trigger notify_member after update or delete on client_memberships
    for each row execute function notify_member()`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
