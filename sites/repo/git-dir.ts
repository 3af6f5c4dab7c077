import { wrapGitError } from './errors.ts';
import { verbOf } from './git/git.ts';
import { adoptFormat, fetchMirror, type RepoGit, renewMirror } from './mirror.ts';

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

  readonly #git: RepoGit;

  constructor(path: string, isMirror: boolean, git: RepoGit) {
    this.path = path;
    this.isMirror = isMirror;
    this.#git = git;
  }

  /** Runs git. Throws `SitesRepoError`. */
  async run(
    args: readonly string[],
    input?: string | Buffer,
    options: { readonly silenceMs?: number } = {},
  ): Promise<Buffer> {
    // File names are literal: git would read some characters as patterns.
    const all = ['--literal-pathspecs', ...args];
    return await wrapGitError(verbOf(args), () => this.#git(all, input, options));
  }

  /** Fetches everything from the remote repository that this one mirrors. Throws `SitesRepoError`. */
  async fetch(): Promise<void> {
    await wrapGitError('fetch', () => fetchMirror(this.path, this.#git));
  }

  /** See `adoptFormat`. */
  async adoptFormat(error: unknown): Promise<boolean> {
    return this.isMirror && (await adoptFormat(this.path, this.#git, error));
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
