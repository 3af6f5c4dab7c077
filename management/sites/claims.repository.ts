import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

/**
 * Claims domains for a container and answers those that another one holds. Sorted, so that two that claim the same
 * names at once wait for each other in one order instead of for ever.
 */
export async function claimDomains(
  db: Database,
  container: string,
  domains: readonly string[],
): Promise<string[]> {
  const names = [...new Set(domains)].sort();
  if (names.length === 0) return [];
  await db
    .insertInto('domain_claims')
    .values(names.map((domain) => ({ domain, container_id: container })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const held = await db
    .selectFrom('domain_claims')
    .select('domain')
    .where('domain', 'in', names)
    .where('container_id', '!=', container)
    .execute();
  return held.map(({ domain }) => domain).sort();
}

/** Gives up some of a container's domains, or all of them; their site-domain records go with them. */
export async function releaseDomains(
  db: Database,
  container: string,
  domains?: readonly string[],
): Promise<void> {
  if (domains?.length === 0) return;
  let query = db.deleteFrom('domain_claims').where('container_id', '=', container);
  if (domains !== undefined) query = query.where('domain', 'in', domains);
  await query.execute();
}

/** Claims that no manifest carries: of a change whose process was killed before it came to its commit. */
export async function releaseStrayClaims(db: Database): Promise<void> {
  await sql`
    delete from domain_claims as claim
    using containers as container
    where container.id = claim.container_id
      and not container.manifest->'customDomains' @> to_jsonb(claim.domain)
      and not container.manifest->'domains' @> jsonb_build_array(jsonb_build_object('domain', claim.domain))
  `.execute(db);
}
