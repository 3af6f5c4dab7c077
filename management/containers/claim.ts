import { randomUUID } from 'node:crypto';
import type { Manifest } from '../../gitops/manifest/schema.ts';
import type { Context, Settings } from '../context/context.ts';
import type { Actor, Database } from '../db/database.ts';
import { withoutSecrets } from '../db/manifest-view.ts';
import { ManagementProblem } from '../http/errors.ts';
import { leasePorts } from '../ports/ports.repository.ts';
import { contestAdvice } from '../proof/contest.ts';
import { markUnproven } from '../proof/manifest.ts';
import { claimDomains } from '../records/claims.repository.ts';
import { insertContainer } from '../records/containers.repository.ts';
import { moveDomain } from '../records/domain-move.repository.ts';
import { hostnamesOfOthers } from '../records/hostnames.repository.ts';
import { type IdempotencyKey, takeKey } from '../records/idempotency.repository.ts';
import { insertOperation, type OperationRow } from '../records/operations.repository.ts';
import { type Draft, draftManifest } from './draft.ts';
import { neutralId } from './names/neutral-name.ts';
import { needsSuffix, withSuffix } from './names/site-id.ts';

const NAME_TRIES = 5;

/** The caller that creates a container, its request and its key. */
interface Origin {
  readonly caller: Actor;
  readonly requestId: string;
  readonly key: IdempotencyKey | null;
}

/**
 * Creates record, domain claims, port lease and operation in one transaction. `null`: the key is taken. A site id is
 * never reused: it must have no record, and the sites repository must never have held it. A site id is also skipped if
 * an operator has given its hostnames to another site.
 */
export async function claimContainer(
  context: Context,
  draft: Draft,
  origin: Origin,
): Promise<OperationRow | null> {
  try {
    return await claimFreeId(context, draft, origin);
  } catch (error) {
    if (error instanceof KeyTaken) return null;
    throw error;
  }
}

/**
 * The manifest that `claimContainer` would give: the claim is made and undone. Throws the same problems. `winnable`: domains
 * that the request would move to the client first.
 */
export async function tryClaim(
  context: Context,
  draft: Draft,
  origin: Omit<Origin, 'key'>,
  winnable: readonly string[],
): Promise<Manifest | null> {
  const now = context.clock.date();
  try {
    await claimFreeId(
      context,
      draft,
      { ...origin, key: null },
      {
        before: async (trx) => {
          for (const domain of winnable) await moveDomain(trx, { client: draft.clientId, domain }, now);
        },
        after: (tried) => {
          throw new TriedClaim(tried.manifest);
        },
      },
    );
  } catch (error) {
    if (error instanceof TriedClaim) return error.manifest;
    throw error;
  }
  return null;
}

/** Functions that run in the transaction of a claim. If one of them throws, the claim is undone. */
interface Steps {
  before(trx: Database): Promise<void>;
  after(operation: OperationRow): void;
}

async function claimFreeId(
  { db, repo, settings }: Context,
  draft: Draft,
  origin: Origin,
  steps?: Steps,
): Promise<OperationRow> {
  const { name, domains, siteId } = draft;
  if (siteId !== undefined && needsSuffix(siteId, settings.host)) throw refusedId('is reserved');
  const base = siteId ?? neutralId({ name, domains: domains.map(({ domain }) => domain) }, settings);
  for (let attempt = 0; attempt < NAME_TRIES; attempt += 1) {
    const site = attempt > 0 || needsSuffix(base, settings.host) ? withSuffix(base) : base;
    try {
      return await db.transaction().execute(async (trx) => {
        await steps?.before(trx);
        const [operation, history] = await Promise.all([
          claim(trx, settings, { draft, site, origin }),
          repo.history(site, 1),
        ]);
        if (history.length > 0) throw new NameTaken();
        steps?.after(operation);
        return operation;
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

class NameTaken extends Error {}
class KeyTaken extends Error {}

class TriedClaim extends Error {
  readonly manifest: Manifest | null;
  constructor(manifest: Manifest | null) {
    super('the claim was only tried');
    this.manifest = manifest;
  }
}

interface Claim {
  readonly draft: Draft;
  readonly site: string;
  readonly origin: Origin;
}

async function claim(
  trx: Database,
  settings: Settings,
  { draft, site, origin: { caller, requestId, key } }: Claim,
): Promise<OperationRow> {
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
  const ports = await leasePorts(trx, settings.host, draft.id);
  if (ports === null) throw new ManagementProblem('no_free_port');

  const manifest = await markUnproven(trx, settings, draft.clientId, { ...provisional, ports });
  await trx
    .updateTable('containers')
    .set({ manifest: JSON.stringify(withoutSecrets(manifest)) })
    .where('id', '=', draft.id)
    .execute();
  return await insertOperation(trx, {
    id: randomUUID(),
    container_id: draft.id,
    kind: 'provision',
    step: 'commit',
    manifest: JSON.stringify(manifest),
    actor: JSON.stringify(caller),
    request_id: requestId,
  });
}
