import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { isProjectionReason } from '../lifecycle/status.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { startRemoval } from '../records/removal.ts';
import { demandMatch } from '../view/etag.ts';
import { changeContainer, type Projector } from './change.service.ts';
import { tombstone } from './edits.ts';

interface Removal {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
  readonly ifMatch?: string | undefined;
}

/**
 * Removes a container; a repeated request changes nothing. If git has the site, a tombstone replaces its manifest. A
 * failed container's manifest is already withdrawn, so only its record changes.
 */
export async function removeContainer(
  context: Context,
  projection: Projector,
  { id, caller, requestId, ifMatch }: Removal,
): Promise<ContainerWithOperation> {
  const row = await demandContainer(context.db, id, caller, 'act');
  // With such a reason, git wants the removed container again, but another container must release ports or names first.
  const isWaiting = isProjectionReason(row.status_reason);
  const isGone = row.status === 'deprovisioning' || (row.status === 'removed' && !isWaiting);
  if (isGone || row.status === 'failed') demandMatch(ifMatch, row.manifest);
  if (isGone) return row;
  if (row.status === 'failed') {
    await startRemoval(context.db, id, { actor: caller.subject, requestId, revision: row.revision });
    return await demandContainer(context.db, id, caller, 'act');
  }
  return await changeContainer(context, projection, {
    id,
    caller,
    requestId,
    subject: 'Remove',
    ifMatch,
    edit: tombstone,
  });
}
