import { randomUUID } from 'node:crypto';
import { type Context, withoutConfig } from '../context/context.ts';
import type { Actor, Database } from '../db/database.ts';
import { ProblemError } from '../http/errors.ts';
import { type IdempotencyKey, takeKey } from './idempotency.repository.ts';
import { insertOperation, type OperationRow } from '../records/operations.repository.ts';
import { leasePorts } from '../ports/ports.repository.ts';
import { claimDomains } from '../records/claims.repository.ts';
import { hostnamesOfOthers } from '../records/hostnames.repository.ts';
import { insertContainer } from '../records/containers.repository.ts';
import { type Draft, draftManifest } from './draft.ts';
import { needsSuffix, slug, withSuffix } from './site-id.ts';

const NAME_TRIES = 5;

/** On whose behalf, and under which key, a container is made. */
export interface Origin {
  readonly caller: Actor;
  readonly requestId: string;
  readonly key: IdempotencyKey | null;
}

/**
 * Record, domains, ports and operation in one transaction; `null` where the key is taken. Site ids are never reused:
 * neither one that has a record, nor one that stands in the sites repository or ever did. Nor is one taken whose
 * hostnames another site was given by hand.
 */
export async function begin(context: Context, draft: Draft, origin: Origin): Promise<OperationRow | null> {
  const base = slug(draft.name);
  for (let attempt = 0; attempt < NAME_TRIES; attempt += 1) {
    const site = attempt > 0 || needsSuffix(base) ? withSuffix(base) : base;
    try {
      return await context.db.transaction().execute(async (trx) => {
        const [operation, history] = await Promise.all([
          claim(trx, context, draft, site, origin),
          context.repo.history(site, 1),
        ]);
        if (history.length > 0) throw new NameTaken();
        return operation;
      });
    } catch (error) {
      if (error instanceof NameTaken) continue;
      if (error instanceof KeyTaken) return null;
      throw error;
    }
  }
  throw new Error(`no free site id was found for ${base} in ${NAME_TRIES} tries`);
}

class NameTaken extends Error {}
class KeyTaken extends Error {}

async function claim(
  trx: Database,
  { settings }: Context,
  draft: Draft,
  site: string,
  { caller, requestId, key }: Origin,
): Promise<OperationRow> {
  // The ports aren't known yet; the row is there first because leases and claims refer to it.
  const provisional = draftManifest(draft, site, { processing: 1024, preview: 1025 }, settings);
  const cause = { actor: caller.subject, requestId, revision: null };
  const row = {
    id: draft.id,
    site_id: site,
    client_id: draft.clientId,
    status: 'provisioning' as const,
    manifest: JSON.stringify(withoutConfig(provisional)),
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
    throw new ProblemError('domain_in_use', `another site holds ${contested.join(', ')}`, {
      errors: contested.map((domain) => ({
        path: `domains.${draft.domains.findIndex((page) => page.domain === domain)}`,
        message: 'is held by another site',
      })),
    });
  }
  const ports = await leasePorts(trx, settings.host, draft.id);
  if (ports === null) throw new ProblemError('no_free_port');

  const manifest = { ...provisional, ports };
  await trx
    .updateTable('containers')
    .set({ manifest: JSON.stringify(withoutConfig(manifest)) })
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
