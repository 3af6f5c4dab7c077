import { type Kysely, sql } from 'kysely';

/**
 * Organisations above clients. A member's role in an organisation holds in its clients, so a changed membership
 * sends the notice `member <client> <subject>` for each client.
 */
const STATEMENTS = [
  sql`create table organisations (
    id uuid primary key,
    name text not null,
    created_at timestamptz not null default now()
  )`,
  sql`create table organisation_memberships (
    organisation_id uuid not null references organisations,
    subject text not null,
    role text not null,
    primary key (organisation_id, subject)
  )`,
  sql`create index organisation_memberships_by_subject on organisation_memberships (subject)`,
  sql`alter table clients
    add column organisation_id uuid references organisations,
    add column archived_at timestamptz`,
  sql`create index clients_by_organisation on clients (organisation_id)`,
  sql`create function notify_organisation_member() returns trigger language plpgsql as $$
    begin
      perform pg_notify('tagyard', 'member ' || clients.id || ' ' || old.subject)
        from clients where clients.organisation_id = old.organisation_id;
      return null;
    end
    $$`,
  sql`create trigger notify_organisation_member after update or delete on organisation_memberships
    for each row execute function notify_organisation_member()`,
  sql`create function notify_organisation_change() returns trigger language plpgsql as $$
    begin
      perform pg_notify('tagyard', 'member ' || old.id || ' ' || member.subject)
        from organisation_memberships as member where member.organisation_id = old.organisation_id;
      return null;
    end
    $$`,
  sql`create trigger notify_organisation_change after update of organisation_id on clients
    for each row when (old.organisation_id is distinct from new.organisation_id)
    execute function notify_organisation_change()`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
