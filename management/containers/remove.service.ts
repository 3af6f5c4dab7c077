import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { isProjectionReason } from '../lifecycle/status.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { startRemoval } from '../records/removal.ts';
import { demandMatch } from '../view/etag.ts';
import { planOf } from '../view/plan.ts';
import { type ContainerChange, changeContainer, type Projector } from './change.service.ts';
import { type ContainerPlan, planChange } from './dry-run.ts';
import { tombstone } from './edits.ts';
import type { Planning } from './planning.ts';

interface Removal {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
  readonly ifMatch?: string | undefined;
  readonly planning: Planning;
}

/**
 * Removes a container; a repeated request changes nothing. If git has the site, a tombstone replaces its manifest. A
 * failed container's manifest is already withdrawn, so only its record changes.
 */
export async function removeContainer(
  context: Context,
  projection: Projector,
  removal: Removal,
): Promise<ContainerWithOperation> {
  const { id, caller, requestId } = removal;
  await removal.planning.compare(() => planRemoval(context, removal));
  const { row, from } = await judgeRemoval(context, removal);
  if (from === 'nothing') return row;
  if (from === 'record') {
    await startRemoval(context.db, id, { actor: caller.subject, requestId, revision: row.revision });
    return await demandContainer(context.db, id, caller, 'act');
  }
  return await changeContainer(context, projection, commitOf(removal));
}

/** Judges a removal like `removeContainer`. Changes nothing. */
export async function planRemoval(context: Context, removal: Removal): Promise<ContainerPlan> {
  const { row, from } = await judgeRemoval(context, removal);
  if (from === 'site') return await planChange(context, commitOf(removal));
  const changes = from === 'nothing' ? [] : planOf({ status: row.status }, { status: 'removed' }).changes;
  const { status, revision } = row;
  const checksum = removal.planning.seal({ before: { status, revision }, after: null, moved: [] });
  return { plan: { changes, commit: null, warnings: [], checksum } };
}

function commitOf(removal: Removal): ContainerChange {
  return { ...removal, subject: 'Remove', edit: tombstone };
}

/** What a removal changes: the site in git, only the container's record, or nothing more. */
async function judgeRemoval(
  { db }: Context,
  { id, caller, ifMatch }: Pick<Removal, 'id' | 'caller' | 'ifMatch'>,
): Promise<{ readonly row: ContainerWithOperation; readonly from: 'site' | 'record' | 'nothing' }> {
  const row = await demandContainer(db, id, caller, 'act');
  // If a removed container has a projection reason, git has its file again: invalid, or waiting for ports or names
  // that another site or client holds.
  const isWaiting = isProjectionReason(row.status_reason);
  const isGone = row.status === 'deprovisioning' || (row.status === 'removed' && !isWaiting);
  if (isGone || row.status === 'failed') demandMatch(ifMatch, row.manifest);
  if (isGone) return { row, from: 'nothing' };
  return { row, from: row.status === 'failed' ? 'record' : 'site' };
}
