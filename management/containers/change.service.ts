import { randomUUID } from 'node:crypto';
import { fieldErrors } from '../../gitops/base/http/problem.ts';
import { formatManifest } from '../../gitops/manifest/load.ts';
import { readManifest } from '../../gitops/manifest/read.ts';
import { type Manifest, type ManifestInput, manifestSchema } from '../../gitops/manifest/schema.ts';
import { SitesRepoError } from '../../gitops/sites-repo/errors.ts';
import { demandAnyContainer, demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { withoutSecrets } from '../db/manifest-view.ts';
import { ManagementProblem } from '../http/errors.ts';
import { isUnsettled } from '../lifecycle/steps.ts';
import { claimForChange, settleClaims } from '../records/claims.repository.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { claimedNames } from '../records/sites.repository.ts';
import { demandMatch } from '../view/etag.ts';
import { refuseOwnZone } from './names/own-zone.ts';
import { demandPlaced } from './room.ts';

/** Brings the database up to date with the sites repository. */
export interface Projector {
  /** Resolves to the sites that could not be projected. They are tried again later. */
  run(): Promise<ReadonlySet<string>>;
}

export interface ContainerChange {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
  /** Subject of the commit; the site id is appended. */
  readonly subject: string;
  /** Edits the manifest that git holds now, or throws a `ManagementProblem`. Called again after a lost race. */
  edit(current: Manifest): ManifestInput;
  /** The change is refused unless git holds the version that the caller has read. */
  readonly ifMatch?: string | undefined;
  /** Names that the edit adds. They are claimed before the commit. */
  readonly claims?: readonly string[];
  /** The caller is an operator, who may do this without a membership. */
  readonly asOperator?: boolean;
}

/**
 * Changes a site as an operator would: by a commit in the caller's name. When this resolves, the database shows the
 * change. The provisioner is notified, so that it applies the change before its next poll.
 */
export async function changeContainer(
  context: Context,
  projection: Projector,
  change: ContainerChange,
): Promise<ContainerWithOperation & { readonly role?: string }> {
  const { db, provisioner, settings, log } = context;
  const { id, caller, requestId, claims = [], asOperator = false } = change;
  const find = (): Promise<ContainerWithOperation & { readonly role?: string }> =>
    asOperator ? demandAnyContainer(db, id) : demandContainer(db, id, caller, 'act');
  const row = await find();
  const { operation } = row;
  if (operation?.status === 'running' && isUnsettled(operation.step)) {
    throw new ManagementProblem('container_busy');
  }
  // Names that the site already has are allowed: the settings may have changed since, to a zone that includes them.
  const known = claimedNames(row.manifest);
  refuseOwnZone(
    settings,
    claims.filter((name) => !known.includes(name)),
    () => 'domain',
  );
  if (claims.some((name) => !known.includes(name))) {
    demandPlaced(context, row.site_id, { subject: caller.subject, requestId });
  }
  const changeId = randomUUID();
  const contested = await claimForChange(db, id, changeId, claims);
  if (contested.length > 0) {
    await settleClaims(db, id, changeId);
    throw new ManagementProblem('domain_in_use', {
      detail: `another site or client holds ${contested.join(', ')}`,
      errors: [{ path: 'domain', message: 'is held by another site or client' }],
    });
  }
  try {
    await commit(context, row, change);
  } catch (error) {
    // After a fault of the repository the commit may exist. The claims stay until a projection has shown whether it
    // does.
    const isRefused = error instanceof ManagementProblem && error.code !== 'sites_repo_unavailable';
    if (isRefused && claims.length > 0) await settleClaims(db, id, changeId);
    throw error;
  }
  const unprojected = await projection.run();
  // The names stay claimed: git has them, although the database doesn't show them yet.
  if (unprojected.has(row.site_id)) throw new ManagementProblem('projection_failed');
  if (claims.length > 0) await settleClaims(db, id, changeId);
  // Not awaited: a provisioner that hangs would delay the answer to every change.
  provisioner
    .sync({ requestId })
    .catch((err: unknown) =>
      log.warn({ err, site: row.site_id }, 'the provisioner will get the commit at its next poll'),
    );
  return await find();
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
    throw new ManagementProblem('sites_repo_unavailable', { cause });
  }
}

async function rewrite(
  { site_id, status }: ContainerWithOperation,
  current: string | null,
  { edit, ifMatch }: Pick<ContainerChange, 'edit' | 'ifMatch'>,
): Promise<string> {
  const wrongStatus = () => new ManagementProblem('wrong_status', { detail: `the container is ${status}` });
  if (current === null) throw wrongStatus();
  const parsed = await readManifest(current, `${site_id}.yaml`);
  if (!parsed.ok) throw new ManagementProblem('manifest_broken', { errors: parsed.problems });
  if (parsed.manifest.state === 'absent') throw wrongStatus();
  demandMatch(ifMatch, withoutSecrets(parsed.manifest));
  const changed = manifestSchema.safeParse(edit(parsed.manifest));
  if (!changed.success) {
    const errors = fieldErrors(changed.error.issues);
    const isForeign = errors.some(({ path }) => path.startsWith('customDomains'));
    throw new ManagementProblem(isForeign ? 'foreign_domain' : 'invalid_request', {
      detail: errors[0]?.message,
      errors,
    });
  }
  // An edit that changes nothing keeps the text, including its comments.
  return isSame(changed.data, parsed.manifest) ? current : formatManifest(changed.data);
}

function isSame(one: Manifest, other: Manifest): boolean {
  return formatManifest(one) === formatManifest(other);
}
