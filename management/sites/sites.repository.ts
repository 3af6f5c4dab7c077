import { isActiveDomain } from '../../plugins/document.ts';
import type { Database, ManifestView } from '../db/database.ts';

/** Names that a site must hold for itself: its pages' domains and its first-party hosts. */
export function claimedNames(manifest: Pick<ManifestView, 'domains' | 'customDomains'>): string[] {
  return [...new Set([...manifest.domains.map(({ domain }) => domain), ...manifest.customDomains])];
}

/** What the manifest says of the site, as records; `contested` names are another site's and get none. */
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
}

/** Of a site that is gone. */
export async function releaseHostnames(db: Database, container: string): Promise<void> {
  await db
    .updateTable('sites')
    .set({ edge_hostname: null, origin_hostname: null, preview_hostname: null })
    .where('container_id', '=', container)
    .execute();
}

/** Remembers which text was looked at, also where it couldn't be followed, so that it isn't reported again and again. */
export async function rememberBlob(
  db: Database,
  site: string,
  at: { readonly revision: string; readonly blob: string | null },
): Promise<void> {
  await db.updateTable('sites').set(at).where('site_id', '=', site).execute();
}
