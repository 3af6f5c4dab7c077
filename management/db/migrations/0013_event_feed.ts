import { type Kysely, sql } from 'kysely';

/**
 * Events are numbered when their transaction commits, so that a reader who has seen a position has seen all before it:
 * the trigger is deferred to the commit, and holds a lock until the commit is done. Deliveries to webhooks are queued in
 * the same transaction. A queue is one webhook's events of one container. Its newest position shows whether an event
 * was added since its deliveries were read.
 */
const STATEMENTS = [
  sql`create sequence event_positions`,
  sql`alter table container_events add column position bigint`,
  sql`update container_events set position = seq`,
  sql`select setval('event_positions', coalesce((select max(seq) from container_events), 0) + 1, false)`,
  sql`create unique index container_events_by_position on container_events (position)`,
  sql`drop index container_events_by_container`,
  sql`create index container_events_by_container on container_events (container_id, position)`,

  sql`create table webhooks (
    id uuid primary key,
    seq bigint generated always as identity unique,
    client_id uuid references clients,
    organisation_id uuid references organisations,
    url text not null,
    events jsonb not null,
    enabled boolean not null,
    secret text not null,
    previous_secret text,
    previous_until timestamptz,
    failures integer not null default 0,
    paused_until timestamptz,
    notice text,
    notice_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    check ((client_id is null) <> (organisation_id is null))
  )`,
  sql`create index webhooks_by_client on webhooks (client_id)`,
  sql`create index webhooks_by_organisation on webhooks (organisation_id)`,
  sql`create table webhook_deliveries (
    id uuid primary key default gen_random_uuid(),
    webhook_id uuid not null references webhooks on delete cascade,
    queue uuid not null,
    event_seq bigint references container_events on delete cascade,
    position bigint not null,
    kind text not null,
    status text not null default 'pending' check (status in ('pending', 'delivered', 'dead')),
    attempts integer not null default 0,
    answer integer,
    error text,
    queued_at timestamptz not null default now(),
    attempted_at timestamptz
  )`,
  sql`create index webhook_deliveries_pending on webhook_deliveries (webhook_id, queue, position)
    where status = 'pending'`,
  sql`create index webhook_deliveries_by_webhook on webhook_deliveries (webhook_id, position)`,
  sql`create index webhook_deliveries_by_event on webhook_deliveries (event_seq)`,
  sql`create index webhook_deliveries_by_age on webhook_deliveries (queued_at)`,
  sql`create table webhook_queues (
    webhook_id uuid not null references webhooks on delete cascade,
    queue uuid not null,
    newest bigint not null,
    attempts integer not null default 0,
    due_at timestamptz,
    lease uuid,
    primary key (webhook_id, queue)
  )`,
  sql`create index webhook_queues_due on webhook_queues (webhook_id, due_at) where due_at is not null`,

  sql`drop trigger notify_event on container_events`,
  sql`drop function notify_event`,
  sql`create function place_event() returns trigger
    language plpgsql security definer set search_path = public, pg_temp as $$
    declare
      place bigint;
      client uuid;
      organisation uuid;
    begin
      perform pg_advisory_xact_lock(hashtext('tagyard events'));
      place := nextval('event_positions');
      update container_events set position = place where seq = new.seq;
      select clients.id, clients.organisation_id into client, organisation
        from containers join clients on clients.id = containers.client_id where containers.id = new.container_id;
      with added as (
        insert into webhook_deliveries (webhook_id, queue, event_seq, position, kind)
        select webhooks.id, new.container_id, new.seq, place, new.kind from webhooks
        where enabled and events @> to_jsonb(new.kind)
          and (client_id = client or organisation_id = organisation)
        returning webhook_id
      )
      insert into webhook_queues (webhook_id, queue, newest, due_at)
      select webhook_id, new.container_id, place, now() from added
      on conflict (webhook_id, queue) do update
        set newest = excluded.newest, due_at = coalesce(webhook_queues.due_at, excluded.due_at);
      perform pg_notify('tagyard', 'event ' || new.container_id || ' ' || place || ' ' || client);
      return null;
    end
    $$`,
  sql`create constraint trigger place_event after insert on container_events deferrable initially deferred
    for each row execute function place_event()`,
  /** Puts a delivery at the end of its queue: a new one, or one to send again. */
  sql`create function queue_delivery(delivery uuid) returns void
    language plpgsql security definer set search_path = public, pg_temp as $$
    declare
      place bigint;
    begin
      perform pg_advisory_xact_lock(hashtext('tagyard events'));
      place := nextval('event_positions');
      update webhook_deliveries set status = 'pending', attempts = 0, queued_at = now(), position = place
        where id = delivery;
      insert into webhook_queues (webhook_id, queue, newest, due_at)
      select webhook_id, queue, place, now() from webhook_deliveries where id = delivery
      on conflict (webhook_id, queue) do update
        set newest = excluded.newest, due_at = coalesce(webhook_queues.due_at, excluded.due_at);
    end
    $$`,
  sql`revoke all on function queue_delivery from public`,

  // A new member may read more: the member's open streams get those events from now on.
  sql`create function notify_new_member() returns trigger language plpgsql as $$
    begin
      perform pg_notify('tagyard', 'member ' || new.client_id || ' ' || new.subject);
      return null;
    end
    $$`,
  sql`create trigger notify_new_member after insert on client_memberships
    for each row execute function notify_new_member()`,
  sql`create function notify_new_organisation_member() returns trigger language plpgsql as $$
    begin
      perform pg_notify('tagyard', 'member ' || clients.id || ' ' || new.subject)
        from clients where clients.organisation_id = new.organisation_id;
      return null;
    end
    $$`,
  sql`create trigger notify_new_organisation_member after insert on organisation_memberships
    for each row execute function notify_new_organisation_member()`,
  sql`create function notify_new_organisation_client() returns trigger language plpgsql as $$
    begin
      perform pg_notify('tagyard', 'member ' || new.id || ' ' || member.subject)
        from organisation_memberships as member where member.organisation_id = new.organisation_id;
      return null;
    end
    $$`,
  sql`create trigger notify_new_organisation_client after insert or update of organisation_id on clients
    for each row execute function notify_new_organisation_client()`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
