import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { EventKind } from '../lifecycle/status.ts';

/** How long a process has a queue to itself: longer than a call may take. Each delivery renews the lease. */
const LEASE = sql`interval '60 seconds'`;
/** How long a delivery is tried. */
const TRIED = sql`interval '3 days'`;

/** A queue that this process may send now. */
export interface Leased {
  readonly webhook_id: string;
  readonly queue: string;
  readonly lease: string;
  /** Failed attempts in a row. */
  readonly attempts: number;
}

interface LeaseLimits {
  readonly limit: number;
  readonly perWebhook: number;
  /** For all webhooks of one client or organisation together, in all processes. */
  readonly perOwner: number;
  /** Webhooks whose queues are not leased, because this process already sends as many of them as it may. */
  readonly busy: readonly string[];
}

/**
 * Leases queues that are due, at most `perWebhook` of each webhook and `perOwner` of each owner. No two processes get
 * the same: a queue that another process is just leasing is skipped, and a leased queue is not due. Two processes that
 * lease at the same moment may together exceed `perOwner`.
 */
export async function leaseQueues(
  db: Database,
  { limit, perWebhook, perOwner, busy }: LeaseLimits,
): Promise<Leased[]> {
  const others = busy.length === 0 ? sql`` : sql`and webhooks.id not in (${sql.join(busy.map(uuid))})`;
  const { rows } = await sql<Leased>`
    with held as (
      select coalesce(client_id, organisation_id) as owner, count(*) as slots
      from webhook_queues join webhooks on webhooks.id = webhook_queues.webhook_id
      where lease is not null and due_at > now()
      group by owner
    ), ranked as (
      select waiting.*, coalesce(held.slots, 0)
        + row_number() over (partition by coalesce(client_id, organisation_id) order by waiting.due_at) as slot
      from webhooks
      left join held on held.owner = coalesce(client_id, organisation_id)
      cross join lateral (
        select webhook_id, queue, due_at from webhook_queues
        where webhook_queues.webhook_id = webhooks.id and due_at <= now()
        order by due_at limit ${perWebhook}::integer
      ) as waiting
      where enabled and (paused_until is null or paused_until <= now()) ${others}
    ), due as (
      select * from ranked where slot <= ${perOwner}::integer order by due_at limit ${limit}::integer
    ), locked as (
      select webhook_id, queue from webhook_queues
      where (webhook_id, queue) in (select webhook_id, queue from due) and due_at <= now()
      for update skip locked
    )
    update webhook_queues set due_at = now() + ${LEASE}, lease = gen_random_uuid()
    from locked
    where webhook_queues.webhook_id = locked.webhook_id and webhook_queues.queue = locked.queue
    returning webhook_queues.webhook_id, webhook_queues.queue, webhook_queues.lease, webhook_queues.attempts
  `.execute(db);
  return rows;
}

const uuid = (id: string) => sql`${id}::uuid`;

/** A delivery with the data of its message. */
export interface Outgoing {
  readonly id: string;
  readonly kind: EventKind | 'test';
  readonly attempts: number;
  readonly queued_at: Date;
  readonly event_seq: string | null;
  /** The event's position; `null`: the message has no event. */
  readonly position: string | null;
  readonly container_id: string | null;
  readonly client_id: string | null;
  readonly at: Date | null;
  readonly status: string | null;
  readonly state: string | null;
  readonly reason: string | null;
  readonly detail: string | null;
  readonly actor: string | null;
  readonly request_id: string | null;
  readonly revision: string | null;
}

/** The next deliveries of a leased queue, in order, and the queue's newest position when they were read. */
export async function nextDeliveries(
  db: Database,
  { webhook_id, queue, lease }: Leased,
  limit: number,
): Promise<{ newest: string; deliveries: Outgoing[] } | null> {
  // Two statements, in this order: what is queued in between has a newer position than `newest`.
  const held = await sql<{ newest: string }>`select newest::text from webhook_queues
    where webhook_id = ${webhook_id} and queue = ${queue} and lease = ${lease}`.execute(db);
  const [found] = held.rows;
  if (found === undefined) return null;
  const { rows } = await sql<Outgoing>`
    select delivery.id, delivery.kind, delivery.attempts, delivery.queued_at, delivery.event_seq::text,
      event.position::text, event.container_id, containers.client_id, event.at, event.status, event.state,
      event.reason, event.detail, event.actor, event.request_id, event.revision
    from webhook_deliveries as delivery
    left join container_events as event on event.seq = delivery.event_seq
    left join containers on containers.id = event.container_id
    where delivery.webhook_id = ${webhook_id} and delivery.queue = ${queue} and delivery.status = 'pending'
    order by delivery.position limit ${limit}::integer`.execute(db);
  return { newest: found.newest, deliveries: rows };
}

