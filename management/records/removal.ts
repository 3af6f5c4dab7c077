import type { Database } from '../db/database.ts';
import { lockContainer, moveContainer } from './containers.repository.ts';
import type { Cause } from './events.repository.ts';
import { cancelRunning, startOperation } from './operations.repository.ts';

/**
 * Starts the removal of a container, unless its status doesn't allow that. Ports and domains stay leased until the
 * provisioner reports that the site is gone.
 */
export async function startRemoval(db: Database, container: string, cause: Cause): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockContainer(trx, container);
    await removeLocked(trx, container, cause);
  });
}

/** Like `startRemoval`, for a container that the transaction has already locked. */
export async function removeLocked(trx: Database, container: string, cause: Cause): Promise<void> {
  if (!(await moveContainer(trx, container, 'deprovisioning', cause))) return;
  await cancelRunning(trx, container);
  await trx.updateTable('containers').set({ revision: cause.revision }).where('id', '=', container).execute();
  await startOperation(trx, container, { kind: 'deprovision', step: 'clean' }, cause);
}
