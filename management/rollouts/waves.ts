import { nextBatch } from '../../gitops/report/rollout.ts';
import type { RolloutSite } from './rollouts.repository.ts';

type Progress = Pick<RolloutSite, 'site_id' | 'state' | 'wave'>;

/** The sites of the next wave; empty: all waves have begun, or a site has failed. */
export function nextWave(sites: readonly Progress[], waves: readonly number[]): readonly string[] {
  const begun = sites.filter(({ state }) => state !== 'pending');
  const outcomes = new Map(begun.map((site) => [site.site_id, site]));
  return nextBatch({ sites: sites.map(({ site_id }) => site_id), outcomes, waves, maxFailures: 0 });
}

/** The waves that have begun, and those that are to follow if no further site is skipped. */
export function allWaves<Site extends Progress>(
  sites: readonly Site[],
  waves: readonly number[],
): { number: number; sites: Site[] }[] {
  const begun = Map.groupBy(
    sites.filter(({ wave }) => wave !== null),
    ({ wave }) => wave ?? 0,
  );
  const shown = [...begun].toSorted(([a], [b]) => a - b).map(([number, own]) => ({ number, sites: own }));
  // Failures don't count here: the next waves are shown as if the rollout had continued.
  const outcomes = new Map(
    sites
      .filter(({ state }) => state !== 'pending')
      .map(({ site_id, state }) => [site_id, { state: state === 'skipped' ? state : 'swapped' }]),
  );
  let rest = sites.filter(({ state }) => state === 'pending');
  while (rest.length > 0) {
    const names = rest.map(({ site_id }) => site_id);
    const size = nextBatch({ sites: names, outcomes, waves, maxFailures: 0 }).length;
    shown.push({ number: (shown.at(-1)?.number ?? 0) + 1, sites: rest.slice(0, size) });
    for (const name of names.slice(0, size)) outcomes.set(name, { state: 'swapped' });
    rest = rest.slice(size);
  }
  return shown;
}
