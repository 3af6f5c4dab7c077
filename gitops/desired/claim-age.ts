import type { LoadedManifest } from '../manifest/containers.ts';
import { readManifest } from '../manifest/read.ts';
import type { Manifest } from '../manifest/schema.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';
import type { Claimant } from './claims.ts';

/** The names that a site claims now, and a function for the names that a version of its manifest claims. */
interface ClaimedNames {
  readonly names: ReadonlySet<string>;
  claimed(manifest: Manifest): Iterable<string>;
}

/** A site that claims these names, with the age of its claim. Reads the history of its file. */
export async function claimantOf(
  manifest: LoadedManifest,
  { names, claimed }: ClaimedNames,
  revision: string,
  repo: Pick<SitesRepo, 'versions' | 'depth'>,
): Promise<Claimant> {
  const since = (branchOnly: boolean) =>
    firstClaim({ site: manifest.site, names, claimed, revision, branchOnly }, repo);
  return { manifest, since: await Promise.all([since(true), since(false)]) };
}

/** The depth of the commit since which the site has claimed all of `names` without a break. */
async function firstClaim(
  claim: ClaimedNames & { site: string; revision: string; branchOnly: boolean },
  repo: Pick<SitesRepo, 'versions' | 'depth'>,
): Promise<number> {
  const { site, names, revision, branchOnly } = claim;
  let first = revision;
  for (const [older, text] of await repo.versions(site, { revision, branchOnly })) {
    if (text === null) break;
    const parsed = await readManifest(text, `${site}.yaml`);
    // An invalid version neither makes a claim nor ends one.
    if (!parsed.ok) continue;
    if (parsed.manifest.state === 'absent') break;
    const claimed = new Set(claim.claimed(parsed.manifest));
    if ([...names].some((name) => !claimed.has(name))) break;
    first = older;
  }
  return await repo.depth(first);
}
