import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { coalesce } from '../base/coalesce.ts';
import { GitError, git } from '../clients/git.ts';
import { type Committed, foldEdits, type SiteEdit } from './commits.ts';
import { SitesRepoError, wrapGitError } from './errors.ts';
import { fastImportStream, type Person } from './fast-import.ts';
import { readFiles, type SiteFile, UnreadableBlobError } from './files.ts';
import { BRANCH_FORMAT, branchTips, type SiteBlob, siteBlobs } from './listing.ts';
import {
  type HistoryEntry,
  LOG_FORMAT,
  parseLog,
  parseVersions,
  type VersionRange,
  versionsLog,
} from './log.ts';
import { FETCH, initSitesRepo, openMirror, renewMirror } from './mirror.ts';
import { watchRepo } from './watch.ts';

type Lookup = Pick<SiteFile, 'site'> & { readonly revision: string };

export interface SitesRepoOptions {
  /** A path of a bare repository, or any URL that git fetches from and pushes to. */
  readonly url: string;
  /** Where the mirror of a remote repository is kept; unused for a local one. */
  readonly cacheDir: string;
  readonly branch?: string;
  /** Seconds between two looks at a remote, before jitter. */
  readonly pollSeconds?: number;
  /** Somebody remembers commits of the branch: where it is gone, it is not to be begun anew. */
  readonly initialized?: boolean;
}

/** Commits that a remote may yet refuse: nobody must take them for the branch's. */
const UNPUSHED = 'refs/tagyard/unpushed';
const MAX_LOST_RACES = 20;
/** Edits in one push, paths in one command line, and texts in one reading. */
const MAX_BATCH = 500;

