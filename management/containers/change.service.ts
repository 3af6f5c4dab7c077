import { randomUUID } from 'node:crypto';
import { fieldErrors } from '../../base/http/problem.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import {
  isFirstPartyHost,
  type Manifest,
  type ManifestInput,
  manifestSchema,
} from '../../sites/manifest/schema.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import { demandAnyContainer, demandContainer } from '../access/containers.ts';
import { demandSufficient, type Purpose } from '../access/roles.ts';
import type { Context, Settings } from '../context/context.ts';
import type { Actor, Database } from '../db/database.ts';
import { type ManifestView, withoutSecrets } from '../db/manifest-view.ts';
import { ManagementProblem, repoProblem } from '../http/errors.ts';
import type { Role } from '../lifecycle/roles.ts';
import { isUnsettled } from '../lifecycle/steps.ts';
import { contestAdvice, contestDomains } from '../proof/contest.ts';
import { markUnproven } from '../proof/manifest.ts';
import { claimForChange, settleClaims } from '../records/claims.repository.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { claimedNames } from '../records/sites.repository.ts';
import { demandMatch } from '../view/etag.ts';
import type { Draw } from './names/draw.ts';
import { refuseOwnZone } from './names/own-zone.ts';
import { fileVersion, type Planning, UNPLANNED } from './planning.ts';
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
  /** Subject of the commit; the site id is appended. A function gets the manifest as the database has it. */
  readonly subject: string | ((manifest: ManifestView) => string);
  /** The reason that the commit records. Default: that the change was asked for through the API. */
  readonly reason?: string;
  /**
   * Edits the manifest that git holds now, or throws a `ManagementProblem`. Called again after a lost race. What it
   * generates is made from `draw`.
   */
  edit(current: Manifest, draw: Draw): ManifestInput;
  /**
   * The request's member that is at fault if the edited manifest isn't valid. Default: the members of the request are
   * named as in the manifest.
   */
  readonly field?: string;
  /** The change is refused unless git holds the version that the caller has read. */
  readonly ifMatch?: string | undefined;
  /** Names that the edit adds. They are claimed before the commit. */
  readonly claims?: readonly string[];
  /** The caller is an operator, who may do this without a membership. */
  readonly asOperator?: boolean;
  /** Default: `UNPLANNED`. */
  readonly planning?: Planning;
  /** What the caller's role must be sufficient for. Default: `act`. */
  readonly purpose?: Purpose | ((manifest: ManifestView) => Purpose) | undefined;
}

/** With the caller's role, unless the caller acts as an operator. */
type ChangedContainer = ContainerWithOperation & { readonly role?: Role };

/** What is judged each time that a change's edit is made. */
type Judged = Pick<ContainerChange, 'edit' | 'ifMatch' | 'purpose' | 'field' | 'planning'>;

/**
 * Changes a site as an operator would: by a commit in the caller's name. When this resolves, the database shows the
 * change. The provisioner is notified, so that it applies the change before its next poll.
 */
export async function changeContainer(
  context: Context,
  projection: Projector,
  change: ContainerChange,
): Promise<ChangedContainer> {
  const { db, provisioner, log } = context;
  const { id, requestId, claims = [] } = change;
  const row = await changeableContainer(context, change);
  const moved = await contestDomains(context, { client: row.client_id, names: claims, requestId });
  const changeId = randomUUID();
  const contested = await claimForChange(db, id, changeId, claims);
  if (contested.length > 0) {
    await settleClaims(db, id, changeId);
    throw domainInUse(context, row.client_id, contested);
  }
  try {
    await commit(context, row, { ...change, moved });
  } catch (error) {
    // After a fault of the repository the commit may exist. The claims stay until a projection has shown whether it
    // does.
    const isRefused = error instanceof ManagementProblem && error.code !== 'sites_repo_unavailable';
    if (isRefused && claims.length > 0) await settleClaims(db, id, changeId);
    throw error;
  }
  // The commit is made, whatever fails from here on.
  const unprojected = await projection.run().catch((cause: unknown) => {
    throw new ManagementProblem('projection_failed', { cause });
  });
  // The names stay claimed: git has them, although the database doesn't show them yet.
  if (unprojected.has(row.site_id)) throw new ManagementProblem('projection_failed');
  if (claims.length > 0) await settleClaims(db, id, changeId);
  // Not awaited: a provisioner that hangs would delay the answer to every change.
  provisioner
    .sync({ requestId })
    .catch((err: unknown) =>
      log.warn({ err, site: row.site_id }, 'the provisioner will get the commit at its next poll'),
    );
  return await demandForChange(context, change);
}

async function demandForChange(
  { db }: Context,
  { id, caller, asOperator = false }: ContainerChange,
): Promise<ChangedContainer> {
  return asOperator ? await demandAnyContainer(db, id) : await demandContainer(db, id, caller, 'edit');
}

