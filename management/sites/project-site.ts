import { isDeepStrictEqual } from 'node:util';
import type { Context } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { isProjectionReason, LIVE, restorePath } from '../lifecycle/status.ts';
import { isUnsettled } from '../lifecycle/steps.ts';
import { holdPorts } from '../ports/ports.repository.ts';
import { claimDomains, releaseDomains } from '../records/claims.repository.ts';
import {
  type ContainerRow,
  lockContainer,
  moveContainer,
  type ProjectionObstacle,
  projectManifest,
  setObstacle,
} from '../records/containers.repository.ts';
import type { Cause } from '../records/events.repository.ts';
import { hostnamesHeldByOthers } from '../records/hostnames.repository.ts';
import { cancelRunning, runningStep, startOperation } from '../records/operations.repository.ts';
import { removeLocked } from '../records/removal.ts';
import { claimedNames, recordSite, rememberBlob } from '../records/sites.repository.ts';
import type { KnownSite } from './decision.ts';

/** The version of a site's file that is being projected. */
interface Version {
  readonly site: Pick<KnownSite, 'id' | 'siteId' | 'revision' | 'blob'>;
  /** `blob: null`: git has no file of the site. */
  readonly at: { readonly revision: string; readonly blob: string | null };
  readonly cause: Cause;
}

interface ManifestVersion extends Version {
  readonly manifest: ManifestView;
}

type Parts = Pick<Context, 'db'>;

/** Records why a version can't be applied. Everything else stays as it is. */
export async function refuseVersion(
  { db }: Parts,
  { site, at, cause }: Version,
  obstacle: ProjectionObstacle,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockUnchanged(trx, site, at);
    if (row === null) return;
    if (row.status_reason !== obstacle.reason || row.status_detail !== obstacle.detail) {
      await setObstacle(trx, row, obstacle, cause);
    }
    await rememberBlob(trx, site.siteId, at);
  });
}

/**
 * Applies an edit of a live site. Domains and ports that another site holds stay with that site. If another site holds
 * one of the edit's hostnames, nothing of the edit is applied, because a site can't work without its hostnames.
 */
export async function applyEdit(parts: Parts, version: ManifestVersion): Promise<void> {
  const { site, manifest, at, cause } = version;
  await unlessObstructed(parts, version, async (trx) => {
    const row = await lockUnchanged(trx, site, at);
    if (row === null || !LIVE.includes(row.status)) return;
    demandNone(findObstacle(await hostnamesHeldByOthers(trx, site.id, manifest), true, manifest));
    const wanted = claimedNames(manifest);
    const contested = await claimDomains(trx, site.id, wanted);
    await releaseDomains(
      trx,
      site.id,
      claimedNames(row.manifest).filter((name) => !wanted.includes(name)),
    );
    const holdsPorts = await holdPorts(trx, manifest.host, site.id, manifest.ports);
    if (!isDeepStrictEqual(row.manifest, manifest)) await projectManifest(trx, row, manifest, cause);
    await recordSite(trx, manifest, at, contested);
    const obstacle = findObstacle(contested, holdsPorts, manifest);
    if (obstacle !== null && row.status_detail !== obstacle.detail) {
      await setObstacle(trx, row, obstacle, cause);
    }
    if (obstacle === null && isProjectionReason(row.status_reason)) await setObstacle(trx, row, null, cause);
  });
}

/** Starts the restoration of a site that git brought back. It gets all its ports, domains and hostnames, or none. */
export async function startRestore(parts: Parts, version: ManifestVersion): Promise<void> {
  const { site, manifest, at, cause } = version;
  await unlessObstructed(parts, version, async (trx) => {
    const row = await lockUnchanged(trx, site, at);
    if (row === null || LIVE.includes(row.status)) return;
    const contested = [
      ...(await claimDomains(trx, site.id, claimedNames(manifest))),
      ...(await hostnamesHeldByOthers(trx, site.id, manifest)),
    ];
    const holdsPorts = await holdPorts(trx, manifest.host, site.id, manifest.ports);
    demandNone(findObstacle(contested, holdsPorts, manifest));
    await cancelRunning(trx, site.id);
    for (const status of restorePath(row.status)) await moveContainer(trx, site.id, status, cause);
    await projectManifest(trx, { ...row, status: 'provisioning' }, manifest, cause);
    await recordSite(trx, manifest, at);
    await startOperation(trx, site.id, { kind: 'restore', step: 'follow' }, cause);
  });
}

/** Starts the removal of a site, because of its tombstone or (`blob: null`) because git has deleted its file. */
export async function applyRemoval(
  { db }: Parts,
  site: KnownSite,
  at: { readonly revision: string; readonly blob: string | null },
  cause: Cause,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockUnchanged(trx, site, at);
    if (row === null || !LIVE.includes(row.status)) return;
    if (isUnsettled(await runningStep(trx, site.id))) throw new OutdatedPass(site.siteId);
    await removeLocked(trx, site.id, cause);
    // `blob: null` forgets the last text, so that the site is projected again even if git restores that text.
    await rememberBlob(trx, site.siteId, at);
  });
}

/** What the pass has read of a site is outdated: run another pass. */
export class OutdatedPass extends Error {
  override name = 'OutdatedPass';
  constructor(site: string) {
    super(`${site} was changed while it was projected`);
  }
}

/**
 * Locks the container and compares its site record with what the pass has read, because another process may have
 * projected the site since. Resolves to `null` if that process projected this version, so that nothing is left to do.
 * Throws `OutdatedPass` if it projected a different version.
 */
async function lockUnchanged(
  trx: Database,
  { id, siteId, revision, blob }: Version['site'],
  at: { readonly revision: string; readonly blob: string | null },
): Promise<ContainerRow | null> {
  const row = await lockContainer(trx, id);
  const now = await trx
    .selectFrom('sites')
    .select(['revision', 'blob'])
    .where('site_id', '=', siteId)
    .executeTakeFirst();
  if ((now?.blob ?? null) === blob && (now?.revision ?? null) === revision) return row;
  const isApplied = now?.blob === at.blob && (at.blob !== null || now.revision === at.revision);
  if (isApplied) return null;
  throw new OutdatedPass(siteId);
}

/** Runs the work in a transaction. An obstacle rolls it back, and only the obstacle is recorded. */
async function unlessObstructed(
  parts: Parts,
  version: Version,
  work: (trx: Database) => Promise<void>,
): Promise<void> {
  try {
    await parts.db.transaction().execute(work);
  } catch (error) {
    if (!(error instanceof Obstructed)) throw error;
    await refuseVersion(parts, version, error.obstacle);
  }
}

/** Rolls the transaction back. */
class Obstructed extends Error {
  readonly obstacle: ProjectionObstacle;
  constructor(obstacle: ProjectionObstacle) {
    super(obstacle.detail);
    this.obstacle = obstacle;
  }
}

function demandNone(obstacle: ProjectionObstacle | null): asserts obstacle is null {
  if (obstacle !== null) throw new Obstructed(obstacle);
}

/** What prevents a manifest from being applied; `null`: nothing does. */
export function findObstacle(
  contested: readonly string[],
  holdsPorts: boolean,
  { ports }: Pick<ManifestView, 'ports'>,
): ProjectionObstacle | null {
  if (!holdsPorts) {
    const detail = `another site holds port ${ports.processing} or ${ports.preview}`;
    return { reason: 'port_taken', detail };
  }
  if (contested.length === 0) return null;
  return { reason: 'domain_in_use', detail: `another site or client holds ${contested.join(', ')}` };
}
