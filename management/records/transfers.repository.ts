import { registrableDomain } from '../../sites/manifest/schema.ts';
import type { Database } from '../db/database.ts';

/** Which of these containers belong to the client. */
export async function ownedContainers(
  db: Database,
  client: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('containers')
    .select('id')
    .where('client_id', '=', client)
    .where('id', 'in', ids)
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/** By container, the registrable domains that it has in common with the client's containers outside `ids`. */
export async function sharedDomains(
  db: Database,
  client: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const claims = await db
    .selectFrom('domain_claims')
    .innerJoin('containers', 'containers.id', 'domain_claims.container_id')
    .select(['domain_claims.domain', 'domain_claims.container_id as container'])
    .where('containers.client_id', '=', client)
    .execute();
  const all = claims.map(({ domain, container }) => ({
    container,
    registrable: registrableDomain(domain) ?? domain,
  }));
  const kept = new Set(
    all.filter(({ container }) => !ids.includes(container)).map(({ registrable }) => registrable),
  );
  const shared = all.filter(({ container, registrable }) => ids.includes(container) && kept.has(registrable));
  return new Map(
    [...Map.groupBy(shared, ({ container }) => container)].map(([container, these]) => [
      container,
      [...new Set(these.map(({ registrable }) => registrable))],
    ]),
  );
}
