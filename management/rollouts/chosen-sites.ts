import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';

interface ChosenSite {
  readonly site_id: string;
  readonly container_id: string;
  readonly image: string;
}

/** These sites in this order; without names, all that are up, the oldest first. Throws `unknown_container`. */
export async function chosenSites(
  db: Database,
  names: readonly string[] | undefined,
): Promise<readonly ChosenSite[]> {
  const query = db
    .selectFrom('containers')
    .select(['site_id', 'id as container_id', sql<string>`manifest->>'image'`.as('image')])
    .orderBy('seq');
  if (names === undefined) {
    return await query.where('status', 'in', ['active', 'verified', 'verification_failed']).execute();
  }
  const rows = await query.where('site_id', 'in', names).execute();
  const bySite = new Map(rows.map((row) => [row.site_id, row]));
  const unknown = names.flatMap((name, index) =>
    bySite.has(name) ? [] : [{ path: `sites.${index}`, message: 'is not a site of this instance' }],
  );
  if (unknown.length > 0) {
    throw new ManagementProblem('unknown_container', {
      detail: 'some of the sites don’t exist',
      errors: unknown,
    });
  }
  return names.flatMap((name) => bySite.get(name) ?? []);
}
