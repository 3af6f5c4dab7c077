import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { type Absence, findAbsences } from './absences.ts';
import { type ClaimAge, findAges, type Holds } from './ages.ts';
import { Branch, type LastRead } from './branch.ts';
import { Committer } from './committer.ts';
import { redactUrls, withoutCredentials } from './credentials.ts';
import type { Committed, SiteEdit } from './edits/commits.ts';
import { COMMITTER, type Person } from './edits/fast-import.ts';
import { SitesRepoError } from './errors.ts';
import type { SiteFile } from './files.ts';
import { GitDir } from './git-dir.ts';
import { History } from './history.ts';
import { HostLease } from './host-lease.ts';
import { findLastReadable, type LastReadable, type SearchRange } from './last-readable.ts';
import type { SiteBlob, SiteTree } from './listing.ts';
import type { CommitEntry, HistoryEntry, VersionRange } from './log.ts';
import { gitOf, openMirror } from './mirror.ts';
import { SiteFiles } from './site-files.ts';
import { watchRepo } from './watch.ts';

interface SitesRepoOptions {
  /** A path of a bare repository, or any URL that git fetches from and pushes to. */
  readonly url: string;
  /** The folder of the mirror of a remote repository. */
  readonly cacheDir: string;
  readonly branch?: string;
  /** A file of git's settings, for example how to reach the remote. Git reads no others but the repository's own. */
  readonly gitConfig?: string | undefined;
  /** A file whose first line is the password or token for an HTTPS remote, read whenever git needs it. */
  readonly passwordFile?: string | undefined;
  /** The file of the SSH key that signs commits; unset: they aren't signed. */
  readonly signingKey?: string | undefined;
  /** Default: Tagyard. */
  readonly committer?: Person | undefined;
  /** Seconds between two fetches from a remote, before jitter. */
  readonly pollSeconds?: number;
  /** True: the branch has had commits. If it is missing now, it can't be read and is not created. */
  readonly initialized?: boolean;
  /** The repository is packed once it has about this many loose objects; default: 500. */
  readonly gcObjects?: number;
  /**
   * Gets messages for the operator about faults that don't stop the work, for example a stale lock that was removed.
   */
  readonly onNotice?: (message: string) => void;
}

/** A pull request of GitHub or Gitea, or a merge request of GitLab. The mirror fetches none before one is asked for. */
const PROPOSAL = /^refs\/(?:pull|merge-requests)\/\d+\/(?:head|merge)$/;

/**
 * The sites repository: one branch whose root has a manifest `<site>.yaml` for each site. Management keeps
 * `clients/<id>.yaml` and `organisations/<id>.yaml` there too. Methods for a site also take these files, by the path
 * without the ending; only `tenants` lists them. Policy scripts (`policy.js`, `clients/<id>.policy.js`) are named by
 * their path; only `policies` lists them.
 */
export class SitesRepo {
  readonly #git: GitDir;
  readonly #branch: Branch;
  readonly #files: SiteFiles;
  readonly #history: History;
  readonly #committer: Committer;
  readonly #pollSeconds: number;
  readonly #onNotice: (message: string) => void;
  readonly #gcObjects: number;
  #isCollecting = false;

