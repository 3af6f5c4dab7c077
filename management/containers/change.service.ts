import { randomUUID } from 'node:crypto';
import { formatManifest, parseManifest } from '../../gitops/manifest/load.ts';
import { type Manifest, type ManifestInput, manifestSchema } from '../../gitops/manifest/schema.ts';
import { SitesRepoError } from '../../gitops/sites-repo/sites-repo.ts';
import { type Context, withoutConfig } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { fieldErrors, ProblemError } from '../http/errors.ts';
import { judgeRole } from '../access/roles.ts';
import { UNSETTLED } from '../lifecycle/steps.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import { claimForChange, settleClaims } from '../records/claims.repository.ts';
import { refuseOwnZone } from '../records/hostnames.repository.ts';
import type { Projection } from '../sites/projection.ts';
import { claimedNames } from '../records/sites.repository.ts';
import { type ContainerWithOperation, findContainerFor } from '../records/containers.repository.ts';
import { isMatch } from './etag.ts';

export interface ContainerChange {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
  /** Subject of the commit, completed with the site id. */
  readonly subject: string;
  /** From the manifest as git has it now; throws the problem to answer. Called again after a lost race. */
  edit(current: Manifest): ManifestInput;
  /** Refused where git holds something else than what the caller has read. */
  readonly ifMatch?: string | undefined;
  /** Names that the edit adds; claimed before anything is committed. */
  readonly claims?: readonly string[];
}

export async function demandContainer(
  { db }: Pick<Context, 'db'>,
  id: string,
  caller: Actor,
  purpose: 'read' | 'act',
): Promise<ContainerWithOperation> {
  const found = await findContainerFor(db, id, caller.subject);
  if (found === null) throw new ProblemError('unknown_container');
  judgeRole(found.role, purpose);
  return found.container;
}

/**
 * Changes a site the way an operator would: a commit in the caller's name, from which everything else follows. When
 * this resolves, the API shows it; the host follows on its own and is only told to look now.
 */
export async function changeContainer(
  context: Context,
  projection: Projection,
  change: ContainerChange,
): Promise<ContainerWithOperation> {
  const { db, provisioner, settings, log } = context;
  const { id, caller, requestId, claims = [] } = change;
  const row = await demandContainer(context, id, caller, 'act');
  const { operation } = row;
  if (operation?.status === 'running' && UNSETTLED.includes(operation.step)) {
    throw new ProblemError('container_busy');
  }
  // What it has already it may keep and change: the zones may have been moved over it.
  const known = claimedNames(row.manifest);
  refuseOwnZone(
    settings,
    claims.filter((name) => !known.includes(name)),
    () => 'domain',
  );
  const own = randomUUID();
  const contested = await claimForChange(db, id, own, claims);
  if (contested.length > 0) {
    await settleClaims(db, id, own);
    throw new ProblemError('domain_in_use', `another site holds ${contested.join(', ')}`, {
      errors: [{ path: 'domain', message: 'is held by another site' }],
    });
  }
  try {
    await commit(context, row, change);
  } catch (error) {
    // Where the repository itself failed, nobody knows whether the commit came: the claims wait until that is seen.
    const refused = error instanceof ProblemError && error.code !== 'sites_repo_unavailable';
    if (refused && claims.length > 0) await settleClaims(db, id, own);
    throw error;
  }
  await projection.run();
  if (claims.length > 0) await settleClaims(db, id, own);
  await provisioner.sync({ requestId }).catch((err: unknown) => {
    if (!(err instanceof ProvisionerError)) throw err;
    log.warn({ err, site: row.site_id }, 'the provisioner will see the commit when it looks by itself');
  });
  return await demandContainer(context, id, caller, 'act');
}

async function commit(
  { repo }: Context,
  row: ContainerWithOperation,
  { caller, requestId, subject, edit, ifMatch }: ContainerChange,
): Promise<void> {
  const site = row.site_id;
  try {
    await repo.commit({
      site,
      subject: `${subject} ${site}`,
      author: { name: caller.name, email: caller.email },
      trailers: {
        Site: site,
        Actor: caller.subject,
        'Request-Id': requestId,
        Reason: 'asked for through the API',
      },
      edit: (current) => rewrite(row, current, { edit, ifMatch }),
    });
  } catch (cause) {
    if (!(cause instanceof SitesRepoError)) throw cause;
    throw new ProblemError('sites_repo_unavailable', undefined, {}, { cause });
  }
}

function rewrite(
  { site_id, status }: ContainerWithOperation,
  current: string | null,
  { edit, ifMatch }: Pick<ContainerChange, 'edit' | 'ifMatch'>,
): string {
  if (current === null) throw new ProblemError('wrong_status', `the container is ${status}`);
  const parsed = parseManifest(current, `${site_id}.yaml`);
  if (!parsed.ok) throw new ProblemError('manifest_broken', undefined, { errors: [...parsed.problems] });
  if (parsed.manifest.state === 'absent') {
    throw new ProblemError('wrong_status', `the container is ${status}`);
  }
  if (ifMatch !== undefined && !isMatch(ifMatch, withoutConfig(parsed.manifest))) {
    throw new ProblemError('precondition_failed');
  }
  const changed = manifestSchema.safeParse(edit(parsed.manifest));
  if (!changed.success) {
    const errors = fieldErrors(changed.error.issues);
    const foreign = errors.some(({ path }) => path.startsWith('customDomains'));
    throw new ProblemError(foreign ? 'foreign_domain' : 'invalid_request', errors[0]?.message, { errors });
  }
  // The text is kept, comments and all, where it already says the same.
  return isSame(changed.data, parsed.manifest) ? current : formatManifest(changed.data);
}

function isSame(one: Manifest, other: Manifest): boolean {
  return formatManifest(one) === formatManifest(other);
}
