import type { z } from 'zod';
import type { RolloutRow, RolloutSite } from './rollouts.repository.ts';
import type { rolloutSummary, rolloutView } from './rollouts.schema.ts';
import { allWaves } from './waves.ts';

type Summary = z.output<typeof rolloutSummary>;

export function summaryOf(row: RolloutRow, sites: Summary['sites']): Summary {
  const { id, image, status, reason, detail, actor, created_at, updated_at } = row;
  return {
    id,
    image,
    status,
    reason,
    detail,
    waveSizes: row.waves,
    watchSeconds: row.watch_seconds,
    actor: actor.subject,
    createdAt: created_at.toISOString(),
    updatedAt: updated_at.toISOString(),
    sites,
  };
}

export function presentRollout(row: RolloutRow, sites: readonly RolloutSite[]): z.output<typeof rolloutView> {
  const byState = Map.groupBy(sites, ({ state }) => state);
  const counts = Object.fromEntries([...byState].map(([state, all]) => [state, all.length]));
  return {
    ...summaryOf(row, counts),
    waves: allWaves(sites, row.waves).map(({ number, sites: own }) => ({
      number,
      sites: own.map(presentSite),
    })),
  };
}

function presentSite({
  site_id,
  container_id,
  state,
  reason,
  detail,
  from_image,
  revision,
  since,
}: RolloutSite) {
  return {
    siteId: site_id,
    containerId: container_id,
    state,
    reason,
    detail,
    fromImage: from_image,
    commit: revision,
    since: since?.toISOString() ?? null,
  };
}
