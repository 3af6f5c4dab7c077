import { type Insertable, type Selectable, sql } from 'kysely';
import type { Database, ManifestView, Tables } from '../db/database.ts';
import { addEvent, type Cause } from './events.repository.ts';
import {
  type ContainerStatus,
  type EventKind,
  type Health,
  predecessors,
  type StatusReason,
} from '../lifecycle/status.ts';

export type ContainerRow = Selectable<Tables['containers']>;
export type LatestOperation = Pick<Selectable<Tables['operations']>, 'id' | 'kind' | 'status' | 'step'>;
/** A container with its newest operation; `seq` is text. */
export type ContainerWithOperation = ContainerRow & { operation: LatestOperation | null };

/** `false` where the site id, or the id, is taken. */
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

/** The same with the subject's role in its client; `null`: there is no such container, or the subject is no member. */
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

/** Locks the row until the transaction ends. */
export async function lockContainer(db: Database, id: string): Promise<ContainerRow> {
  return await db
    .selectFrom('containers')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow();
}

export interface ContainerFilter {
  /** Only containers of clients that this subject is a member of. */
  readonly subject: string;
  readonly clientId?: string | undefined;
  readonly status?: ContainerStatus | undefined;
  readonly domain?: string | undefined;
  /** `seq` of the last one that the caller has. */
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
 * Moves a container's status where the machine allows it, with an event in the same transaction; `false` where it
 * doesn't. A reason of the status before is gone unless a new one is given.
 */
export async function moveContainer(
  db: Database,
  id: string,
  to: ContainerStatus,
  cause: Cause & { readonly reason?: StatusReason | null; readonly detail?: string | null },
): Promise<boolean> {
  const { reason = null, detail = null, ...rest } = cause;
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

/** Says why git's newest word isn't followed, or (with `null`) that it is; the status stays. */
export async function setReason(
  db: Database,
  { id, status }: Pick<ContainerRow, 'id' | 'status'>,
  reason: StatusReason | null,
  detail: string | null,
  cause: Cause,
): Promise<void> {
  await db
    .updateTable('containers')
    .set({ status_reason: reason, status_detail: detail, updated_at: new Date() })
    .where('id', '=', id)
    .execute();
  if (reason !== null) {
    await addEvent(db, { ...event(id, 'manifest_refused', status, cause), reason, detail });
  }
}

/** Says anew in words why the status is what it is. */
export async function setDetail(db: Database, id: string, detail: string): Promise<void> {
  await db
    .updateTable('containers')
    .set({ status_detail: detail, updated_at: new Date() })
    .where('id', '=', id)
    .where('status_reason', '=', 'checks_failed')
    .execute();
}

/** What the host says of a container that stands; the trouble in words, `null` where there is none. */
export async function setHealth(
  db: Database,
  { id, status, status_reason }: Pick<ContainerRow, 'id' | 'status' | 'status_reason'>,
  health: Health,
  trouble: string | null,
): Promise<void> {
  // That git's newest word isn't followed is the more useful thing to know.
  const told = status_reason !== null && status_reason !== 'host_trouble';
  const reason = trouble === null ? null : 'host_trouble';
  await db
    .updateTable('containers')
    .set({
      health,
      ...(told ? {} : { status_reason: reason, status_detail: trouble }),
      updated_at: new Date(),
    })
    .where('id', '=', id)
    .execute();
  const cause = { actor: null, requestId: null, revision: null };
  await addEvent(db, { ...event(id, 'host', status, cause), reason, detail: trouble });
}

/** Whether any container waits for another one to give its ports or domains up. */
export async function isAnyObstructed(db: Database): Promise<boolean> {
  const waiting = await db
    .selectFrom('containers')
    .select('id')
    .where('status_reason', 'in', ['port_taken', 'domain_in_use'])
    .executeTakeFirst();
  return waiting !== undefined;
}

/** Takes over what the manifest in git says. */
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
