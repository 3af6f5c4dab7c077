import { type Insertable, type Selectable, sql } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import {
  type ContainerStatus,
  type EventKind,
  type Health,
  isHostReason,
  predecessors,
  type StatusReason,
} from '../lifecycle/status.ts';
import { addEvent, type Cause } from './events.repository.ts';
import { withoutForeignNames } from './foreign-names.repository.ts';

export type ContainerRow = Selectable<Tables['containers']>;
type LatestOperation = Pick<Selectable<Tables['operations']>, 'id' | 'kind' | 'status' | 'step'>;
/** A container with its newest operation. `seq` is text. */
export type ContainerWithOperation = ContainerRow & { operation: LatestOperation | null };

/** `false`: the site id or the container id is taken. */
export async function insertContainer(
  db: Database,
  row: Insertable<Tables['containers']>,
  cause: Cause,
): Promise<boolean> {
  const inserted = await db
    .insertInto('containers')
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  if (inserted === undefined) return false;
  await addEvent(db, event(row.id, 'status', row.status, cause));
  return true;
}

function selectContainers(db: Database) {
  return db
    .selectFrom('containers')
    .leftJoinLateral(
      (inner) =>
        inner
          .selectFrom('operations')
          .select((select) =>
            sql<LatestOperation>`jsonb_build_object('id', ${select.ref('operations.id')}, 'kind', ${select.ref('operations.kind')}, 'status', ${select.ref('operations.status')}, 'step', ${select.ref('operations.step')})`.as(
              'operation',
            ),
          )
          .whereRef('operations.container_id', '=', 'containers.id')
          .orderBy('operations.seq', 'desc')
          .limit(1)
          .as('latest'),
      (join) => join.onTrue(),
    )
    .selectAll('containers')
    .select(['latest.operation', sql<string>`containers.seq::text`.as('seq')]);
}

export async function findContainer(db: Database, id: string): Promise<ContainerWithOperation | undefined> {
  return await selectContainers(db).where('containers.id', '=', id).executeTakeFirst();
}

