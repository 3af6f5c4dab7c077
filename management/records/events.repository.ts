import { type Insertable, sql } from 'kysely';
import type { Database, Tables } from '../db/database.ts';

/** Who or what changed a container, as its events record it. */
export interface Cause {
  readonly actor: string | null;
  readonly requestId: string | null;
  readonly revision: string | null;
}

export async function addEvent(db: Database, event: Insertable<Tables['container_events']>): Promise<void> {
  await db.insertInto('container_events').values(event).execute();
}

/** The last events of a container, oldest first. */
export async function listEvents(db: Database, container: string, limit: number) {
  const rows = await selectEvents(db, container).orderBy('seq', 'desc').limit(limit).execute();
  return rows.reverse().map(present);
}

/** The events after the one with id `after`, oldest first. */
export async function eventsAfter(db: Database, container: string, after: string, limit: number) {
  const rows = await selectEvents(db, container)
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(limit)
    .execute();
  return rows.map(present);
}

export type EventView = Awaited<ReturnType<typeof eventsAfter>>[number];

function selectEvents(db: Database, container: string) {
  return db
    .selectFrom('container_events')
    .select(['at', 'kind', 'status', 'reason', 'detail', 'actor', 'request_id', 'revision'])
    .select(sql<string>`seq::text`.as('id'))
    .where('container_id', '=', container);
}

function present<Row extends { readonly at: Date; readonly request_id: string | null }>({
  at,
  request_id,
  ...event
}: Row) {
  return { ...event, at: at.toISOString(), requestId: request_id };
}