/** The container of a change, read before its names are claimed. Throws if the change can already be refused. */
export async function changeableContainer(
  context: Context,
  change: ContainerChange,
): Promise<ChangedContainer> {
  const { caller, requestId, claims = [] } = change;
  const row = await demandForChange(context, change);
  if (row.role !== undefined) demandSufficient(row.role, purposeOf(change, row.manifest));
  const { operation } = row;
  if (operation?.status === 'running' && isUnsettled(operation.step)) {
    throw new ManagementProblem('container_busy');
  }
  // Names that the site already has are allowed, even if a zone of the installation now includes them.
  const known = claimedNames(row.manifest);
  const added = claims.filter((name) => !known.includes(name));
  refuseOwnZone(context.settings, added, () => 'domain');
  if (added.length > 0) demandPlaced(context, row.site_id, { subject: caller.subject, requestId });
  return row;
}

function purposeOf({ purpose = 'act' }: Pick<ContainerChange, 'purpose'>, manifest: ManifestView): Purpose {
  return typeof purpose === 'function' ? purpose(manifest) : purpose;
}

export function subjectOf(
  { subject }: Pick<ContainerChange, 'subject'>,
  { site_id, manifest }: Pick<ChangedContainer, 'site_id' | 'manifest'>,
): string {
  return `${typeof subject === 'function' ? subject(manifest) : subject} ${site_id}`;
}

/** With the domains that have moved to the client for the change. */
type Contested = ContainerChange & { readonly moved: readonly string[] };

async function commit(context: Context, row: ChangedContainer, change: Contested): Promise<void> {
  const { caller, requestId, reason = 'asked for through the API' } = change;
  const site = row.site_id;
  try {
    await context.repo.commit({
      site,
      subject: subjectOf(change, row),
      author: { name: caller.name, email: caller.email },
      trailers: {
        Site: site,
        Actor: caller.subject,
        'Request-Id': requestId,
        Reason: reason,
      },
      // The edit may have waited behind others: the caller's role or the container's client may have changed meanwhile.
      edit: async (current) =>
        await rewrite(context, await demandForChange(context, change), current, change),
    });
  } catch (cause) {
    if (!(cause instanceof SitesRepoError)) throw cause;
    throw repoProblem(cause);
  }
}

export function domainInUse(
  context: Pick<Context, 'settings'>,
  client: string,
  contested: readonly string[],
): ManagementProblem {
  return new ManagementProblem('domain_in_use', {
    detail: `another site or client holds ${contested.join(', ')}${contestAdvice(context, client, contested)}`,
    errors: [{ path: 'domain', message: 'is held by another site or client' }],
  });
}

async function rewrite(
  context: Pick<Context, 'db' | 'settings'>,
  row: ChangedContainer,
  current: string | null,
  change: Contested,
): Promise<string> {
  const { before, after } = await editedManifest(context, row, current, change);
  change.planning?.seal({ before: fileVersion(current), after, moved: change.moved });
  // An edit that changes nothing keeps the text, including its comments.
  return isSame(after, before) && current !== null ? current : formatManifest(after);
}

/** The manifest in a site's file, and as a change makes it. Throws the problem of a change that is refused. */
export async function editedManifest(
  { db, settings }: { readonly db: Database; readonly settings: Pick<Settings, 'domainProof'> },
  row: Pick<ChangedContainer, 'site_id' | 'client_id' | 'status' | 'role' | 'revision'>,
  current: string | null,
  { edit, ifMatch, purpose, field, planning = UNPLANNED }: Judged,
): Promise<{ readonly before: Manifest; readonly after: Manifest }> {
  const { site_id, client_id, status, role, revision } = row;
  const wrongStatus = () => new ManagementProblem('wrong_status', { detail: `the container is ${status}` });
  if (current === null) throw wrongStatus();
  const parsed = await readManifest(current, `${site_id}.yaml`);
  if (!parsed.ok) throw new ManagementProblem('manifest_broken', { errors: parsed.problems });
  if (parsed.manifest.state === 'absent') throw wrongStatus();
  const view = withoutSecrets(parsed.manifest);
  // Checked again, because the purpose depends on the manifest, and the database may be behind git.
  if (role !== undefined) demandSufficient(role, purposeOf({ purpose }, view));
  demandMatch(ifMatch, view);
  // A commit's id, so that no version of the container has the values that an earlier one had.
  const draw = planning.draw(revision ?? '');
  const edited = await markUnproven(db, settings, client_id, edit(parsed.manifest, draw));
  const changed = manifestSchema.safeParse(edited);
  if (!changed.success) {
    const errors = fieldErrors(changed.error.issues);
    const domains = edited.domains.map(({ domain }) => domain);
    const index = edited.customDomains?.findIndex((host) => !isFirstPartyHost(host, domains));
    // Not found if another error kept the custom domains from being compared with the domains.
    const foreign = errors.find(({ path }) => path === `customDomains.${index}`);
    throw new ManagementProblem(foreign ? 'foreign_domain' : 'invalid_request', {
      detail: (foreign ?? errors[0])?.message,
      errors: errors.map(({ path, message }) => ({ path: field ?? path, message })),
    });
  }
  return { before: parsed.manifest, after: changed.data };
}

function isSame(one: Manifest, other: Manifest): boolean {
  return formatManifest(one) === formatManifest(other);
}
