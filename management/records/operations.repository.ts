import { randomUUID } from 'node:crypto';
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Actor, Database, Tables } from '../db/database.ts';
import type { OperationKind, SagaStep } from '../lifecycle/steps.ts';
import type { Cause } from './events.repository.ts';
import { visibleClients } from './memberships.repository.ts';

export type OperationRow = Selectable<Tables['operations']>;

export async function insertOperation(
  db: Database,
  row: Insertable<Tables['operations']>,
): Promise<OperationRow> {
  return await db.insertInto('operations').values(row).returningAll().executeTakeFirstOrThrow();
}

export async function findRunning(db: Database, id: string): Promise<OperationRow | undefined> {
  return await db
    .selectFrom('operations')
    .selectAll()
    .where('id', '=', id)
    .where('status', '=', 'running')
    .executeTakeFirst();
}

/** An operation of a container that the caller may read. */
export async function visibleOperation(
  db: Database,
  id: string,
  caller: Actor,
): Promise<OperationRow | undefined> {
  return await db
    .selectFrom('operations')
    .innerJoin('containers', 'containers.id', 'operations.container_id')
    .selectAll('operations')
    .where('operations.id', '=', id)
    .where('containers.client_id', 'in', visibleClients(db, caller))
    .executeTakeFirst();
}

/** Newest first; `cursor`: `seq` of the last operation of the previous page. */
export async function listOperations(
  db: Database,
  container: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<OperationRow[]> {
  let query = db
    .selectFrom('operations')
    .selectAll()
    .select(sql<string>`seq::text`.as('seq'))
    .where('container_id', '=', container)
    .orderBy('operations.seq', 'desc')
    .limit(limit);
  if (cursor !== undefined) query = query.where('operations.seq', '<', cursor);
  return await query.execute();
}

/** The step of a container's running operation; `null` if none is running. */
export async function runningStep(db: Database, container: string): Promise<SagaStep | null> {
  const running = await db
    .selectFrom('operations')
    .select('step')
    .where('container_id', '=', container)
    .where('status', '=', 'running')
    .executeTakeFirst();
  return running?.step ?? null;
}

export async function runningOperations(db: Database): Promise<Pick<OperationRow, 'id' | 'created_at'>[]> {
  return await db
    .selectFrom('operations')
    .select(['id', 'created_at'])
    .where('status', '=', 'running')
    .orderBy('seq')
    .execute();
}

/**
 * Writes in one statement, and only while the operation is at `step`. Resolves to the operation as written;
 * `undefined`: it was cancelled, or another process has moved it. A `revision` is recorded on the operation and on its
 * container.
 */
export async function moveOperation(
  db: Database,
  { id, container_id, step }: Pick<OperationRow, 'id' | 'container_id' | 'step'>,
  { revision, ...values }: Updateable<Tables['operations']> & { readonly revision?: string | undefined },
): Promise<OperationRow | undefined> {
  return await db
    // Locks the container first, as a removal does before it cancels the operation.
    .with('locked', (inner) =>
      inner
        .selectFrom('containers')
        .select('containers.id as container')
        .where('containers.id', '=', container_id)
        .forNoKeyUpdate(),
    )
    .with('moved', (inner) =>
      inner
        .updateTable('operations')
        .from('locked')
        .set({ ...values, ...(revision === undefined ? {} : { revision }), updated_at: new Date() })
        .whereRef('operations.container_id', '=', 'locked.container')
        .where('operations.id', '=', id)
        .where('operations.status', '=', 'running')
        .where('operations.step', '=', step)
        .returningAll('operations'),
    )
    .with('committed', (inner) =>
      inner
        .updateTable('containers')
        .from('moved')
        .set({ revision: revision ?? null })
        .whereRef('containers.id', '=', 'moved.container_id')
        .where(sql<boolean>`${revision !== undefined}`)
        .returning('containers.id'),
    )
    .selectFrom('moved')
    .selectAll()
    .executeTakeFirst();
}

/** Cancels the container's running operation, because a newer decision replaces it. */
export async function cancelRunning(db: Database, container: string): Promise<void> {
  await db
    .updateTable('operations')
    .set({ status: 'cancelled', manifest: null, updated_at: new Date() })
    .where('container_id', '=', container)
    .where('status', '=', 'running')
    .execute();
}

/** Starts an operation that a commit in git demands: a restoration or a removal. */
export async function startOperation(
  db: Database,
  container: string,
  { kind, step }: { readonly kind: OperationKind; readonly step: SagaStep },
  { actor, requestId }: Pick<Cause, 'actor' | 'requestId'>,
): Promise<void> {
  const name = actor ?? 'operator';
  await insertOperation(db, {
    id: randomUUID(),
    container_id: container,
    kind,
    step,
    actor: JSON.stringify({ subject: name, name, email: '' }),
    request_id: requestId ?? randomUUID(),
  });
}