export interface Attempt {
  /** HTTP status; `null`: there was no answer. */
  readonly answer: number | null;
  readonly error: string | null;
}

/** Records a delivery that was received, and renews the lease. `false`: the lease was lost. */
export async function recordDelivered(
  db: Database,
  { webhook_id, queue, lease }: Leased,
  id: string,
  { answer }: Attempt,
): Promise<boolean> {
  const { rows } = await sql`
    with mine as (
      update webhook_queues set due_at = now() + ${LEASE}, attempts = 0
      where webhook_id = ${webhook_id} and queue = ${queue} and lease = ${lease} returning 1
    )
    update webhook_deliveries
    set status = 'delivered', attempts = attempts + 1, answer = ${answer}::integer, error = null, attempted_at = now()
    where id = ${id} and exists (select from mine) returning id`.execute(db);
  return rows.length > 0;
}

/**
 * Records a failed attempt. Resolves to whether the delivery is dead now: it was tried for three days, or `isFinal`.
 * Its queue is due again after `retryMs`; after a dead delivery, at once.
 */
export async function recordFailed(
  db: Database,
  { webhook_id, queue, lease }: Leased,
  id: string,
  { answer, error, retryMs, isFinal }: Attempt & { readonly retryMs: number; readonly isFinal: boolean },
): Promise<{ isDead: boolean }> {
  return await db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ status: string }>`
      update webhook_deliveries
      set status = case when ${isFinal}::boolean or queued_at < now() - ${TRIED} then 'dead' else 'pending' end,
        attempts = attempts + 1, answer = ${answer}::integer, error = ${error}, attempted_at = now()
      where id = ${id} and status = 'pending' returning status`.execute(trx);
    const isDead = rows[0]?.status === 'dead';
    await sql`
      update webhook_queues set lease = null,
        attempts = case when ${isDead}::boolean then 0 else attempts + 1 end,
        due_at = now() + case when ${isDead}::boolean then 0 else ${retryMs}::float end * interval '1 millisecond'
      where webhook_id = ${webhook_id} and queue = ${queue} and lease = ${lease}`.execute(trx);
    return { isDead };
  });
}

/**
 * Ends the lease of a queue whose deliveries up to `newest` are done; `null`: some are left. It is due at once if
 * deliveries are left or were queued since.
 */
export async function releaseQueue(
  db: Database,
  { webhook_id, queue, lease }: Leased,
  newest: string | null,
): Promise<void> {
  await sql`
    update webhook_queues
    set lease = null, due_at = case when newest = ${newest}::bigint then null else now() end
    where webhook_id = ${webhook_id} and queue = ${queue} and lease = ${lease}`.execute(db);
}

/** Counts an attempt of a webhook, and pauses the webhook for `pauseMs` if that is positive. */
export async function countAttempt(
  db: Database,
  webhook: string,
  { hasFailed, pauseMs, notice, isGone }: WebhookAttempt,
): Promise<void> {
  await sql`
    update webhooks set
      failures = case when ${hasFailed}::boolean then failures + 1 else 0 end,
      paused_until = case when ${pauseMs}::float > 0 then now() + ${pauseMs}::float * interval '1 millisecond' end,
      enabled = enabled and not ${isGone}::boolean,
      notice = coalesce(${notice}::text, notice),
      notice_at = case when ${notice}::text is null then notice_at else now() end
    where id = ${webhook}`.execute(db);
}

interface WebhookAttempt {
  readonly hasFailed: boolean;
  readonly pauseMs: number;
  readonly notice: string | null;
  /** The receiver answered 410: it wants nothing any more. */
  readonly isGone: boolean;
}
