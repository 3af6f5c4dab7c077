import { sql } from 'kysely';
import { isWithinDomain } from '../../gitops/manifest/schema.ts';
import type { Settings } from '../context/context.ts';
import type { Database, ManifestView } from '../db/database.ts';
import { type FieldError, ProblemError } from '../http/errors.ts';

/**
 * Throws where a name lies in one of the zones that sites get their own hostnames from: whoever asked for one would
 * have what the next site is to be called. `at` says where in the request the name at an index stands.
 */
export function refuseOwnZone(
  { edgeDomain, originDomain }: Pick<Settings, 'edgeDomain' | 'originDomain'>,
  names: readonly string[],
  at: (index: number) => string,
): void {
  const errors = names.flatMap((name, index): FieldError[] => {
    const zone = [edgeDomain, originDomain].find((own) => isWithinDomain(name, own));
    return zone === undefined
      ? []
      : [{ path: at(index), message: `is in ${zone}, where sites get their own hostnames` }];
  });
  const [first] = errors;
  if (first !== undefined) {
    throw new ProblemError('invalid_request', `${first.path} ${first.message}`, { errors });
  }
}

/** Which of `names` are hostnames of other sites: given by hand, they may be in any zone. */
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

/** Which of a manifest's own hostnames another site has, be it as a domain of its pages or a first-party host. */
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