/** The sites repository without index or work tree, so that no reader or writer ever waits for `index.lock`. */
export class SitesRepo {
  readonly #dir: string;
  readonly #remote: string | null;
  readonly #branch: string;
  readonly #pollSeconds: number;
  #begun: boolean;
  // Who asks at the same time shares a git process: a hundred requests at once cost as many starts as one.
  readonly #heads = coalesce(
    async (asked: readonly undefined[]) => {
      if (this.#remote !== null) await this.#git(FETCH);
      const value = await this.#tip();
      return asked.map(() => ({ status: 'fulfilled', value }) as const);
    },
    { windowMs: 0 },
  );
  readonly #lookups = coalesce((wanted: readonly Lookup[]) => this.#lookUp(wanted), {
    windowMs: 0,
    max: MAX_BATCH,
  });
  readonly #commits = coalesce((edits: readonly SiteEdit[]) => this.#commitAll(edits), {
    windowMs: 0,
    max: MAX_BATCH,
  });

  constructor(dir: string, remote: string | null, options: Omit<SitesRepoOptions, 'url' | 'cacheDir'> = {}) {
    this.#dir = dir;
    this.#remote = remote;
    this.#branch = options.branch ?? 'main';
    this.#pollSeconds = options.pollSeconds ?? 30;
    this.#begun = options.initialized ?? false;
  }

  /** The newest revision, fetched first where the repository is a remote one; `null`: the branch doesn't exist. */
  async head(): Promise<string | null> {
    return await this.#heads(undefined);
  }

  /** All site files (`*.yaml` at the root) of a revision, by site and blob. */
  async list(revision: string): Promise<SiteBlob[]> {
    return await this.#retryAfterRefetch(async () => siteBlobs(await this.#git(['ls-tree', '-z', revision])));
  }

  /** What stands in these files, some hundred at a time: ten thousand of them are more than anybody needs at once. */
  async *texts(blobs: readonly SiteBlob[]): AsyncGenerator<SiteFile[]> {
    for (let start = 0; start < blobs.length; start += MAX_BATCH) {
      const some = blobs.slice(start, start + MAX_BATCH);
      yield await this.#retryAfterRefetch(() => this.#files(some));
    }
  }

  /** All site files of a revision with their texts. */
  async read(revision: string): Promise<SiteFile[]> {
    const files: SiteFile[] = [];
    for await (const some of this.texts(await this.list(revision))) files.push(...some);
    return files;
  }

  async readSite(revision: string, site: string): Promise<SiteFile | null> {
    return await this.#lookups({ revision, site });
  }

  /**
   * Commits one file by compare-and-swap on the branch, again and again until no other writer came first. Edits that
   * wait in one process share a push, each with a commit of its own; between processes git refuses the later push,
   * whose edits then change the newer text.
   */
  async commit(edit: SiteEdit): Promise<{ revision: string; changed: boolean }> {
    return await this.#commits(edit);
  }

  /** The commits that touched a site's file, newest first, from `revision` (default: the tip) back. */
  async history(site: string, limit = 20, revision?: string): Promise<HistoryEntry[]> {
    const tip = revision ?? (await this.#tip());
    if (tip === null) return [];
    return parseLog(
      (await this.#git(['log', `-${limit}`, LOG_FORMAT, tip, '--', `${site}.yaml`])).toString(),
    );
  }

  /** What each commit made of a site's file, newest first; `null`: it took it out. */
  async versions(site: string, range: VersionRange): Promise<Map<string, string | null>> {
    return await this.#retryAfterRefetch(async () => {
      const found = parseVersions((await this.#git(versionsLog(site, range))).toString());
      const files = await this.#files(found.flatMap(({ blob }) => (blob ? [{ site, blob }] : [])));
      const texts = new Map(files.map(({ blob, text }) => [blob, text]));
      return new Map(found.map(({ revision, blob }) => [revision, texts.get(blob ?? '') ?? null]));
    });
  }

  /** Writes down which paths each commit touched: `history` then takes a twentieth of the time among 10,000 sites. */
  async indexHistory(): Promise<void> {
    await this.#git(['commit-graph', 'write', '--reachable', '--changed-paths', '--split', '--no-progress']);
  }

  /** How many commits a revision stands on: an order in time that, unlike clocks, never has two in one second. */
  async depth(revision: string): Promise<number> {
    return Number((await this.#git(['rev-list', '--count', revision])).toString());
  }

  /** Of full ids. An ancestor is its own merge base; `--is-ancestor` prints nothing, for which simple-git waits 50 ms. */
  async isAncestor(older: string, newer: string): Promise<boolean> {
    try {
      return (await this.#git(['merge-base', older, newer])).toString().trim() === older;
    } catch (error) {
      const cause = error instanceof SitesRepoError ? error.cause : error;
      // 1: nothing in common. 128: the older commit is not even known here any more.
      if (cause instanceof GitError && (cause.exitCode === 1 || cause.exitCode === 128)) return false;
      throw error;
    }
  }

  /** Full id of anything that git understands as a commit; `null` where it names none. */
  async resolve(ref: string): Promise<string | null> {
    // A branch may have moved since the last look, or what is named may have been pushed just now.
    await this.head();
    try {
      const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`];
      return (await this.#git(args)).toString().trim();
    } catch {
      return null;
    }
  }

  /** A revision each time the branch moves, the current one first; ends with the signal. */
  async *changes(signal: AbortSignal, onError: (error: unknown) => void): AsyncGenerator<string> {
    let last: string | null = null;
    const options = { remote: this.#remote !== null, pollSeconds: this.#pollSeconds, onError };
    for await (const _ of watchRepo(this.#dir, options, signal)) {
      const head = await this.head().catch(() => null);
      if (head !== null && head !== last) yield head;
      if (head !== null) last = head;
    }
  }

  async #commitAll(edits: readonly SiteEdit[]): Promise<readonly PromiseSettledResult<Committed>[]> {
    for (let lost = 0; lost < MAX_LOST_RACES; lost += 1) {
      const parent = await this.head();
      if (parent === null) await this.#mayBegin();
      const { commits, outcomes } = foldEdits(edits, parent, await this.#textsOf(parent, edits));
      if (commits.length === 0) return outcomes([]);
      const branch = `refs/heads/${this.#branch}`;
      const [ref, force] = this.#remote === null ? [branch, []] : [UNPUSHED, ['--force']];
      const stream = fastImportStream(ref, parent, commits, Math.floor(Date.now() / 1000));
      let revisions: readonly string[] = [];
      try {
        const output = await this.#git(['fast-import', '--quiet', '--done', ...force], stream);
        revisions = output.toString().trim().split('\n');
        if (this.#remote !== null) {
          await this.#git(['push', '--quiet', 'origin', `${revisions.at(-1)}:${branch}`]);
          await this.#git(['update-ref', branch, `${revisions.at(-1)}`]);
        }
        this.#begun = true;
        return outcomes(revisions);
      } catch (error) {
        // Refused because somebody else came first, or done and the answer lost? The branch itself says so.
        const head = await this.head();
        if (head === parent) throw error;
        const last = revisions.at(-1);
        if (head !== null && last !== undefined && (await this.isAncestor(last, head)))
          return outcomes(revisions);
      }
    }
    const sites = edits.map(({ site }) => site).join(', ');
    throw new SitesRepoError(
      `the sites repository moved ${MAX_LOST_RACES} times while ${sites} was being committed`,
    );
  }

  async #textsOf(parent: string | null, edits: readonly SiteEdit[]): Promise<Map<string, string>> {
    if (parent === null) return new Map();
    const sites = [...new Set(edits.map(({ site }) => site))];
    const files = await Promise.all(sites.map((site) => this.readSite(parent, site)));
    return new Map(files.flatMap((file) => (file === null ? [] : [[file.site, file.text]])));
  }

  async #lookUp(wanted: readonly Lookup[]): Promise<readonly PromiseSettledResult<SiteFile | null>[]> {
    const readings = new Map<string, Promise<Map<string, SiteFile>>>();
    for (const [revision, group] of Map.groupBy(wanted, (one) => one.revision)) {
      readings.set(revision, this.#readSome(revision, new Set(group.map(({ site }) => site))));
    }
    return await Promise.allSettled(
      wanted.map(async ({ revision, site }) => (await readings.get(revision))?.get(site) ?? null),
    );
  }

  async #readSome(revision: string, sites: ReadonlySet<string>): Promise<Map<string, SiteFile>> {
    const paths = [...sites].map((site) => `${site}.yaml`);
    const files = await this.#retryAfterRefetch(async () => {
      return await this.#files(siteBlobs(await this.#git(['ls-tree', '-z', revision, '--', ...paths])));
    });
    return new Map(files.map((file) => [file.site, file]));
  }

  /** A mirror is a cache: objects that it lost (a power cut, a bad disk) are fetched again, once. */
  async #retryAfterRefetch<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (this.#remote === null) throw error;
      await wrapGitError('fetch', () => renewMirror(this.#dir));
      return await work();
    }
  }

  async #files(blobs: readonly SiteBlob[]): Promise<SiteFile[]> {
    const git = (args: readonly string[], input: string) => this.#git(args, input);
    return await readFiles(git, blobs).catch((cause: unknown) => {
      throw cause instanceof UnreadableBlobError ? new SitesRepoError(cause.message, { cause }) : cause;
    });
  }

  /** `null` only where git itself says that there is no such branch: a broken repository is not an empty one. */
  async #tip(): Promise<string | null> {
    const tip = (await this.#branches()).get(this.#branch) ?? null;
    if (tip !== null) this.#begun = true;
    return tip;
  }

  async #branches(): Promise<ReadonlyMap<string, string>> {
    const list = async () => branchTips(await this.#git(['for-each-ref', BRANCH_FORMAT, 'refs/heads']));
    const branches = await list();
    const loose = join(this.#dir, 'refs', 'heads', this.#branch);
    if (branches.has(this.#branch) || !existsSync(loose)) return branches;
    // Made since then, or one that git can't read (an empty file, after a power cut) and passes over as if it weren't.
    const again = await list();
    if (again.has(this.#branch) || !existsSync(loose)) return again;
    throw new SitesRepoError(`the branch ${this.#branch} of the sites repository can't be read`);
  }

  /** A first commit is made of an empty repository only: where a branch went away, it would stand for all sites. */
  async #mayBegin(): Promise<void> {
    const branches = await this.#branches();
    if (branches.has(this.#branch) || (!this.#begun && branches.size === 0)) return;
    throw new SitesRepoError(`the sites repository has no branch ${this.#branch} any more, or never had`);
  }

  async #git(args: readonly string[], input?: string | Buffer): Promise<Buffer> {
    // A file's name is a name, whatever git's patterns would make of it.
    const all = ['--literal-pathspecs', ...args];
    return await wrapGitError(args[0], () => git(this.#dir, all, input === undefined ? {} : { input }));
  }
}

/** Opens a local bare repository in place, or mirrors a remote one under `cacheDir`. */
export async function openSitesRepo(options: SitesRepoOptions): Promise<SitesRepo> {
  const { url, cacheDir, branch = 'main' } = options;
  if (existsSync(join(url, 'HEAD'))) return new SitesRepo(url, null, options);
  if (!/^[a-z+]+:\/\/|^[^/]+@[^/]+:/.test(url)) {
    throw new SitesRepoError(`${url} is neither a bare git repository nor a URL of one`);
  }
  const mirror = await openMirror(cacheDir, url, branch);
  return new SitesRepo(mirror, url, options);
}

export type { HistoryEntry, Person, SiteBlob, SiteEdit, SiteFile };
export { initSitesRepo, SitesRepoError };
