import { limit } from '../../base/limit.ts';
import { readManifest } from '../manifest/read.ts';
import type { Manifest } from '../manifest/schema.ts';
import type { FileEvent } from './file-events.ts';
import { type BranchRange, branchPages, type Visitor, type WalkParts, walkVersions } from './version-walk.ts';

/** The commits that are searched. Only first parents count: what the branch itself had. */
export interface SearchRange extends Pick<BranchRange, 'revision' | 'since'> {
  /** By site, a blob that is known to be no valid manifest of it. It isn't read again. */
  readonly invalid?: ReadonlyMap<string, string>;
}

/** What the history of the branch says of a site's file. */
export interface LastReadable {
  /** The newest valid manifest; `null`: there is none. A removal ends the search unless it is the newest event. */
  readonly manifest: Manifest | null;
  /** The blob of that version; `null`: there is none. */
  readonly blob: string | null;
  /** The newest event if it removed the file, else `null`. */
  readonly gone: FileEvent | null;
}

/**
 * For up to this many sites, git uses its commit-graph to read the history of each path. For more, it reads the whole
 * history once.
 */
const MAX_SINGLE = 8;
/**
 * The maximum number of commits that one search reads. A site that needs more has no last readable version, so nothing
 * of it is changed.
 */
const MAX_COMMITS = 50_000;

/** Walks through the history once for each site, or once for all sites together if there are many. */
export async function inGroups<T>(
  sites: readonly string[],
  walk: (group: readonly string[]) => Promise<T>,
): Promise<T[]> {
  if (sites.length > MAX_SINGLE) return [await walk(sites)];
  return await limit(MAX_SINGLE).map(sites, (site) => walk([site]));
}

/**
 * Finds the last readable versions of these sites' files. Starts few git processes for any number of sites. Throws
 * `SitesRepoError`.
 */
export async function findLastReadable(
  sites: readonly string[],
  { invalid, ...range }: SearchRange,
  { git, files }: WalkParts,
): Promise<Map<string, LastReadable>> {
  const search = new Search(invalid);
  const pages = branchPages(git, { ...range, maxCommits: MAX_COMMITS });
  await inGroups(sites, (group) => walkVersions(group, pages, search, files));
  return new Map(sites.map((site) => [site, search.found(site)]));
}

class Search implements Visitor {
  readonly #invalid: SearchRange['invalid'];
  readonly #gone = new Map<string, FileEvent | null>();
  readonly #versions = new Map<string, { readonly manifest: Manifest; readonly blob: string | null }>();

  constructor(invalid: SearchRange['invalid']) {
    this.#invalid = invalid;
  }

  wants(site: string, blob: string): boolean {
    return this.#invalid?.get(site) !== blob;
  }

  async visit(site: string, event: FileEvent, text: string | null): Promise<boolean> {
    const { gone, isNew } = event;
    if (!this.#gone.has(site)) this.#gone.set(site, gone === null ? null : event);
    else if (gone !== null && gone.movedTo === null && gone.hiddenBy === null) return true;
    const parsed = text === null ? null : await readManifest(text, `${site}.yaml`);
    if (!parsed?.ok) return isNew;
    this.#versions.set(site, { manifest: parsed.manifest, blob: event.blob });
    return true;
  }

  found(site: string): LastReadable {
    const { manifest = null, blob = null } = this.#versions.get(site) ?? {};
    return { manifest, blob, gone: this.#gone.get(site) ?? null };
  }
}
