import { sql } from 'kysely';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import type { Database } from '../db/database.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { LIVE } from '../lifecycle/status.ts';
import { rememberProofs } from './domain-proofs.repository.ts';

/** Names that no other site may hold: the domains of its pages and its custom domains. */
export function claimedNames(manifest: Pick<ManifestView, 'domains' | 'customDomains'>): string[] {
  return [...new Set([...manifest.domains.map(({ domain }) => domain), ...manifest.customDomains])];
}

/** Records what the manifest says of the site. `contested` names belong to another site and get no record. */
export async function recordSite(
  db: Database,
  manifest: ManifestView,
  at: { readonly revision: string | null; readonly blob: string | null },
  contested: readonly string[] = [],
): Promise<void> {
  const { site, container, host, hostnames } = manifest;
  const values = {
    host,
    edge_hostname: hostnames.edge,
    origin_hostname: hostnames.origin,
    preview_hostname: hostnames.preview,
    ...at,
  };
  await db
    .insertInto('sites')
    .values({ site_id: site, container_id: container, ...values })
    .onConflict((conflict) => conflict.column('site_id').doUpdateSet(values))
    .execute();
  await db.deleteFrom('site_domains').where('site_id', '=', site).execute();
  const pages = manifest.domains.map(({ domain, webTagId, token }, index) => ({
    domain,
    kind: 'page' as const,
    site_id: site,
    web_tag_id: webTagId,
    container_token: token,
    active: isActiveDomain(index, manifest.features.multi_domain),
  }));
  const customs = manifest.customDomains.map((domain) => ({
    domain,
    kind: 'custom' as const,
    site_id: site,
    web_tag_id: null,
    container_token: null,
    active: true,
  }));
  const rows = [...pages, ...customs].filter(({ domain }) => !contested.includes(domain));
  if (rows.length > 0) await db.insertInto('site_domains').values(rows).execute();
  await rememberProofs(
    db,
    manifest,
    rows.map(({ domain }) => domain),
  );
}

/** The ids of live sites with a site record. Git has, or had, their files. */
export async function recordedSites(db: Database): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('sites')
    .innerJoin('containers', 'containers.id', 'sites.container_id')
    .select('sites.site_id')
    .where('containers.status', 'in', LIVE)
    .execute();
  return new Set(rows.map(({ site_id }) => site_id));
}

/** Lets other sites use the hostnames of a site that is gone. */
export async function releaseHostnames(db: Database, container: string): Promise<void> {
  await db
    .updateTable('sites')
    .set({ edge_hostname: null, origin_hostname: null, preview_hostname: null })
    .where('container_id', '=', container)
    .execute();
}

/** Remembers which text of the file was read last, so that a refused one is reported only once. */
export async function rememberBlob(
  db: Database,
  site: string,
  at: { readonly revision: string; readonly blob: string | null },
): Promise<void> {
  await db.updateTable('sites').set(at).where('site_id', '=', site).execute();
}

/** Another text if another version of any file of sites, clients or organisations is projected, or of others. */
export async function projectedDigest(db: Database): Promise<string> {
  const { rows } = await sql<{ digest: string }>`
    select concat_ws(' ', count(*), sum(hashtextextended(concat_ws(' ', id, blob), 0))) as digest from (
      select site_id as id, blob from sites
      union all select id::text, blob from clients
      union all select id::text, blob from organisations
    ) as files`.execute(db);
  return rows[0]?.digest ?? '';
}
