import { randomUUID } from 'node:crypto';
import { formatManifest } from '../../../gitops/manifest/load.ts';
import { readManifest } from '../../../gitops/manifest/read.ts';
import type { Manifest } from '../../../gitops/manifest/schema.ts';
import { SitesRepoError } from '../../../gitops/sites-repo/errors.ts';
import { demandContainer } from '../../access/containers.ts';
import { demandOpen } from '../../access/tenants.ts';
import type { Context } from '../../context/context.ts';
import type { Actor } from '../../db/database.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { LIVE } from '../../lifecycle/status.ts';
import { holdPorts, leasePorts, type PortPair, releasePorts } from '../../ports/ports.repository.ts';
import { markUnproven } from '../../proof/manifest.ts';
import { claimForChange, settleClaims, unclaimableNames } from '../../records/claims.repository.ts';
import { type ContainerWithOperation, findContainer } from '../../records/containers.repository.ts';
import { hostnamesHeldByOthers } from '../../records/hostnames.repository.ts';
import { claimedNames } from '../../records/sites.repository.ts';
import { domainInUse, type Projector } from '../change.service.ts';
import { demandQuota } from '../create.service.ts';
import { type ContainerPlan, currentText, planOfManifests } from '../dry-run.ts';
import { demandRoom } from '../room.ts';

interface Restoration {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
}

/**
 * Brings a removed container back as it was: with its names, which must be free, and its tokens. It gets other ports if
 * its own are leased to another site by now.
 */
export async function restoreContainer(
  context: Context,
  projection: Projector,
  { id, caller, requestId }: Restoration,
): Promise<ContainerWithOperation> {
  const { db, repo } = context;
  const { row, manifest } = await judgeRestoration(context, { id, caller, requestId });
  const change = randomUUID();
  const contested = [
    ...(await claimForChange(db, id, change, claimedNames(manifest))),
    ...(await hostnamesHeldByOthers(db, id, manifest)),
  ];
  if (contested.length > 0) {
    await settleClaims(db, id, change);
    throw domainInUse(context, row.client_id, contested);
  }
  const undoClaims = async () => {
    await settleClaims(db, id, change);
    // A concurrent restoration may have brought the container back meanwhile.
    const now = await findContainer(db, id);
    if (now !== undefined && !LIVE.includes(now.status)) await releasePorts(db, id);
  };
  const ports = await portsOf(context, id, manifest);
  if (ports === null) {
    await undoClaims();
    throw new ManagementProblem('no_free_port');
  }
  try {
    await repo.commit({
      site: row.site_id,
      subject: `Restore ${row.site_id}`,
      author: { name: caller.name, email: caller.email },
      trailers: {
        Site: row.site_id,
        Actor: caller.subject,
        'Request-Id': requestId,
        Reason: 'asked for through the API',
      },
      edit: async (current) => {
        if (current !== null && (await isPresent(current, row))) throw presentAlready();
        return formatManifest({ ...manifest, ports });
      },
    });
  } catch (cause) {
    // After a fault of the repository the commit may exist, so its names and ports stay claimed.
    if (cause instanceof SitesRepoError) throw new ManagementProblem('sites_repo_unavailable', { cause });
    await undoClaims();
    throw cause;
  }
  const unprojected = await projection.run();
  if (unprojected.has(row.site_id)) throw new ManagementProblem('projection_failed');
  await settleClaims(db, id, change);
  return await demandContainer(db, id, caller, 'act');
}

/** Judges a restoration like `restoreContainer`, but not its ports. Changes nothing. */
export async function planRestoration(context: Context, restoration: Restoration): Promise<ContainerPlan> {
  const { row, manifest, last } = await judgeRestoration(context, restoration);
  const contested = [
    ...(await context.db
      .transaction()
      .execute((trx) => unclaimableNames(trx, row.id, claimedNames(manifest)))),
    ...(await hostnamesHeldByOthers(context.db, row.id, manifest)),
  ];
  if (contested.length > 0) throw domainInUse(context, row.client_id, contested);
  return planOfManifests(last, manifest, `Restore ${row.site_id}`);
}

/** The container, the last manifest in git, and the one that restores it. Throws where it can't be restored. */
async function judgeRestoration(
  context: Context,
  { id, caller, requestId }: Restoration,
): Promise<{ row: ContainerWithOperation; manifest: Manifest; last: Manifest }> {
  const row = await demandContainer(context.db, id, caller, 'act');
  if (row.status !== 'removed') {
    const detail = `the container is ${row.status}; only one that is removed can be restored`;
    throw new ManagementProblem('wrong_status', { detail });
  }
  await demandOpen(context.db, { kind: 'clients', id: row.client_id });
  await demandQuota(context, row.client_id);
  demandRoom(context, { subject: caller.subject, requestId });
  const text = (await currentText(context, row.site_id)) ?? (await lastText(context, row.site_id));
  const parsed = text === null ? null : await readManifest(text, `${row.site_id}.yaml`);
  if (parsed === null) {
    const detail = 'the sites repository has no manifest of the container any more';
    throw new ManagementProblem('wrong_status', { detail });
  }
  if (!parsed.ok) throw new ManagementProblem('manifest_broken', { errors: parsed.problems });
  if (parsed.manifest.container !== id) throw presentAlready();
  const { db, settings } = context;
  const restored: Manifest = { ...parsed.manifest, state: 'present' };
  const manifest = await markUnproven(db, settings, row.client_id, restored);
  return { row, last: parsed.manifest, manifest };
}

/** The site's file before its newest commit, which deleted it. */
async function lastText({ repo }: Context, site: string): Promise<string | null> {
  try {
    const entries = await repo.history(site, 1);
    const revisions = entries.map(({ revision }) => `${revision}^`);
    return [...(await repo.textsAt(site, revisions)).values()][0] ?? null;
  } catch (cause) {
    if (!(cause instanceof SitesRepoError)) throw cause;
    throw new ManagementProblem('sites_repo_unavailable', { cause });
  }
}

/** The container's own ports, or a free pair if another site has them. `null`: no pair is free. */
async function portsOf({ db, settings }: Context, id: string, manifest: Manifest): Promise<PortPair | null> {
  if (await holdPorts(db, manifest.host, id, manifest.ports)) return manifest.ports;
  return await leasePorts(db, settings.host, id);
}

async function isPresent(text: string, { site_id }: ContainerWithOperation): Promise<boolean> {
  const parsed = await readManifest(text, `${site_id}.yaml`);
  return !parsed.ok || parsed.manifest.state === 'present';
}

function presentAlready(): ManagementProblem {
  const detail = 'the sites repository already has the site again, or another site of its name';
  return new ManagementProblem('wrong_status', { detail });
}
