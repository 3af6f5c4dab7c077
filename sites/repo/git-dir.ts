import { coalesce } from '../../base/coalesce.ts';
import { limit } from '../../base/limit.ts';
import { COMMITTER, type CommitSettings } from './edits/fast-import.ts';
import { SitesRepoError, wrapGitError } from './errors.ts';
import { verbOf } from './git/git.ts';
import {
  changeFormat,
  fetchMirror,
  formatOf,
  isOtherFormat,
  isRepository,
  type RepoGit,
  type RunOptions,
  renewMirror,
} from './mirror.ts';

/**
 * Milliseconds for a command that works on the whole repository and reports no progress. A repository of several GB
 * takes minutes.
 */
export const WHOLE_REPO = { silenceMs: 30 * 60_000 };

/** A bare repository. Without index and work tree, no reader or writer ever waits for `index.lock`. */
export class GitDir {
  readonly path: string;
  /** It mirrors a remote repository. */
  readonly isMirror: boolean;
  readonly commits: CommitSettings;

  readonly #git: RepoGit;
  /** What makes a mirror anew, or fetches into it, does so alone. */
  readonly #whole = limit(1);
  /** Concurrent calls use one fetch, and two fetches don't run at once. */
  readonly #fetches = coalesce(
    async (calls: readonly undefined[]) => {
      await this.#whole(() => wrapGitError('fetch', () => this.#fetch()));
      return calls.map(() => ({ status: 'fulfilled', value: undefined }) as const);
    },
    { windowMs: 0 },
  );
  readonly #open: (() => Promise<void>) | null;

  /** `open`: creates the mirror; `null`: the repository is no mirror. */
  constructor(
    path: string,
    git: RepoGit,
    open: (() => Promise<void>) | null,
    commits: CommitSettings = { committer: COMMITTER, signingKey: undefined },
  ) {
    this.path = path;
    this.commits = commits;
    this.isMirror = open !== null;
    this.#git = git;
    this.#open = open;
  }

  /** Runs git. First makes a mirror again that was deleted. Throws `SitesRepoError`. */
  async run(args: readonly string[], input?: string | Buffer, options: RunOptions = {}): Promise<Buffer> {
    // File names are literal: git would read some characters as patterns.
    const all = ['--literal-pathspecs', ...args];
    const run = () => wrapGitError(verbOf(args), () => this.#git(all, input, options));
    try {
      return await run();
    } catch (cause) {
      if (isRepository(this.path)) throw cause;
      if (!this.isMirror) {
        const what = `the sites repository ${this.path} is gone, or a part of it`;
        throw new SitesRepoError(`${what}: put it back (a copy, or a bare clone of a clone)`, { cause });
      }
    }
    await this.fetch();
    return await run();
  }

  /** Whether there is such an object. Throws `SitesRepoError` if git can't tell. */
  async has(name: string): Promise<boolean> {
    const answer = await this.run(['cat-file', '--batch-check'], `${name}\n`);
    return !answer.toString().trimEnd().endsWith(' missing');
  }

  /** Fetches everything from the remote repository that this one mirrors. Throws `SitesRepoError`. */
  async fetch(): Promise<void> {
    await this.#fetches(undefined);
  }

  async #fetch(): Promise<void> {
    if (!isRepository(this.path)) await this.#open?.();
    await fetchMirror(this.path, this.#git);
  }

  /** True if a push failed because the remote, which is empty, has another object format. Then the mirror gets it, too. */
  async adoptFormat(error: unknown): Promise<boolean> {
    if (!this.isMirror || !isOtherFormat(error)) return false;
    const pushed = await formatOf((args) => this.run(args));
    await this.#whole(() => changeFormat(this.path, this.#git, pushed));
    return true;
  }

  /** Packs the objects if about `looseObjects` of them are loose. */
  async pack(looseObjects: number): Promise<void> {
    const settings = [`gc.auto=${looseObjects}`, 'gc.autoPackLimit=20', 'gc.autoDetach=false'];
    const args = [...settings.flatMap((setting) => ['-c', setting]), 'gc', '--auto', '--quiet'];
    await this.run(args, undefined, WHOLE_REPO);
  }

  /** Runs `work`. If it fails, a mirror fetches all objects (a bad disk may have lost some), and `work` runs again. */
  async retryAfterRefetch<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!this.isMirror) throw error;
      await wrapGitError('fetch', () => renewMirror(this.path, this.#git));
      return await work();
    }
  }
}
