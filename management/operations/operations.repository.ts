import type { Insertable, Selectable, Updateable } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import type { Step } from './steps.ts';

export type OperationRow = Selectable<Tables['operations']>;

export async function insertOperation(db: Database, row: Insertable<Tables['operations']>): Promise<void> {
  await db.insertInto('operations').values(row).execute();
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

/** Writes only while the operation still stands at `step`; `false`: somebody cancelled it or went on with it. */
export async function moveOperation(
  db: Database,
  { id, step }: { readonly id: string; readonly step: Step },
  values: Updateable<Tables['operations']>,
): Promise<boolean> {
  const moved = await db
    .updateTable('operations')
    .set({ ...values, updated_at: new Date() })
    .where('id', '=', id)
    .where('status', '=', 'running')
    .where('step', '=', step)
    .returning('id')
    .executeTakeFirst();
  return moved !== undefined;
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
