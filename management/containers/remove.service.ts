import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { isProjectionReason } from '../lifecycle/status.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { startRemoval } from '../records/removal.ts';
import { changeContainer, type Projector } from './change.service.ts';
import { tombstone } from './edits.ts';

/**
 * Removes a container; a repeated request changes nothing. A site that git holds gets its tombstone there. A failed
 * container has nothing left in git, so only its record changes.
 */
export async function removeContainer(
  context: Context,
  projection: Projector,
  { id, caller, requestId }: { readonly id: string; readonly caller: Actor; readonly requestId: string },
): Promise<ContainerWithOperation> {
  const row = await demandContainer(context.db, id, caller, 'act');
  // A removed container with such a reason is wanted in git again, and waits for another one to release ports or names.
  const isWaiting = isProjectionReason(row.status_reason);
  if (row.status === 'deprovisioning' || (row.status === 'removed' && !isWaiting)) return row;
  if (row.status === 'failed') {
    await startRemoval(context.db, id, { actor: caller.subject, requestId, revision: row.revision });
    return await demandContainer(context.db, id, caller, 'act');
  }
  return await changeContainer(context, projection, {
    id,
    caller,
    requestId,
    subject: 'Remove',
    edit: tombstone,
  });
}
