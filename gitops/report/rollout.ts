import type { ShownSite } from './report.ts';

/** What `tagyard image` and the API's image rollouts have in common: the order of the changes, and their judgement. */

interface Rollout<Outcome> {
  /** All sites, in the order of the rollout. */
  readonly sites: readonly string[];
  /** The sites that were changed or skipped. */
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** How many sites each wave changes at once; the last one counts for all further waves. */
  readonly waves: readonly number[];
  /** The rollout stops when more sites than this have failed. */
  readonly maxFailures: number;
}

/**
 * The sites to change next; empty when the rollout is complete or must stop. Skipped sites say nothing about the image,
 * so they don't count. If the only site that was tried has failed, the rollout stops.
 */
export function nextBatch<Outcome extends { readonly state: string }>({
  sites,
  outcomes,
  waves,
  maxFailures,
}: Rollout<Outcome>): readonly string[] {
  const tried = [...outcomes.values()].filter(({ state }) => state !== 'skipped');
  const failures = tried.filter(hasFailed).length;
  const mostFailures = tried.length === 1 ? 0 : maxFailures;
  if (failures > mostFailures) return [];
  const rest = sites.filter((site) => !outcomes.has(site));
  return rest.slice(0, waveSize(waves, tried.length));
}

/** How many sites to change next, after `tried` sites: as many as the current wave still lacks, or a new wave. */
function waveSize(waves: readonly number[], tried: number): number {
  let before = 0;
  for (const size of waves.slice(0, -1)) {
    if (tried < before + size) return before + size - tried;
    before += size;
  }
  return waves.at(-1) ?? 1;
}

function hasFailed({ state }: { readonly state: string }): boolean {
  return state === 'reverted' || state === 'failed';
}

/** How the subject of a commit begins that changes a site's image: the site's id comes after it. */
export const IMAGE_SUBJECT = 'Change the image of';

interface SiteHistory {
  readonly site: string;
  /** Newest first. */
  readonly history: readonly { readonly revision: string; readonly subject: string }[];
}

/** The revision of the site's newest commit if that commit changed the image, else `null`. */
export function imageCommit({ site, history }: SiteHistory): string | null {
  const [newest] = history;
  return newest?.subject === `${IMAGE_SUBJECT} ${site}` ? newest.revision : null;
}

/** A site that is not ready can still be changed if its newest commit changed the image, which may be the cause. */
export function isChangeable(site: SiteHistory & Pick<ShownSite, 'ready'>): boolean {
  return site.ready || imageCommit(site) !== null;
}

/** `pending`: not ready and not failed, so that the watch period of the site starts again. */
export function watchedCondition({ ready, reason }: Pick<ShownSite, 'ready' | 'reason'>) {
  if (reason === 'Failed' || reason === 'Retrying') return 'failed';
  return ready ? 'ready' : 'pending';
}
