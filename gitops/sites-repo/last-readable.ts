import { limit } from '../base/limit.ts';
import { readManifest } from '../manifest/read.ts';
import type { Manifest } from '../manifest/schema.ts';
import { EVENT_FORMAT, type FileEvent, type LogPage, parseEvents } from './file-events.ts';
import type { GitDir } from './git-dir.ts';
import type { SiteFiles } from './site-files.ts';

/** The commits that are searched. Only first parents count: what the branch itself had. */
export interface SearchRange {
  readonly revision: string;
  /** Excludes this revision and its ancestors; ignored where the repository no longer has it. */
  readonly since?: string | undefined;
  /** By site, a blob that is known to be no valid manifest of it. It isn't read again. */
  readonly invalid?: ReadonlyMap<string, string>;
}

/** What the history of the branch says of a site's file. */
export interface LastReadable {
  /** The newest version that is a valid manifest; `null`: none. An older removal ends the search. */
  readonly manifest: Manifest | null;
  /** The newest event if the file disappeared by it, else `null`. */
  readonly gone: FileEvent | null;
}

/**
 * For up to this many sites, git uses its index to read the history of each path. For more, it reads the whole history
 * once.
 */
const MAX_SINGLE = 8;
/** Commits of the first page, and how much longer each next one is. Most searches end in the first one. */
const FIRST_PAGE = 64;
const PAGE_FACTOR = 4;
const MAX_PAGE = 4_096;
/**
 * Most commits that one search reads. A site that needs more has no last readable version, so nothing of it is changed.
 */
const MAX_COMMITS = 50_000;

/**
 * Finds the last readable versions of these sites' files. Starts few git processes for any number of sites. Throws
 * `SitesRepoError`.
 */
export async function findLastReadable(
  sites: readonly string[],
  range: SearchRange,
  { git, files }: { readonly git: GitDir; readonly files: SiteFiles },
): Promise<Map<string, LastReadable>> {
  const groups = sites.length > MAX_SINGLE ? [sites] : sites.map((site) => [site]);
  const found = await limit(MAX_SINGLE).map(groups, (group) =>
    new Search(group, range, { git, files }).run(),
  );
  return new Map(found.flatMap((one) => [...one]));
}

interface OpenSearch {
  gone: FileEvent | null;
  isFirst: boolean;
  /** Blobs to try, newest first. */
  queue: string[];
  /** No older version counts. */
  isOver: boolean;
}

class Search {
  readonly #git: GitDir;
  readonly #files: SiteFiles;
  readonly #range: SearchRange;
  readonly #open: Map<string, OpenSearch>;
  readonly #found = new Map<string, LastReadable>();

  constructor(sites: readonly string[], range: SearchRange, parts: { git: GitDir; files: SiteFiles }) {
    this.#git = parts.git;
    this.#files = parts.files;
    this.#range = range;
    this.#open = new Map(
      sites.map((site) => [site, { gone: null, isFirst: true, queue: [], isOver: false }]),
    );
  }

  async run(): Promise<Map<string, LastReadable>> {
    let next: string | null = this.#range.revision;
    let size = FIRST_PAGE;
    for (let commits = 0; next !== null && this.#open.size > 0 && commits < MAX_COMMITS; ) {
      const page: LogPage = await this.#page(next, size);
      for (const [site, events] of page.events) this.#enqueue(site, events);
      await this.#try();
      commits += page.commits;
      next = page.commits < size ? null : page.next;
      size = Math.min(size * PAGE_FACTOR, MAX_PAGE);
    }
    for (const [site, { gone }] of this.#open) this.#found.set(site, { manifest: null, gone });
    return this.#found;
  }

  async #page(from: string, size: number): Promise<LogPage> {
    const { since } = this.#range;
    const sites = [...this.#open.keys()];
    // The other files of a commit show where a file went.
    const isSingle = sites.length === 1;
    const output = await this.#git.run([
      ...['log', ...EVENT_FORMAT, '--first-parent', `-${size}`, ...(isSingle ? ['--full-diff'] : [])],
      ...[from, ...(since === undefined ? [] : [`^${since}`]), '--'],
      ...(isSingle ? [`${sites[0]}.yaml`] : []),
    ]);
    return parseEvents(output, new Set(sites));
  }

  #enqueue(site: string, events: readonly FileEvent[]): void {
    const search = this.#open.get(site);
    if (search === undefined) return;
    for (const event of events) {
      if (search.isOver) return;
      const { blob, isNew, gone } = event;
      const isRemoval = gone !== null && gone.movedTo === null && gone.hiddenBy === null;
      if (search.isFirst) search.gone = gone === null ? null : event;
      else if (isRemoval) search.isOver = true;
      const isCandidate = blob !== null && this.#range.invalid?.get(site) !== blob;
      if (isCandidate && !search.isOver) search.queue.push(blob);
      search.isOver ||= isNew;
      search.isFirst = false;
    }
  }

  /** Reads the queued blobs in rounds, because the newest ones are often enough. */
  async #try(): Promise<void> {
    for (let count = 1; ; count *= PAGE_FACTOR) {
      const batch = [...this.#open].flatMap(([site, { queue }]) =>
        queue.splice(0, count).map((blob) => ({ site, blob })),
      );
      if (batch.length === 0) break;
      for await (const texts of this.#files.texts(batch)) {
        for (const { site, text, path } of texts) await this.#tryText(site, text, path);
      }
    }
    for (const [site, { gone, isOver }] of this.#open) {
      if (isOver) this.#settle(site, { manifest: null, gone });
    }
  }

  async #tryText(site: string, text: string, path: string): Promise<void> {
    const search = this.#open.get(site);
    if (search === undefined) return;
    const parsed = await readManifest(text, path);
    if (parsed.ok) this.#settle(site, { manifest: parsed.manifest, gone: search.gone });
  }

  #settle(site: string, result: LastReadable): void {
    this.#found.set(site, result);
    this.#open.delete(site);
  }
}
