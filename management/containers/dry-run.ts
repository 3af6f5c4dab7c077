import { z } from 'zod';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import type { Context } from '../context/context.ts';
import { undone } from '../db/undone.ts';
import { ManagementProblem } from '../http/errors.ts';
import { moveWarnings, winnableDomains } from '../proof/contest.ts';
import { unclaimableNames } from '../records/claims.repository.ts';
import { moveDomain } from '../records/domain-move.repository.ts';
import { containerView } from '../view/container-view.ts';
import { manifestChanges } from '../view/manifest-plan.ts';
import { changeList } from '../view/plan.ts';
import { blockedHostWarnings } from '../view/present.ts';
import {
  type ContainerChange,
  changeableContainer,
  domainInUse,
  editedManifest,
  subjectOf,
} from './change.service.ts';
import { fileVersion, UNPLANNED } from './planning.ts';

/** The answer to a dry run of a container's mutation. */
export const containerPlan = z
  .object({
    plan: z.object({
      changes: changeList,
      commit: z.string().nullable().meta({ description: 'subject of the commit; null: there would be none' }),
      warnings: z.array(z.string()),
      checksum: z.string().meta({
        description: 'names the plan: as `x-tagyard-plan`, the same request saves exactly this plan',
      }),
    }),
  })
  .meta({ id: 'ContainerPlan', description: 'what the request would change; nothing has changed' });
export type ContainerPlan = z.output<typeof containerPlan>;

/**
 * Judges a change like `changeContainer`, and throws the same problems; also `plan_changed`, where the change names
 * another plan. Moves, claims and commits nothing.
 */
export async function planChange(context: Context, change: ContainerChange): Promise<ContainerPlan> {
  const { db, settings, clock } = context;
  const { claims: names = [], planning = UNPLANNED } = change;
  const row = await changeableContainer(context, change);
  const { client_id: client, site_id: site } = row;
  const winnable = await winnableDomains(context, { client, names });
  const text = await currentText(context, site);
  const { before, after } = await undone(db, async (trx) => {
    for (const domain of winnable) await moveDomain(trx, { client, domain }, clock.date());
    const contested = await unclaimableNames(trx, row.id, names);
    if (contested.length > 0) throw domainInUse(context, client, contested);
    return await editedManifest({ db: trx, settings }, row, text, change);
  });
  const checksum = planning.seal({ before: fileVersion(text), after, moved: winnable });
  const plan = planOfManifests(before, after, subjectOf(change, row));
  return { plan: { ...plan, warnings: [...moveWarnings(winnable), ...plan.warnings], checksum } };
}

/** The text of a site's file; `null`: there is none. Throws `sites_repo_unavailable`. */
export async function currentText({ repo }: Pick<Context, 'repo'>, site: string): Promise<string | null> {
  try {
    const head = await repo.head();
    return head === null ? null : ((await repo.readSite(head, site))?.text ?? null);
  } catch (cause) {
    if (!(cause instanceof SitesRepoError)) throw cause;
    throw new ManagementProblem('sites_repo_unavailable', { cause });
  }
}

/** The plan of a commit, without its checksum. `before: null`: the commit creates the site. */
export function planOfManifests(
  before: Manifest | null,
  after: Manifest,
  commit: string,
): Omit<ContainerPlan['plan'], 'checksum'> {
  const changes = manifestChanges(before, after);
  const known = before === null ? [] : blockedHostWarnings(before).map(({ host }) => host);
  const warnings = blockedHostWarnings(after)
    .filter(({ host }) => !known.includes(host))
    .map(({ host, detail }) => `${host}: ${detail}`);
  if (after.suspend && changes.length > 0) {
    warnings.push('the site is suspended: the change is applied when it is resumed');
  }
  return { changes, commit: changes.length > 0 ? commit : null, warnings };
}

/** The answer to a change: the container as it is then, or with `dryRun` the plan. */
export const changeAnswer = z.union([containerView, containerPlan]);