/** A container with the subject's role in its client. `null`: there is none, or the subject is not a member. */
export async function findContainerFor(
  db: Database,
  id: string,
  subject: string,
): Promise<{ container: ContainerWithOperation; role: string } | null> {
  const row = await selectContainers(db)
    .innerJoin('client_memberships as member', (join) =>
      join.onRef('member.client_id', '=', 'containers.client_id').on('member.subject', '=', subject),
    )
    .select('member.role')
    .where('containers.id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return null;
  const { role, ...container } = row;
  return { container, role };
}

/**
 * Locks the row until the transaction ends. To avoid deadlocks, a transaction that writes several tables of a container
 * takes this lock first, before it writes operations, claims, ports and site records. Inserts of rows that refer to the
 * container don't wait for the lock, because it doesn't cover the key.
 */
export async function lockContainer(db: Database, id: string): Promise<ContainerRow> {
  return await db
    .selectFrom('containers')
    .selectAll()
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
}

interface ContainerFilter {
  /** Only containers of clients that this subject is a member of. */
  readonly subject: string;
  readonly clientId?: string | undefined;
  readonly status?: ContainerStatus | undefined;
  readonly domain?: string | undefined;
  /** `seq` of the last container of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Newest first. */
export async function listContainers(
  db: Database,
  filter: ContainerFilter,
): Promise<ContainerWithOperation[]> {
  let query = selectContainers(db)
    .where('containers.client_id', 'in', (inner) =>
      inner.selectFrom('client_memberships').select('client_id').where('subject', '=', filter.subject),
    )
    .orderBy('containers.seq', 'desc')
    .limit(filter.limit);
  if (filter.clientId !== undefined) query = query.where('containers.client_id', '=', filter.clientId);
  if (filter.status !== undefined) query = query.where('containers.status', '=', filter.status);
  if (filter.after !== undefined) query = query.where('containers.seq', '<', filter.after);
  const { domain } = filter;
  if (domain !== undefined) {
    query = query.where('containers.site_id', 'in', (inner) =>
      inner.selectFrom('site_domains').select('site_id').where('domain', '=', domain),
    );
  }
  return await query.execute();
}

/**
 * Changes a container's status and adds an event. `false`: the transition isn't allowed, and nothing changed. The
 * reason of the previous status is replaced, by `null` unless one is given.
 */
export async function moveContainer(
  db: Database,
  id: string,
  to: ContainerStatus,
  cause: Cause & { readonly reason?: StatusReason | null; readonly detail?: string | null },
): Promise<boolean> {
  const { reason = null, detail: given = null, ...rest } = cause;
  const detail = given === null ? null : await withoutForeignNames(db, id, given);
  const moved = await db
    .updateTable('containers')
    .set({ status: to, status_reason: reason, status_detail: detail, updated_at: new Date() })
    .where('id', '=', id)
    .where('status', 'in', predecessors(to))
    .returning('id')
    .executeTakeFirst();
  if (moved === undefined) return false;
  await addEvent(db, { ...event(id, 'status', to, rest), reason, detail });
  return true;
}

/** Why the newest manifest in git isn't applied, for a program and in words. */
export interface ProjectionObstacle {
  readonly reason: StatusReason;
  readonly detail: string;
}

/** Records why the newest manifest in git isn't applied, or (with `null`) that it is. The status is unchanged. */
export async function setObstacle(
  db: Database,
  { id, status }: Pick<ContainerRow, 'id' | 'status'>,
  obstacle: ProjectionObstacle | null,
  cause: Cause,
): Promise<void> {
  const { reason, detail } = obstacle ?? { reason: null, detail: null };
  await db
    .updateTable('containers')
    .set({ status_reason: reason, status_detail: detail, updated_at: new Date() })
    .where('id', '=', id)
    .execute();
  if (reason !== null) {
    await addEvent(db, { ...event(id, 'manifest_refused', status, cause), reason, detail });
  }
}

/** Replaces the text that describes which checks failed. */
export async function setDetail(db: Database, id: string, detail: string): Promise<void> {
  await db
    .updateTable('containers')
    .set({ status_detail: detail, updated_at: new Date() })
    .where('id', '=', id)
    .where('status_reason', '=', 'checks_failed')
    .execute();
}

/** What the host reports besides health. */
export interface HostObstacle {
  readonly reason: 'host_trouble' | 'suspended';
  readonly detail: string;
}

/** Records what the host reports. */
export async function setHealth(
  db: Database,
  { id, status, status_reason }: Pick<ContainerRow, 'id' | 'status' | 'status_reason'>,
  { health, obstacle }: { readonly health: Health; readonly obstacle: HostObstacle | null },
): Promise<void> {
  const hasOtherReason = status_reason !== null && !isHostReason(status_reason);
  const { reason, detail } = obstacle ?? { reason: null, detail: null };
  await db
    .updateTable('containers')
    .set({
      health,
      ...(hasOtherReason ? {} : { status_reason: reason, status_detail: detail }),
      updated_at: new Date(),
    })
    .where('id', '=', id)
    .execute();
  const cause = { actor: null, requestId: null, revision: null };
  await addEvent(db, { ...event(id, 'host', status, cause), reason, detail });
}

/** Whether any container waits for ports or domains that another one holds. */
export async function isAnyObstructed(db: Database): Promise<boolean> {
  const waiting = await db
    .selectFrom('containers')
    .select('id')
    .where('status_reason', 'in', ['port_taken', 'domain_in_use'])
    .executeTakeFirst();
  return waiting !== undefined;
}

/** Records the manifest that git holds. */
export async function projectManifest(
  db: Database,
  { id, status }: Pick<ContainerRow, 'id' | 'status'>,
  manifest: ManifestView,
  cause: Cause,
): Promise<void> {
  await db
    .updateTable('containers')
    .set({ manifest: JSON.stringify(manifest), revision: cause.revision, updated_at: new Date() })
    .where('id', '=', id)
    .execute();
  await addEvent(db, event(id, 'changed', status, cause));
}

function event(
  container: string,
  kind: EventKind,
  status: ContainerStatus,
  { actor, requestId, revision }: Cause,
) {
  return { container_id: container, kind, status, actor, request_id: requestId, revision };
}
