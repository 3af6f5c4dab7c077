import { limit } from '../../base/limit.ts';
import type { FileEvent } from './file-events.ts';
import type { GitDir } from './git-dir.ts';
import { inGroups } from './last-readable.ts';
import { branchPages, mergedPages, type Visitor, type WalkParts, walkVersions } from './version-walk.ts';

/** Whether a version of a site's file has the property whose age is searched; `null`: the version doesn't say. */
export type Holds = (site: string, text: string) => Promise<boolean | null>;

/**
 * Since when something holds. Only the order of ages that were found together has a meaning. The place on the branch is
 * compared first; a merged commit has the place of its merge. The depth in the merge decides only between commits of
 * the same merge.
 */
export type ClaimAge = readonly [onBranch: number, inMerge: number];

const GIT_AT_ONCE = 4;

/**
 * Since which commit `holds` has been true of these sites without a break; the removal of a file is a break. Starts few
 * git processes for any number of sites. Throws `SitesRepoError`.
 */
export async function findAges(
  sites: readonly string[],
  revision: string,
  holds: Holds,
  parts: WalkParts,
): Promise<Map<string, ClaimAge>> {
  const { git, files } = parts;
  const search = new Search(holds, { isNewEnd: true });
  const pages = branchPages(git, { revision });
  await inGroups(sites, (group) => walkVersions(group, pages, search, files));
  const firstOf = (site: string) => search.first.get(site) ?? revision;
  const byCommit = Map.groupBy(sites, firstOf);
  const places = await placesOnBranch(byCommit, revision, git);
  const tied = [...byCommit].filter(([, group]) => group.length > 1);
  const merges = await mergesOf(tied, git);
  const depths = await limit(GIT_AT_ONCE).map(
    tied.filter(([commit]) => merges.has(commit)),
    ([merge, group]) => depthsInMerge(merge, group, holds, parts),
  );
  const inMerge = new Map(depths.flatMap((one) => [...one]));
  return new Map(sites.map((site) => [site, [places.get(firstOf(site)) ?? 0, inMerge.get(site) ?? 0]]));
}

/** For each site, finds the oldest version since which `holds` has been true without a break. */
class Search implements Visitor {
  readonly first = new Map<string, string>();
  readonly #holds: Holds;
  readonly #isNewEnd: boolean;

  /** `isNewEnd`: a commit that adds the file ends the search. Within a merge it doesn't: another branch may have the file. */
  constructor(holds: Holds, { isNewEnd }: { isNewEnd: boolean }) {
    this.#holds = holds;
    this.#isNewEnd = isNewEnd;
  }

  async visit(site: string, { revision, gone, isNew }: FileEvent, text: string | null): Promise<boolean> {
    if (gone !== null) return gone.movedTo === null;
    const isHeld = text === null ? null : await this.#holds(site, text);
    if (isHeld === false) return true;
    if (isHeld) this.first.set(site, revision);
    return isNew && this.#isNewEnd;
  }
}

/** The place of each commit among the first parents of `revision`: an older one is less. */
async function placesOnBranch(
  commits: ReadonlyMap<string, unknown>,
  revision: string,
  git: GitDir,
): Promise<Map<string, number>> {
  if (commits.size < 2) return new Map();
  const newestFirst = lines(await git.run(['rev-list', '--first-parent', revision]));
  return new Map(newestFirst.flatMap((commit, index) => (commits.has(commit) ? [[commit, -index]] : [])));
}

/** Those of the commits that are merges. */
async function mergesOf(groups: readonly (readonly [string, unknown])[], git: GitDir): Promise<Set<string>> {
  if (groups.length === 0) return new Set();
  const input = `${groups.map(([commit]) => commit).join('\n')}\n`;
  const args = ['rev-list', '--no-walk=unsorted', '--min-parents=2', '--stdin'];
  return new Set(lines(await git.run(args, input)));
}

/** By site, the number of ancestors of the oldest commit that `Search` finds in this merge. Infinity: it finds none. */
async function depthsInMerge(
  merge: string,
  sites: readonly string[],
  holds: Holds,
  { git, files }: WalkParts,
): Promise<Map<string, number>> {
  const search = new Search(holds, { isNewEnd: false });
  await walkVersions(sites, mergedPages(git, merge), search, files);
  const commits = new Set(search.first.values());
  const depths = await depthsOf(commits, merge, git);
  return new Map(sites.map((site) => [site, depths.get(search.first.get(site) ?? merge) ?? Infinity]));
}

/** By commit that `merge` brought, the number of its ancestors; 0 if it is the only commit. A git process per chain. */
async function depthsOf(
  commits: ReadonlySet<string>,
  merge: string,
  git: GitDir,
): Promise<ReadonlyMap<string, number>> {
  if (commits.size < 2) return new Map([...commits].map((commit) => [commit, 0]));
  const listed = lines(await git.run(['rev-list', '--parents', `${merge}^@`, `^${merge}^1`]));
  const parents = new Map(
    listed.map((line) => {
      const [commit = '', ...others] = line.split(' ');
      return [commit, others];
    }),
  );
  // A commit with one parent has one ancestor more than that parent.
  const above = [...commits].map((commit) => {
    let steps = 0;
    let base = commit;
    for (let own = parents.get(base); own?.length === 1; own = parents.get(base)) {
      base = own[0] ?? base;
      steps += 1;
    }
    return { commit, base, steps };
  });
  const bases = [...new Set(above.map(({ base }) => base))];
  const counts = new Map(
    await limit(GIT_AT_ONCE).map(bases, async (base) => {
      const count = Number((await git.run(['rev-list', '--count', base])).toString());
      return [base, count] as const;
    }),
  );
  return new Map(above.map(({ commit, base, steps }) => [commit, (counts.get(base) ?? 0) + steps]));
}

function lines(output: Buffer): string[] {
  return output.toString().split('\n').filter(Boolean);
}
