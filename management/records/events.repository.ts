import { type Insertable, sql } from 'kysely';
import type { Actor, Database, Tables } from '../db/database.ts';
import type { EventKind } from '../lifecycle/status.ts';
import { visibleClients } from './memberships.repository.ts';

/** Who or what changed a container, as its events record it. */
export interface Cause {
  readonly actor: string | null;
  readonly requestId: string | null;
  readonly revision: string | null;
}

export async function addEvent(db: Database, event: Insertable<Tables['container_events']>): Promise<void> {
  await db.insertInto('container_events').values(event).execute();
}

/** Which events; a missing member doesn't restrict. */
export interface EventFilter {
  readonly container?: string | undefined;
  readonly client?: string | undefined;
  readonly kinds?: readonly EventKind[] | undefined;
  /** Only events of clients that this caller may read. */
  readonly caller?: Pick<Actor, 'subject'> | undefined;
}

interface EventPage {
  readonly limit: number;
  /** Id of an event: the page begins after it. */
  readonly cursor?: string | undefined;
  readonly order: 'asc' | 'desc';
}

export async function listEvents(db: Database, filter: EventFilter, { limit, cursor, order }: EventPage) {
  let query = selectEvents(db, filter).orderBy('container_events.position', order).limit(limit);
  if (cursor !== undefined) {
    query = query.where('container_events.position', order === 'asc' ? '>' : '<', cursor);
  }
  return (await query.execute()).map(present);
}

/** The events with these ids, oldest first. */
export async function eventsAt(db: Database, ids: readonly string[]) {
  const query = selectEvents(db, {}).where('container_events.position', 'in', ids);
  return (await query.orderBy('container_events.position').execute()).map(present);
}

export type EventView = Awaited<ReturnType<typeof eventsAt>>[number];

/** The id of the newest event; `0`: there is none. */
export async function newestEvent(db: Database): Promise<string> {
  const { newest } = await db
    .selectFrom('container_events')
    .select(sql<string>`coalesce(max(position), 0)::text`.as('newest'))
    .executeTakeFirstOrThrow();
  return newest;
}

/** An event's id is its position: events are numbered in the order in which their transactions committed. */
function selectEvents(db: Database, { container, client, kinds, caller }: EventFilter) {
  let query = db
    .selectFrom('container_events')
    .innerJoin('containers', 'containers.id', 'container_events.container_id')
    .select([
      'container_events.at',
      'container_events.kind',
      'container_events.status',
      'container_events.state',
      'container_events.reason',
      'container_events.detail',
      'container_events.actor',
      'container_events.request_id',
      'container_events.revision',
      'container_events.container_id',
      'containers.client_id',
    ])
    .select(sql<string>`container_events.position::text`.as('id'));
  if (container !== undefined) query = query.where('container_events.container_id', '=', container);
  if (client !== undefined) query = query.where('containers.client_id', '=', client);
  if (kinds !== undefined) query = query.where('container_events.kind', 'in', kinds);
  if (caller !== undefined) query = query.where('containers.client_id', 'in', visibleClients(db, caller));
  return query;
}

interface Row {
  readonly at: Date;
  readonly request_id: string | null;
  readonly container_id: string;
  readonly client_id: string;
}

function present<Selected extends Row>({ at, request_id, container_id, client_id, ...event }: Selected) {
  return {
    ...event,
    at: at.toISOString(),
    requestId: request_id,
    containerId: container_id,
    client: client_id,
    clientId: client_id,
  };
}
