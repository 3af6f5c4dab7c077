import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

function selectDeliveries(db: Database, webhook: string) {
  return db
    .selectFrom('webhook_deliveries as delivery')
    .leftJoin('webhook_queues as queue', (join) =>
      join
        .onRef('queue.webhook_id', '=', 'delivery.webhook_id')
        .onRef('queue.queue', '=', 'delivery.queue')
        .on('delivery.status', '=', 'pending'),
    )
    .select([
      'delivery.id',
      'delivery.kind',
      'delivery.queue',
      'delivery.status',
      'delivery.attempts',
      'delivery.answer',
      'delivery.error',
      'delivery.queued_at',
      'delivery.attempted_at',
      'queue.due_at',
    ])
    .select(sql<string>`delivery.position::text`.as('position'))
    .where('delivery.webhook_id', '=', webhook);
}

export type DeliveryRow = Awaited<ReturnType<typeof listDeliveries>>[number];

/** Newest first; `cursor`: position of the last delivery of the previous page. */
export async function listDeliveries(
  db: Database,
  webhook: string,
  {
    limit,
    cursor,
    status,
  }: {
    readonly limit: number;
    readonly cursor?: string | undefined;
    readonly status?: 'pending' | 'delivered' | 'dead' | undefined;
  },
) {
  let query = selectDeliveries(db, webhook).orderBy('delivery.position', 'desc').limit(limit);
  if (cursor !== undefined) query = query.where('delivery.position', '<', cursor);
  if (status !== undefined) query = query.where('delivery.status', '=', status);
  return await query.execute();
}

export async function findDelivery(
  db: Database,
  webhook: string,
  id: string,
): Promise<DeliveryRow | undefined> {
  return await selectDeliveries(db, webhook).where('delivery.id', '=', id).executeTakeFirst();
}

/** How many deliveries of a webhook wait; at most `most`, so that no long queue is counted. */
export async function countPending(db: Database, webhook: string, most: number): Promise<number> {
  const pending = db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhook)
    .where('status', '=', 'pending')
    .limit(most)
    .as('pending');
  const { count } = await db
    .selectFrom(pending)
    .select(sql<number>`count(*)::integer`.as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

/** Queues a delivery (again), after all that wait in its queue. */
export async function queueAgain(db: Database, id: string): Promise<void> {
  await sql`select queue_delivery(${id}::uuid)`.execute(db);
}

/** Queues a message without an event. Resolves to its id. Call it in a transaction. */
export async function queueTest(trx: Database, webhook: string): Promise<string> {
  const { id } = await trx
    .insertInto('webhook_deliveries')
    .values({ webhook_id: webhook, queue: webhook, kind: 'test', position: '0' })
    .returning('id')
    .executeTakeFirstOrThrow();
  await queueAgain(trx, id);
  return id;
}

/** Deletes finished deliveries that are older than 30 days. */
export async function pruneDeliveries(db: Database): Promise<void> {
  await sql`delete from webhook_deliveries
    where status <> 'pending' and queued_at < now() - interval '30 days'`.execute(db);
}
