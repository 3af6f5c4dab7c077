import { randomUUID } from 'node:crypto';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { Context, Settings } from '../context/context.ts';
import type { Actor, Database } from '../db/database.ts';
import { withoutSecrets } from '../db/manifest-view.ts';
import { undone } from '../db/undone.ts';
import { ManagementProblem } from '../http/errors.ts';
import { contestAdvice } from '../proof/contest.ts';
import { markUnproven } from '../proof/manifest.ts';
import { claimDomains } from '../records/claims.repository.ts';
import { insertContainer, siteIdsLike } from '../records/containers.repository.ts';
import { moveDomain } from '../records/domain-move.repository.ts';
import { hostnamesOfOthers } from '../records/hostnames.repository.ts';
import { type IdempotencyKey, takeKey } from '../records/idempotency.repository.ts';
import { insertOperation, type OperationRow } from '../records/operations.repository.ts';
import { type Draft, draftManifest } from './draft.ts';
import type { Draw } from './names/draw.ts';
import { neutralId } from './names/neutral-name.ts';
import { needsSuffix, withSuffix } from './names/site-id.ts';
import type { Planning } from './planning.ts';
import { demandQuota } from './quota.ts';

const NAME_TRIES = 5;

/** What a creation claims, with its caller, its request and its key. */
export interface NewClaim {
  readonly caller: Actor;
  readonly requestId: string;
  readonly key: IdempotencyKey | null;
  readonly planning: Planning;
  readonly clientId: string;
  readonly name: string;
  /** A wanted site id; without one it is made from the name. */
  readonly siteId: string | undefined;
  readonly domains: readonly string[];
  /** Domains that the request moves to the client. */
  readonly moved: readonly string[];
  /** What the container has of another one. */
  readonly copied: unknown;
  /** Makes the draft for one site id. */
  draft(draw: Draw): Promise<Draft>;
}

/**
 * Creates record, domain claims, port lease and operation in one transaction. `null`: the key is taken. A site id is
 * never reused: it must have no record, and the sites repository must never have held it. A site id is also skipped if
 * an operator has given its hostnames to another site.
 */
export async function claimContainer(context: Context, wanted: NewClaim): Promise<OperationRow | null> {
  try {
    return (await claimFreeId(context, wanted)).operation;
  } catch (error) {
    if (error instanceof KeyTaken) return null;
    throw error;
  }
}

/** What `claimContainer` would claim: the claim is made and undone. Throws the same problems. */
export async function tryClaim(context: Context, wanted: NewClaim): Promise<Claimed> {
  const { clientId: client, moved } = wanted;
  return await claimFreeId(context, wanted, (claimIn) =>
    undone(context.db, async (trx) => {
      for (const domain of moved) await moveDomain(trx, { client, domain }, context.clock.date());
      return await claimIn(trx);
    }),
  );
}

type Claiming = (claimIn: (trx: Database) => Promise<Claimed>) => Promise<Claimed>;

async function claimFreeId(
  { db, repo, settings }: Context,
  wanted: NewClaim,
  transact: Claiming = (claimIn) => db.transaction().execute(claimIn),
): Promise<Claimed> {
  const { planning, siteId } = wanted;
  if (siteId !== undefined && needsSuffix(siteId, settings.host)) throw refusedId('is reserved');
  const base = siteId ?? neutralId(wanted, settings);
  const taken = await siteIdsLike(db, base);
  if (siteId !== undefined && taken.has(siteId)) throw refusedId('is taken, or was once');
  const draw = planning.draw(base);
  let next = needsSuffix(base, settings.host) ? withSuffix(base, draw) : base;
  for (let attempt = 0; attempt < NAME_TRIES; attempt += 1) {
    while (taken.has(next)) next = withSuffix(base, draw);
    const site = next;
    taken.add(site);
    try {
      return await transact(async (trx) => {
        const [claimed, history] = await Promise.all([
          claim(trx, settings, wanted, site),
          repo.history(site, 1),
        ]);
        if (history.length > 0) throw new NameTaken();
        return claimed;
      });
    } catch (error) {
      if (!(error instanceof NameTaken)) throw error;
      if (siteId !== undefined) throw refusedId('is taken, or was once');
    }
  }
  throw new Error(`found no free site id for ${base} in ${NAME_TRIES} tries`);
}

function refusedId(reason: string): ManagementProblem {
  const message = `${reason}; choose another one`;
  return new ManagementProblem('invalid_request', { errors: [{ path: 'siteId', message }] });
}

interface Claimed {
  readonly operation: OperationRow;
  readonly manifest: Manifest;
  readonly checksum: string;
}

class NameTaken extends Error {}
class KeyTaken extends Error {}

async function claim(
  trx: Database,
  settings: Settings,
  { caller, requestId, key, planning, moved, copied, ...wanted }: NewClaim,
  site: string,
): Promise<Claimed> {
  const draft = await wanted.draft(planning.draw(site));
  await demandQuota(trx, settings, draft.clientId, [draft.id]);
  // Leases and claims refer to the container's row, so it is inserted before its ports are known.
  const provisional = draftManifest(draft, site, { processing: 1024, preview: 1025 }, settings);
  const cause = { actor: caller.subject, requestId, revision: null };
  const row = {
    id: draft.id,
    site_id: site,
    client_id: draft.clientId,
    status: 'provisioning' as const,
    manifest: withoutSecrets(provisional),
  };
  if (!(await insertContainer(trx, row, cause))) throw new NameTaken();
  const hostnames = Object.values(provisional.hostnames);
  if ((await hostnamesOfOthers(trx, draft.id, hostnames)).length > 0) throw new NameTaken();
  if (key !== null && !(await takeKey(trx, key, draft.id))) throw new KeyTaken();

  const contested = await claimDomains(
    trx,
    draft.id,
    draft.domains.map(({ domain }) => domain),
  );
  if (contested.length > 0) {
    throw new ManagementProblem('domain_in_use', {
      detail: `another site or client holds ${contested.join(', ')}${contestAdvice({ settings }, draft.clientId, contested)}`,
      errors: contested.map((domain) => ({
        path: `domains.${draft.domains.findIndex((page) => page.domain === domain)}`,
        message: 'is held by another site or client',
      })),
    });
  }
  const ports = await planning.lease(trx, settings.host, draft.id);
  if (ports === null) throw new ManagementProblem('no_free_port');

  const manifest = await markUnproven(trx, settings, draft.clientId, { ...provisional, ports });
  const checksum = planning.seal({ before: copied, after: manifest, moved, leased: ports });
  await trx
    .updateTable('containers')
    .set({ manifest: JSON.stringify(withoutSecrets(manifest)) })
    .where('id', '=', draft.id)
    .execute();
  const operation = await insertOperation(trx, {
    id: randomUUID(),
    container_id: draft.id,
    kind: 'provision',
    step: 'commit',
    manifest: JSON.stringify(manifest),
    actor: JSON.stringify(caller),
    request_id: requestId,
  });
  return { operation, manifest, checksum };
}
