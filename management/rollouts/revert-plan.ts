import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { REVERTIBLE } from '../lifecycle/rollout.ts';
import { LIVE } from '../lifecycle/status.ts';
import { isOtherActive, type RolloutRow } from './rollouts.repository.ts';

/**
 * What a revert of the rollout would change now: the sites that it has changed, that still have its image and that
 * aren't removed. Nothing once the revert has begun. Throws `rollout_active` if another rollout is active.
 */
export async function planRevert(db: Database, { id, image, status }: RolloutRow) {
  if (status !== 'reverting' && (await isOtherActive(db, id))) throw new ManagementProblem('rollout_active');
  const rows = await db
    .selectFrom('image_rollout_sites as changed')
    .innerJoin('containers', 'containers.id', 'changed.container_id')
    .select(['changed.site_id', 'changed.from_image'])
    .where('changed.rollout_id', '=', id)
    .where('changed.state', 'in', REVERTIBLE)
    .where('containers.status', 'in', LIVE)
    .where(sql<string>`containers.manifest->>'image'`, '=', image)
    .orderBy('changed.position')
    .execute();
  return rows.map((row) => ({ path: `sites[${row.site_id}].image`, from: image, to: row.from_image }));
}