  /** `remote`: the URL that the repository at `path` mirrors; `null`: `path` is the sites repository itself. */
  constructor(path: string, remote: string | null, options: Partial<SitesRepoOptions> = {}) {
    this.#onNotice = options.onNotice ?? (() => undefined);
    const branch = options.branch ?? 'main';
    const { url, env: credentials } = withoutCredentials(remote ?? '', options.passwordFile);
    const run = gitOf(path, this.#onNotice, { ...gitSettings(options.gitConfig), ...credentials });
    const open = async () => {
      this.#onNotice(`${path}, the mirror of the sites repository, was gone; it is made again`);
      await openMirror(path, run, url, branch);
    };
    const { committer = COMMITTER, signingKey } = options;
    const git = new GitDir(path, run, remote === null ? null : open, { committer, signingKey });
    this.#git = git;
    this.#branch = new Branch(git, branch, options.initialized ?? false);
    this.#files = new SiteFiles(git);
    this.#history = new History(git, this.#files);
    this.#committer = new Committer({
      git,
      branch: this.#branch,
      files: this.#files,
      history: this.#history,
      clock: systemClock,
      onNotice: this.#onNotice,
    });
    this.#pollSeconds = options.pollSeconds ?? 30;
    this.#gcObjects = options.gcObjects ?? 500;
  }

  /** The newest revision; `null`: there is no branch and never was one. Fetches first if the repository is remote. */
  async head(): Promise<string | null> {
    return await this.#branch.head();
  }

  /** How the last `head` has ended, without asking git. `null`: none has. */
  get lastRead(): LastRead | null {
    return this.#branch.lastRead;
  }

  /** The newest revision that was already fetched; `null`: none, or the repository is not a mirror. */
  async fetched(): Promise<string | null> {
    return this.#git.isMirror ? await this.#branch.tip() : null;
  }

  /** The right of a daemon to act as a host. */
  hostLease(settings: ConstructorParameters<typeof HostLease>[1]): HostLease {
    return new HostLease(this.#git, settings, this.#onNotice);
  }

  /** All site files (`*.yaml` at the root) of a revision, by site and blob, and files with such a name elsewhere. */
  async tree(revision: string): Promise<SiteTree> {
    return await this.#files.tree(revision);
  }

  /** The files of clients and organisations of a revision; `site` is their path without the ending. */
  async tenants(revision: string): Promise<readonly SiteBlob[]> {
    return await this.#files.tenants(revision);
  }

  /** The policy scripts of a revision: `policy.js` of the instance, `clients/<id>.policy.js` of a client. */
  async policies(revision: string): Promise<readonly SiteBlob[]> {
    return await this.#files.policies(revision);
  }

  /** The texts of these files in batches: ten thousand at once would need too much memory. */
  texts(blobs: readonly SiteBlob[]): AsyncGenerator<SiteFile[]> {
    return this.#files.texts(blobs);
  }

  /** All site files of a revision with their texts. */
  async read(revision: string): Promise<SiteFile[]> {
    const files: SiteFile[] = [];
    for await (const batch of this.texts((await this.tree(revision)).files)) files.push(...batch);
    return files;
  }

  /** `null`: the revision has no such file. */
  async readSite(revision: string, site: string): Promise<SiteFile | null> {
    return await this.#files.readSite(revision, site);
  }

  /** The file of each site at the revision that is given for it. Sites whose revision or file is gone are left out. */
  async readEach(revisions: ReadonlyMap<string, string>): Promise<SiteFile[]> {
    return await this.#files.readEach(revisions);
  }

  /**
   * Commits an edit of one file on top of the newest revision. If another writer commits first, `edit` runs again on
   * the newer text. Concurrent edits are pushed together, each with a commit of its own.
   */
  async commit(edit: SiteEdit): Promise<Committed> {
    return await this.#committer.commit(edit);
  }

  /** The commits of the branch with the sites that each touched, newest first; with `before`, only those older than it. */
  async commits(limit: number, before?: string): Promise<CommitEntry[]> {
    const newest = before ?? (await this.head());
    return newest === null ? [] : await this.#history.all(limit, newest, before === undefined ? 0 : 1);
  }

  /** These commits, in this order, with the sites that each touched; unknown ones are left out. */
  async commitsAt(revisions: readonly string[]): Promise<CommitEntry[]> {
    return await this.#history.at(revisions);
  }

  /** How many commits lead to a revision: a later one has more. */
  async ordinal(revision: string): Promise<number> {
    return await this.#history.ordinal(revision);
  }

  /** The commits that touched a site's file, newest first, from `revision` (default: the tip) back. */
  async history(site: string, limit = 20, revision?: string): Promise<HistoryEntry[]> {
    const newest = revision ?? (await this.#branch.tip());
    if (newest === null) return [];
    return await this.#history.commits(site, limit, newest);
  }

  /** The texts of a site's file at these revisions (`<id>` or `<id>^`). Those that have no such file are left out. */
  async textsAt(site: string, revisions: readonly string[]): Promise<Map<string, string>> {
    return await this.#files.textsAt(site, revisions);
  }

  /** A site's file after each commit that touched it, by revision, newest first; `null`: the commit deleted it. */
  async versions(site: string, range: VersionRange): Promise<Map<string, string | null>> {
    return await this.#history.versions(site, range);
  }

  /** The last readable manifests of these sites on the branch. Starts few git processes for any number of sites. */
  async lastReadable(sites: readonly string[], range: SearchRange): Promise<Map<string, LastReadable>> {
    return await this.#git.retryAfterRefetch(() =>
      findLastReadable(sites, range, { git: this.#git, files: this.#files }),
    );
  }

  /** Why a revision has no file of these sites. A site counts as removed only if a commit removed its file. */
  async absences(sites: readonly string[], revision: string): Promise<Map<string, Absence>> {
    return await this.#git.retryAfterRefetch(() =>
      findAbsences(sites, revision, { git: this.#git, files: this.#files }),
    );
  }

  /** Updates git's own index of paths by commit: `history` of a site then takes a tenth of the time. */
  async indexHistory(): Promise<void> {
    await this.#history.index();
  }

  /**
   * For each of these sites, since when `holds` is true of its file without a break, up to a revision. Starts few git
   * processes for any number of sites.
   */
  async ages(sites: readonly string[], revision: string, holds: Holds): Promise<Map<string, ClaimAge>> {
    return await this.#git.retryAfterRefetch(() =>
      findAges(sites, revision, holds, { git: this.#git, files: this.#files }),
    );
  }

  /** Takes full ids. False if the older revision is unknown. */
  async isAncestor(older: string, newer: string): Promise<boolean> {
    return await this.#history.isAncestor(older, newer);
  }

  /** Full id of anything that git understands as a commit; `null`: there is no such commit. */
  async resolve(ref: string): Promise<string | null> {
    // Fetches first: the branch may have moved, or `ref` may have been pushed a moment ago.
    await this.head();
    try {
      if (this.#git.isMirror && PROPOSAL.test(ref)) {
        await this.#git.run(['fetch', '--progress', 'origin', `+${ref}:${ref}`]);
      }
      const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`];
      return (await this.#git.run(args)).toString().trim();
    } catch {
      return null;
    }
  }

  /** Whether the repository has this commit (a full id). Throws `SitesRepoError` if git can't tell. */
  async has(revision: string): Promise<boolean> {
    return await this.#git.has(`${revision}^{commit}`);
  }

  /**
   * Yields the current revision, and each new one when the branch moves, until `signal` aborts. Yields `null` when the
   * revision can't be read any more, and the revision again when it can.
   */
  async *changes(signal: AbortSignal, onError: (error: unknown) => void): AsyncGenerator<string | null> {
    let last: string | null | undefined;
    const options = { remote: this.#git.isMirror, pollSeconds: this.#pollSeconds, onError };
    for await (const _ of watchRepo(this.#git.path, options, signal)) {
      const head = await this.head().catch(() => null);
      if (head !== last) {
        this.#collectGarbage();
        yield head;
      }
      last = head;
    }
  }

  /**
   * Packs the repository in the background if it has grown: each commit adds a tree of all sites. git keeps unreachable
   * objects for two weeks, so nothing that is being written or was just applied is lost.
   */
  #collectGarbage(): void {
    if (this.#isCollecting) return;
    this.#isCollecting = true;
    this.#git
      .pack(this.#gcObjects)
      .catch((error: Error) => this.#onNotice(`the sites repository could not be packed: ${error.message}`))
      .finally(() => {
        this.#isCollecting = false;
      });
  }
}

export function gitSettings(gitConfig: string | undefined): Readonly<Record<string, string>> {
  return gitConfig === undefined ? {} : { GIT_CONFIG_GLOBAL: gitConfig };
}

interface SitesRepoSettings {
  readonly SITES_REPO: string;
  readonly SITES_BRANCH: string;
  readonly STATE_DIR: string;
  readonly SITES_REPO_GIT_CONFIG?: string | undefined;
  readonly SITES_REPO_PASSWORD_FILE?: string | undefined;
  readonly SITES_SIGNING_KEY_FILE?: string | undefined;
  readonly SITES_COMMITTER?: Person | undefined;
}

/** The sites repository that a daemon's settings name. */
export function sitesRepoOf(env: SitesRepoSettings) {
  return {
    url: env.SITES_REPO,
    cacheDir: env.STATE_DIR,
    branch: env.SITES_BRANCH,
    gitConfig: env.SITES_REPO_GIT_CONFIG,
    passwordFile: env.SITES_REPO_PASSWORD_FILE,
    signingKey: env.SITES_SIGNING_KEY_FILE,
    committer: env.SITES_COMMITTER,
  };
}

/** Opens a local bare repository in place, or mirrors a remote one under `cacheDir`. */
export async function openSitesRepo(options: SitesRepoOptions): Promise<SitesRepo> {
  const { url, cacheDir, branch = 'main', gitConfig, passwordFile, signingKey } = options;
  // Git would ignore a missing file, or read it only for the first commit.
  await demandFile('SITES_REPO_GIT_CONFIG', gitConfig);
  await demandFile('SITES_REPO_PASSWORD_FILE', passwordFile);
  await demandFile('SITES_SIGNING_KEY_FILE', signingKey);
  if (existsSync(join(url, 'HEAD'))) return new SitesRepo(url, null, options);
  if (!/^[a-z+]+:\/\/|^[^/]+@[^/]+:/.test(url)) {
    throw new SitesRepoError(
      `${redactUrls(url)} is neither a bare git repository nor a URL of one; set SITES_REPO to one of these`,
    );
  }
  const mirror = join(cacheDir, 'sites.git');
  const git = gitOf(mirror, options.onNotice ?? (() => undefined), gitSettings(gitConfig));
  await openMirror(mirror, git, withoutCredentials(url).url, branch);
  return new SitesRepo(mirror, url, options);
}

async function demandFile(setting: string, path: string | undefined): Promise<void> {
  if (path === undefined) return;
  await access(path, constants.R_OK).catch((cause: Error) => {
    throw new SitesRepoError(`${setting}: ${path} can’t be read: ${cause.message}`, { cause });
  });
}
