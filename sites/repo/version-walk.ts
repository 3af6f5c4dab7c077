import { EVENT_FORMAT, type FileEvent, type LogPage, parseEvents } from './file-events.ts';
import type { GitDir } from './git-dir.ts';
import type { SiteFiles } from './site-files.ts';

/** The readers that a walk through the history of site files uses. */
export interface WalkParts {
  readonly git: GitDir;
  readonly files: SiteFiles;
}

/** Gets the events of each site's file, newest first. */
export interface Visitor {
  /** False: the blob isn't read. */
  wants?(site: string, blob: string): boolean;
  /**
   * `text`: the text of the event's blob; `null`: there is none, or it isn't wanted. Resolves to true if the site's
   * older events don't matter.
   */
  visit(site: string, event: FileEvent, text: string | null): Promise<boolean>;
}

/** Yields the events of the sites that are still open, newest first. */
type Pages = (open: ReadonlyMap<string, unknown>) => AsyncGenerator<LogPage>;

/** Commits of the first page, and the factor by which pages grow. Most searches end in the first page. */
const FIRST_PAGE = 64;
const FACTOR = 4;
const MAX_PAGE = 4_096;

/**
 * Visits the events of these sites' files until the visitor has what it needs. The number of git processes doesn't
 * depend on the number of sites.
 */
export async function walkVersions(
  sites: readonly string[],
  pages: Pages,
  visitor: Visitor,
  files: SiteFiles,
): Promise<void> {
  const open = new Map<string, FileEvent[]>(sites.map((site) => [site, []]));
  for await (const { events } of pages(open)) {
    for (const [site, list] of events) open.get(site)?.push(...list);
    await visitQueued(open, visitor, files);
    if (open.size === 0) return;
  }
}

/** Reads the queued blobs in rounds, because the newest ones usually suffice. */
async function visitQueued(
  open: Map<string, FileEvent[]>,
  visitor: Visitor,
  files: SiteFiles,
): Promise<void> {
  const wantedBlob = (site: string, { blob }: FileEvent) =>
    blob !== null && (visitor.wants?.(site, blob) ?? true) ? blob : null;
  for (let count = 1; ; count *= FACTOR) {
    const steps = [...open].flatMap(([site, queue]) => {
      let taken = 0;
      const isWithin = (event: FileEvent) => wantedBlob(site, event) === null || ++taken <= count;
      const end = queue.findIndex((event) => !isWithin(event));
      return queue
        .splice(0, end === -1 ? queue.length : end)
        .map((event) => ({ site, event, blob: wantedBlob(site, event) }));
    });
    if (steps.length === 0) return;
    const texts = textsOf(
      steps.flatMap(({ site, blob }) => (blob === null ? [] : [{ site, blob }])),
      files,
    );
    for (const { site, event, blob } of steps) {
      const text = blob === null ? null : ((await texts.next()).value ?? null);
      if (open.has(site) && (await visitor.visit(site, event, text))) open.delete(site);
    }
  }
}

async function* textsOf(
  blobs: readonly { readonly site: string; readonly blob: string }[],
  files: SiteFiles,
): AsyncGenerator<string, undefined> {
  for await (const batch of files.texts(blobs)) for (const { text } of batch) yield text;
}

/** The commits of the branch itself: only first parents. */
export interface BranchRange {
  readonly revision: string;
  /** Excludes this revision and its ancestors; ignored where the repository no longer has it. */
  readonly since?: string | undefined;
  readonly maxCommits?: number;
}

/** The history of a branch, page by page. */
export function branchPages(git: GitDir, { revision, since, maxCommits = Infinity }: BranchRange): Pages {
  return async function* (open) {
    let next: string | null = revision;
    let size = FIRST_PAGE;
    for (let commits = 0; next !== null && commits < maxCommits; ) {
      // For a single path, git lists only that file of each commit. `--full-diff` adds the commit's other files, which
      // show where the file was moved.
      const [only, ...others] = open.keys();
      const isSingle = only !== undefined && others.length === 0;
      const output: Buffer = await git.run([
        ...['log', ...EVENT_FORMAT, '--first-parent', `-${size}`, ...(isSingle ? ['--full-diff'] : [])],
        ...[next, ...(since === undefined ? [] : [`^${since}`]), '--'],
        ...(isSingle ? [`${only}.yaml`] : []),
      ]);
      const page = parseEvents(output, new Set(open.keys()));
      yield page;
      commits += page.commits;
      next = page.commits < size ? null : page.next;
      size = Math.min(size * FACTOR, MAX_PAGE);
    }
  };
}

/** What a merge brought: the commits of its other parents that its first parent doesn't have. */
export function mergedPages(git: GitDir, merge: string): Pages {
  return async function* (open) {
    const output = await git.run(['log', ...EVENT_FORMAT, '--topo-order', `${merge}^@`, `^${merge}^1`]);
    yield parseEvents(output, new Set(open.keys()));
  };
}
