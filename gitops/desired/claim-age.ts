import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { Claimant } from './claims.ts';

interface ClaimedNames {
  /** By site, the names that it claims now. */
  readonly names: ReadonlyMap<string, ReadonlySet<string>>;
  /** The names that a version of a manifest claims. */
  claimed(manifest: Manifest): Iterable<string>;
}

/** The sites that claim any of `names`, each with the age of its claim. Reads their files' history together. */
export async function claimantsOf(
  live: readonly LoadedManifest[],
  { names, claimed }: ClaimedNames,
  revision: string,
  repo: Pick<SitesRepo, 'ages'>,
): Promise<Claimant[]> {
  const manifests = live.filter(({ site }) => names.has(site));
  const ages = await repo.ages(
    manifests.map(({ site }) => site),
    revision,
    async (site, text) => {
      const parsed = await readManifest(text, `${site}.yaml`);
      // An invalid version neither makes a claim nor ends one.
      if (!parsed.ok) return null;
      if (parsed.manifest.state === 'absent') return false;
      const claims = new Set(claimed(parsed.manifest));
      return [...(names.get(site) ?? [])].every((name) => claims.has(name));
    },
  );
  return manifests.map((manifest) => ({ manifest, since: ages.get(manifest.site) ?? [0, 0] }));
}
