import { wrapGitError } from './errors.ts';
import { type RepoGit, renewMirror } from './mirror.ts';

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
  async run(args: readonly string[], input?: string | Buffer): Promise<Buffer> {
    // File names are literal: git would read some characters as patterns.
    const all = ['--literal-pathspecs', ...args];
    return await wrapGitError(verbOf(args), () => this.#git(all, input));
  }

  /** Runs `work` again, once, after a fetch of all objects: a mirror may have lost some (power cut, bad disk). */
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

/** The subcommand, after options such as `-c name=value`. */
function verbOf(args: readonly string[]): string | undefined {
  return args.find((arg, index) => !arg.startsWith('-') && args[index - 1] !== '-c');
}
