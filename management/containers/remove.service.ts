import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { remove } from '../sites/project-site.ts';
import type { Projection } from '../sites/projection.ts';
import { changeContainer, demandContainer } from './change.service.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { tombstone } from './edits.ts';
import { PROJECTION_REASONS } from '../lifecycle/status.ts';

/**
 * Asks for a container's removal, once or again. A site that git has gets its tombstone there; one that failed has
 * nothing left in git, and only its record goes on.
 */
export async function removeContainer(
  context: Context,
  projection: Projection,
  { id, caller, requestId }: { readonly id: string; readonly caller: Actor; readonly requestId: string },
): Promise<ContainerWithOperation> {
  const row = await demandContainer(context, id, caller, 'act');
  // One that git has brought back, but that waits for another to give its ports or names up, is wanted in git again.
  const waits = row.status_reason !== null && PROJECTION_REASONS.includes(row.status_reason);
  if (row.status === 'deprovisioning' || (row.status === 'removed' && !waits)) return row;
  if (row.status === 'failed') {
    await remove(context, row, { actor: caller.subject, requestId, revision: row.revision });
    return await demandContainer(context, id, caller, 'act');
  }
  return await changeContainer(context, projection, {
    id,
    caller,
    requestId,
    subject: 'Remove',
    edit: tombstone,
  });
}
