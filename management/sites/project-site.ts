import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  lockContainer,
  moveContainer,
  projectManifest,
  setReason,
} from '../records/containers.repository.ts';
import type { Cause } from '../records/events.repository.ts';
import {
  type ContainerStatus,
  canMove,
  LIVE,
  PROJECTION_REASONS,
  type StatusReason,
} from '../lifecycle/status.ts';
import type { Context } from '../context/context.ts';
import type { Database, ManifestView } from '../db/database.ts';
import { cancelRunning, insertOperation } from '../records/operations.repository.ts';
import type { OperationKind, SagaStep } from '../lifecycle/steps.ts';
import { holdPorts } from '../ports/ports.repository.ts';
import { claimDomains, releaseDomains } from '../records/claims.repository.ts';
import { hostnamesHeldByOthers } from '../records/hostnames.repository.ts';
import { claimedNames, recordSite, rememberBlob } from '../records/sites.repository.ts';

/** A container as the projection found it at the start of its pass. */
export interface KnownSite {
  readonly id: string;
  readonly siteId: string;
  readonly status: ContainerStatus;
  readonly reason: StatusReason | null;
  readonly manifest: ManifestView;
  readonly blob: string | null;
  /** There is a site record: the provisioner has accepted the site at least once. */
  readonly recorded: boolean;
  /** Of the operation that runs for it. */
  readonly step: SagaStep | null;
}

interface At {
  readonly revision: string;
  readonly blob: string;
}

type Parts = Pick<Context, 'db' | 'settings'>;

/** Git's newest text can't be followed: says why and leaves everything as it is. */
export async function refuse(
  { db }: Parts,
  site: KnownSite,
  reason: StatusReason,
  detail: string,
  at: At,
  cause: Cause,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockContainer(trx, site.id);
    if (row.status_reason !== reason || row.status_detail !== detail) {
      await setReason(trx, row, reason, detail, cause);
    }
    await rememberBlob(trx, site.siteId, at);
  });
}

/**
 * Takes over an edit of a site that stands. Domains and ports that somebody else holds stay theirs; with a hostname of
 * somebody else's nothing of the edit is taken over, since a site is nothing without its own.
 */
export async function follow(
  context: Parts,
  site: KnownSite,
  manifest: ManifestView,
  at: At,
  cause: Cause,
): Promise<void> {
  await unlessObstructed(context, site, at, cause, async (trx) => {
    const row = await lockContainer(trx, site.id);
    if (!LIVE.includes(row.status)) return;
    demand(obstacleOf(await hostnamesHeldByOthers(trx, site.id, manifest), true, manifest));
    const wanted = claimedNames(manifest);
    const contested = await claimDomains(trx, site.id, wanted);
    await releaseDomains(
      trx,
      site.id,
      claimedNames(row.manifest).filter((name) => !wanted.includes(name)),
    );
    const ports = await holdPorts(trx, manifest.host, site.id, manifest.ports);
    if (!isDeepStrictEqual(row.manifest, manifest)) await projectManifest(trx, row, manifest, cause);
    await recordSite(trx, manifest, at, contested);
    const obstacle = obstacleOf(contested, ports, manifest);
    if (obstacle !== null && row.status_detail !== obstacle.detail) {
      await setReason(trx, row, obstacle.reason, obstacle.detail, cause);
    }
    if (obstacle === null && row.status_reason !== null && PROJECTION_REASONS.includes(row.status_reason)) {
      await setReason(trx, row, null, null, cause);
    }
  });
}

/** Git brought a site back: ports, domains and hostnames are taken again, all of them or none. */
export async function restore(
  context: Parts,
  site: KnownSite,
  manifest: ManifestView,
  at: At,
  cause: Cause,
): Promise<void> {
  await unlessObstructed(context, site, at, cause, async (trx) => {
    const row = await lockContainer(trx, site.id);
    if (LIVE.includes(row.status)) return;
    const contested = [
      ...(await claimDomains(trx, site.id, claimedNames(manifest))),
      ...(await hostnamesHeldByOthers(trx, site.id, manifest)),
    ];
    const ports = await holdPorts(trx, manifest.host, site.id, manifest.ports);
    demand(obstacleOf(contested, ports, manifest));
    await cancelRunning(trx, site.id);
    for (const status of wayBack(row.status)) await moveContainer(trx, site.id, status, cause);
    await projectManifest(trx, { ...row, status: 'provisioning' }, manifest, cause);
    await recordSite(trx, manifest, at);
    await startOperation(trx, site.id, 'restore', 'follow', cause);
  });
}

/** All of the work, or, where something is in the way, nothing but a word of what it is. */
async function unlessObstructed(
  context: Parts,
  site: KnownSite,
  at: At,
  cause: Cause,
  work: (trx: Database) => Promise<void>,
): Promise<void> {
  try {
    await context.db.transaction().execute(work);
  } catch (error) {
    if (!(error instanceof Obstructed)) throw error;
    await refuse(context, site, error.reason, error.message, at, cause);
  }
}

/** Git doesn't want the site any more. Ports and domains stay leased until the provisioner says that it is gone. */
export async function remove(
  { db }: Pick<Parts, 'db'>,
  site: Pick<KnownSite, 'id'>,
  cause: Cause,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockContainer(trx, site.id);
    if (!(await moveContainer(trx, site.id, 'deprovisioning', cause))) return;
    await cancelRunning(trx, site.id);
    await trx.updateTable('containers').set({ revision: cause.revision }).where('id', '=', site.id).execute();
    await startOperation(trx, site.id, 'deprovision', 'clean', cause);
  });
}

/** Rolls the transaction back with all that it took. */
class Obstructed extends Error {
  readonly reason: StatusReason;
  constructor(reason: StatusReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

interface Obstacle {
  readonly reason: StatusReason;
  readonly detail: string;
}

function demand(obstacle: Obstacle | null): asserts obstacle is null {
  if (obstacle !== null) throw new Obstructed(obstacle.reason, obstacle.detail);
}

function obstacleOf(
  contested: readonly string[],
  portsHeld: boolean,
  { ports }: ManifestView,
): Obstacle | null {
  if (!portsHeld) {
    const detail = `another site holds port ${ports.processing} or ${ports.preview}`;
    return { reason: 'port_taken', detail };
  }
  if (contested.length === 0) return null;
  return { reason: 'domain_in_use', detail: `another site holds ${contested.join(', ')}` };
}

/** The steps of the status machine that lead from an ended or ending life into a new one. */
function wayBack(from: ContainerStatus): ContainerStatus[] {
  const way: ContainerStatus[] = ['deprovisioning', 'removed', 'provisioning'];
  return way.slice(way.findIndex((status) => canMove(from, status)));
}

async function startOperation(
  db: Database,
  container: string,
  kind: OperationKind,
  step: SagaStep,
  { actor, requestId }: Cause,
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
