import { randomUUID } from 'node:crypto';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { readManifest } from '../../../sites/manifest/read.ts';
import type { Manifest } from '../../../sites/manifest/schema.ts';
import { SitesRepoError } from '../../../sites/repo/errors.ts';
import { demandContainer } from '../../access/containers.ts';
import { demandOpen } from '../../access/tenants.ts';
import type { Context } from '../../context/context.ts';
import type { Actor, Database } from '../../db/database.ts';
import { undone } from '../../db/undone.ts';
import { ManagementProblem, repoProblem } from '../../http/errors.ts';
import { LIVE } from '../../lifecycle/status.ts';
import { holdPorts, type PortPair, releasePorts } from '../../ports/ports.repository.ts';
import { markUnproven } from '../../proof/manifest.ts';
import { claimForChange, settleClaims, unclaimableNames } from '../../records/claims.repository.ts';
import { type ContainerWithOperation, findContainer } from '../../records/containers.repository.ts';
import { hostnamesHeldByOthers } from '../../records/hostnames.repository.ts';
import { releasePlaces } from '../../records/places.repository.ts';
import { claimedNames } from '../../records/sites.repository.ts';
import { domainInUse, type Projector } from '../change.service.ts';
import { type ContainerPlan, currentText, planOfManifests } from '../dry-run.ts';
import { fileVersion, type Planning } from '../planning.ts';
import { demandQuota, holdQuota } from '../quota.ts';
import { demandRoom } from '../room.ts';

interface Restoration {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
  readonly planning: Planning;
}

/**
 * Brings a removed container back as it was: with its names, which must be free, and its tokens. It gets other ports if
 * its own are leased to another site by now.
 */
export async function restoreContainer(
  context: Context,
  projection: Projector,
  restoration: Restoration,
): Promise<ContainerWithOperation> {
  const { db, repo, settings } = context;
  const { id, caller, requestId, planning } = restoration;
  await planning.compare(() => planRestoration(context, restoration));
  const { row, manifest, before } = await judgeRestoration(context, restoration);
  const change = randomUUID();
  await holdQuota(db, settings, row.client_id, { change, containers: [id] });
  const contested = [
    ...(await claimForChange(db, id, change, claimedNames(manifest))),
    ...(await hostnamesHeldByOthers(db, id, manifest)),
  ];
  const settle = async () => {
    await settleClaims(db, id, change);
    await releasePlaces(db, change);
  };
  if (contested.length > 0) {
    await settle();
    throw domainInUse(context, row.client_id, contested);
  }
  const undoClaims = async () => {
    await settle();
    // A concurrent restoration may have brought the container back meanwhile.
    const now = await findContainer(db, id);
    if (now !== undefined && !LIVE.includes(now.status)) await releasePorts(db, id);
  };
  try {
    const ports = await portsOf(db, settings, manifest, planning);
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
        const after = { ...manifest, ports };
        planning.seal({ before, after, moved: [], leased: ports });
        return formatManifest(after);
      },
    });
  } catch (cause) {
    // After a fault of the repository the commit may exist, so its names and ports stay claimed.
    if (cause instanceof SitesRepoError && cause.refusal === null) throw repoProblem(cause);
    await undoClaims();
    throw cause instanceof SitesRepoError ? repoProblem(cause) : cause;
  }
  // The commit is made, whatever fails from here on.
  const unprojected = await projection.run().catch((cause: unknown) => {
    throw new ManagementProblem('projection_failed', { cause });
  });
  if (unprojected.has(row.site_id)) throw new ManagementProblem('projection_failed');
  await settle();
  return await demandContainer(db, id, caller, 'act');
}

/** Judges a restoration like `restoreContainer`. Changes nothing. */
export async function planRestoration(context: Context, restoration: Restoration): Promise<ContainerPlan> {
  const { db, settings } = context;
  const { planning } = restoration;
  const { row, manifest, last, before } = await judgeRestoration(context, restoration);
  const ports = await undone(db, async (trx) => {
    await demandQuota(trx, settings, row.client_id, [row.id]);
    const contested = [
      ...(await unclaimableNames(trx, row.id, claimedNames(manifest))),
      ...(await hostnamesHeldByOthers(trx, row.id, manifest)),
    ];
    if (contested.length > 0) throw domainInUse(context, row.client_id, contested);
    return await portsOf(trx, settings, manifest, planning);
  });
  const after = { ...manifest, ports };
  const checksum = planning.seal({ before, after, moved: [], leased: ports });
  return { plan: { ...planOfManifests(last, after, `Restore ${row.site_id}`), checksum } };
}

/** The container, the last manifest in git, and the one that restores it. Throws where it can't be restored. */
async function judgeRestoration(
  context: Context,
  { id, caller, requestId }: Omit<Restoration, 'planning'>,
): Promise<{ row: ContainerWithOperation; manifest: Manifest; last: Manifest; before: unknown }> {
  const row = await demandContainer(context.db, id, caller, 'act');
  if (row.status !== 'removed') {
    const detail = `the container is ${row.status}; only one that is removed can be restored`;
    throw new ManagementProblem('wrong_status', { detail });
  }
  await demandOpen(context.db, { kind: 'clients', id: row.client_id });
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
  return { row, last: parsed.manifest, manifest, before: [row.revision, fileVersion(text)] };
}

/** The site's file before its newest commit, which deleted it. */
async function lastText({ repo }: Context, site: string): Promise<string | null> {
  try {
    const entries = await repo.history(site, 1);
    const revisions = entries.map(({ revision }) => `${revision}^`);
    return [...(await repo.textsAt(site, revisions)).values()][0] ?? null;
  } catch (cause) {
    if (!(cause instanceof SitesRepoError)) throw cause;
    throw repoProblem(cause);
  }
}

/** Leases the container's own ports, or if another site has them those of its plan, or a free pair. */
async function portsOf(
  db: Database,
  { host }: Pick<Context['settings'], 'host'>,
  { container, ports, ...manifest }: Manifest,
  planning: Planning,
): Promise<PortPair> {
  if (await holdPorts(db, manifest.host, container, ports)) return ports;
  const leased = await planning.lease(db, host, container);
  if (leased === null) throw new ManagementProblem('no_free_port');
  return leased;
}

async function isPresent(text: string, { site_id }: ContainerWithOperation): Promise<boolean> {
  const parsed = await readManifest(text, `${site_id}.yaml`);
  return !parsed.ok || parsed.manifest.state === 'present';
}

function presentAlready(): ManagementProblem {
  const detail = 'the sites repository already has the site again, or another site of its name';
  return new ManagementProblem('wrong_status', { detail });
}
