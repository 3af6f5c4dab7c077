import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { ManifestView } from '../db/manifest-view.ts';

/** Which of `names` are hostnames of other sites. Those can be in any zone: an operator may have chosen them. */
export async function hostnamesOfOthers(
  db: Database,
  container: string,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0) return [];
  const wanted = sql.join(names);
  const { rows } = await sql<{ hostnames: string[] }>`
    select array[edge_hostname, origin_hostname, preview_hostname] as hostnames
    from sites
    where container_id <> ${container}
      and (edge_hostname in (${wanted}) or origin_hostname in (${wanted}) or preview_hostname in (${wanted}))
  `.execute(db);
  return names.filter((name) => rows.some(({ hostnames }) => hostnames.includes(name)));
}

/** Which of a manifest's own hostnames another site holds, as a hostname, a page's domain or a custom domain. */
export async function hostnamesHeldByOthers(
  db: Database,
  container: string,
  { hostnames }: Pick<ManifestView, 'hostnames'>,
): Promise<string[]> {
  const names = Object.values(hostnames);
  const own = await hostnamesOfOthers(db, container, names);
  const claimed = await db
    .selectFrom('domain_claims')
    .select('domain')
    .where('domain', 'in', names)
    .where('container_id', '!=', container)
    .execute();
  return [...new Set([...own, ...claimed.map(({ domain }) => domain)])].sort();
}
