import { sql } from 'kysely';
import { isWithinDomain, registrableDomain } from '../../gitops/manifest/schema.ts';
import type { Database } from '../db/database.ts';

/**
 * Which of `names` the container can't have, because their registrable domain belongs to another client. A registrable
 * domain belongs to the client with the oldest container that has a name in it. A container keeps the names that it
 * already has.
 *
 * Call this in the transaction that claims the names. It locks the registrable domains until the transaction ends, in
 * sorted order, so that concurrent claims can't deadlock.
 */
export async function domainsOfOtherClients(
  db: Database,
  container: string,
  names: readonly string[],
): Promise<string[]> {
  const registrable = [...new Set(names.map((name) => registrableDomain(name) ?? name))].sort();
  if (registrable.length === 0) return [];
  for (const domain of registrable) {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`tagyard domain ${domain}`}, 0))`.execute(db);
  }
  const { rows } = await sql<{ domain: string }>`
    select wanted.domain
    from unnest(${registrable}::text[]) as wanted (domain)
    cross join lateral (
      select owner.client_id
      from domain_claims as claim
      join containers as owner on owner.id = claim.container_id
      where reverse(claim.domain) collate "C" = reverse(wanted.domain)
        or (reverse(claim.domain) collate "C" > reverse(wanted.domain) || '.'
          and reverse(claim.domain) collate "C" < reverse(wanted.domain) || '/')
      order by owner.seq
      limit 1
    ) as oldest
    where oldest.client_id <> (select client_id from containers where id = ${container})
  `.execute(db);
  const foreign = names.filter((name) => rows.some(({ domain }) => isWithinDomain(name, domain)));
  if (foreign.length === 0) return [];
  const held = await db
    .selectFrom('domain_claims')
    .select('domain')
    .where('domain', 'in', foreign)
    .where('container_id', '=', container)
    .execute();
  return foreign.filter((name) => !held.some(({ domain }) => domain === name));
}
