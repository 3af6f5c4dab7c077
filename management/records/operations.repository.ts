import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import type { SagaStep } from '../lifecycle/steps.ts';

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

export async function runningOperations(db: Database): Promise<Pick<OperationRow, 'id' | 'created_at'>[]> {
  return await db
    .selectFrom('operations')
    .select(['id', 'created_at'])
    .where('status', '=', 'running')
    .orderBy('seq')
    .execute();
}

/**
 * Writes only while the operation still stands at `step`, in one statement, and answers it as it stands then;
 * `undefined`: somebody cancelled it or went on with it. A `revision` is its container's.
 */
export async function moveOperation(
  db: Database,
  { id, step }: { readonly id: string; readonly step: SagaStep },
  { revision, ...values }: Updateable<Tables['operations']> & { readonly revision?: string | undefined },
): Promise<OperationRow | undefined> {
  return await db
    .with('moved', (inner) =>
      inner
        .updateTable('operations')
        .set({ ...values, updated_at: new Date() })
        .where('id', '=', id)
        .where('status', '=', 'running')
        .where('step', '=', step)
        .returningAll(),
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

/** A newer decision about the container replaces what is being done for it. */
export async function cancelRunning(db: Database, container: string): Promise<void> {
  await db
    .updateTable('operations')
    .set({ status: 'cancelled', manifest: null, updated_at: new Date() })
    .where('container_id', '=', container)
    .where('status', '=', 'running')
    .execute();
}
