import type { ShownSite } from '../report/report.ts';

/**
 * The outcome of the rollout for one site. `waiting`: the command ended before the site was watched to its end; the
 * next run of the command continues. `skipped`: the site was not well before, so it says nothing about the image.
 */
export interface RolloutOutcome {
  readonly state: 'swapped' | 'already' | 'reverted' | 'failed' | 'waiting' | 'skipped';
  readonly detail: string;
}

export interface Rollout {
  /** All sites, in the order of the rollout. */
  readonly sites: readonly string[];
  readonly outcomes: ReadonlyMap<string, RolloutOutcome>;
  /** How many sites are changed at once after the first one. */
  readonly atOnce: number;
  /** The rollout stops when more sites than this have failed. */
  readonly maxFailures: number;
}

/**
 * The sites to change next; empty when the rollout is complete or must stop. One site is changed alone until the image
 * runs on a site that was well before. If that first site fails, the rollout stops.
 */
export function nextBatch({ sites, outcomes, atOnce, maxFailures }: Rollout): readonly string[] {
  const tried = [...outcomes.values()].filter(({ state }) => state !== 'skipped');
  const failures = tried.filter(hasFailed).length;
  const mostFailures = tried.length === 1 ? 0 : maxFailures;
  if (failures > mostFailures) return [];
  const rest = sites.filter((site) => !outcomes.has(site));
  return rest.slice(0, tried.length === 0 ? 1 : atOnce);
}

export function hasImage({ state }: RolloutOutcome): boolean {
  return state === 'swapped' || state === 'already';
}

function hasFailed({ state }: RolloutOutcome): boolean {
  return state === 'reverted' || state === 'failed';
}

/** The subject of the commit that changes a site's image. */
function imageSubject(site: string): string {
  return `Change the image of ${site}`;
}

interface SiteHistory {
  readonly site: string;
  /** Newest first. */
  readonly history: readonly { readonly revision: string; readonly subject: string }[];
}

/** The revision of the site's newest commit if that commit changed the image, else `null`. */
export function imageCommit({ site, history }: SiteHistory): string | null {
  const [newest] = history;
  return newest?.subject === imageSubject(site) ? newest.revision : null;
}

/** A site that is not ready can still be changed if its newest commit changed the image, which may be the cause. */
export function isChangeable(site: SiteHistory & Pick<ShownSite, 'ready'>): boolean {
  return site.ready || imageCommit(site) !== null;
}

/** `pending`: changes are still being applied, so the watch period of the site starts again. */
export function watchedCondition({ ready, reason }: Pick<ShownSite, 'ready' | 'reason'>) {
  if (reason === 'Failed' || reason === 'Retrying') return 'failed';
  return ready ? 'well' : 'pending';
}
