import { readManifest } from '../../sites/manifest/read.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { DesiredStateSettings } from './reading.ts';

/**
 * By site, the manifest that was applied last on this host. Sites that were removed, and those whose revision git no
 * longer has, are left out. Starts few git processes for any number of sites. Throws `SitesRepoError`.
 */
export async function appliedManifests(
  sites: readonly string[],
  repo: Pick<SitesRepo, 'readEach'>,
  { appliedRevision }: Pick<DesiredStateSettings, 'appliedRevision'>,
): Promise<Map<string, Manifest>> {
  const revisions = new Map<string, string>();
  for (const site of sites) {
    const revision = appliedRevision?.(site) ?? null;
    if (revision !== null) revisions.set(site, revision);
  }
  const manifests = new Map<string, Manifest>();
  for (const { site, path, text } of await repo.readEach(revisions)) {
    const parsed = await readManifest(text, path);
    if (parsed.ok && parsed.manifest.state === 'present') manifests.set(site, parsed.manifest);
  }
  return manifests;
}
