import { sql } from 'kysely';
import type { Actor, Database } from '../db/database.ts';
import { visibleClients } from '../records/memberships.repository.ts';

/** Ids of containers by site. `caller`: only of those that the caller may read. */
export async function containerIds(
  db: Database,
  sites: readonly string[],
  caller?: Actor,
): Promise<ReadonlyMap<string, string>> {
  if (sites.length === 0) return new Map();
  let query = db.selectFrom('containers').select(['id', 'site_id']).where('site_id', 'in', sites);
  if (caller !== undefined) query = query.where('client_id', 'in', visibleClients(db, caller));
  return new Map((await query.execute()).map(({ id, site_id }) => [site_id, id]));
}

/** The commit that an event belongs to. */
const REVISION = sql<string | null>`coalesce(event.revision, creation.revision)`;

interface RevisionFilter {
  /** Only those of containers that this caller may read. */
  readonly caller: Actor | undefined;
  readonly client: string | undefined;
}

/**
 * The revisions that changed the filter's containers, newest first. `cursor`: the position of the last of the previous
 * page.
 */
export async function changedRevisions(
  db: Database,
  { caller, client }: RevisionFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ revision: string; position: string }[]> {
  let query = db
    .selectFrom('container_events as event')
    .innerJoin('containers', 'containers.id', 'event.container_id')
    // A creation's first event is older than its commit: only the operation has the revision.
    .leftJoin('operations as creation', (join) =>
      join
        .onRef('creation.container_id', '=', 'event.container_id')
        .onRef('creation.request_id', '=', 'event.request_id')
        .on('creation.kind', '=', 'provision')
        .on('event.kind', '=', 'status')
        .on('event.status', '=', 'provisioning'),
    )
    .select([REVISION.as('revision'), sql<string>`event.position::text`.as('position')])
    .where(REVISION, 'is not', null)
    // A commit may have several events of one container.
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('container_events as newer')
            .select('newer.seq')
            .whereRef('newer.container_id', '=', 'event.container_id')
            .where('newer.revision', '=', REVISION)
            .whereRef('newer.position', '>', 'event.position'),
        ),
      ),
    )
    .orderBy('event.position', 'desc')
    .limit(limit);
  if (caller !== undefined) query = query.where('containers.client_id', 'in', visibleClients(db, caller));
  if (client !== undefined) query = query.where('containers.client_id', '=', client);
  if (cursor !== undefined) query = query.where('event.position', '<', cursor);
  return (await query.execute()).flatMap(({ revision, position }) =>
    revision === null ? [] : [{ revision, position }],
  );
}
