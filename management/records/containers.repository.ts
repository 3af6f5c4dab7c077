import { type Insertable, type Selectable, sql } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { type Role, strongestRole } from '../lifecycle/roles.ts';
import {
  type ContainerStatus,
  type EventKind,
  type Health,
  isHostReason,
  predecessors,
  type StatusReason,
} from '../lifecycle/status.ts';
import { type ProofRow, withProofs } from './domain-proofs.repository.ts';
import { addEvent, type Cause } from './events.repository.ts';
import { withoutForeignNames } from './foreign-names.repository.ts';
import { grantsOf } from './memberships.repository.ts';

/** The columns that a container is read with: all but those that only lists need. */
const COLUMNS = [
  'containers.id',
  'containers.seq',
  'containers.site_id',
  'containers.client_id',
  'containers.status',
  'containers.status_reason',
  'containers.status_detail',
  'containers.health',
  'containers.manifest',
  'containers.revision',
  'containers.created_at',
  'containers.updated_at',
] as const;

export type ContainerRow = Omit<Selectable<Tables['containers']>, 'words' | 'folded_name' | 'suspended'>;
type LatestOperation = Pick<Selectable<Tables['operations']>, 'id' | 'kind' | 'status' | 'step'>;
/** A container with its newest operation. `seq` is text. */
export type ContainerWithOperation = ContainerRow & {
  operation: LatestOperation | null;
  /** What is known of the proofs of its domains. */
  readonly proofs?: readonly ProofRow[];
};

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

export function selectContainers(db: Database) {
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
    .select(COLUMNS)
    .select(['latest.operation', sql<string>`containers.seq::text`.as('seq')]);
}

export async function findContainer(db: Database, id: string): Promise<ContainerWithOperation | undefined> {
  const rows = await selectContainers(db).where('containers.id', '=', id).execute();
  return (await withProofs(db, rows))[0];
}

/** A container with the subject's strongest role in its client. `null`: there is none, or the subject has no role. */
export async function findContainerFor(
  db: Database,
  id: string,
  subject: string,
): Promise<{ container: ContainerWithOperation; role: Role } | null> {
  const rows = await selectContainers(db)
    .innerJoin(grantsOf(db, subject).as('granted'), 'granted.client_id', 'containers.client_id')
    .select('granted.role')
    .where('containers.id', '=', id)
    .execute();
  const granted = strongestRole(rows.map(({ role }) => role));
  const [row] = await withProofs(db, rows.slice(0, 1));
  if (row === undefined || granted === null) return null;
  const { role: _, ...container } = row;
  return { container, role: granted };
}

/**
 * Locks the row until the transaction ends. To avoid deadlocks, a transaction that writes several tables of a container
 * takes this lock first, before it writes operations, claims, ports and site records. Inserts of rows that refer to the
 * container don't wait for the lock, because it doesn't cover the key.
 */
export async function lockContainer(db: Database, id: string): Promise<ContainerRow> {
  return await db
    .selectFrom('containers')
    .select(COLUMNS)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow();
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

/** The commit of the recorded manifest; `null`: that manifest is not in git yet. */
export async function committedRevision(db: Database, id: string): Promise<string | null> {
  const { revision } = await db
    .selectFrom('containers')
    .select('revision')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return revision;
}

/** How many containers a client has, without removed and failed ones. */
export async function countCurrentContainers(db: Database, client: string): Promise<number> {
  const { count } = await db
    .selectFrom('containers')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('client_id', '=', client)
    .where('status', 'not in', ['removed', 'failed'])
    .executeTakeFirstOrThrow();
  return Number(count);
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
    .set({
      client_id: manifest.client,
      manifest: JSON.stringify(manifest),
      revision: cause.revision,
      updated_at: new Date(),
    })
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
