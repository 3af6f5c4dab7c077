import { git } from '../clients/git.ts';
import { wrapGitError } from './errors.ts';
import { renewMirror } from './mirror.ts';

/** A bare repository. Without index and work tree, no reader or writer ever waits for `index.lock`. */
export class GitDir {
  readonly path: string;
  /** It mirrors a remote repository. */
  readonly isMirror: boolean;

  constructor(path: string, isMirror: boolean) {
    this.path = path;
    this.isMirror = isMirror;
  }

  /** Runs git. Throws `SitesRepoError`. */
  async run(args: readonly string[], input?: string | Buffer): Promise<Buffer> {
    // File names are literal: git would read some characters as patterns.
    const all = ['--literal-pathspecs', ...args];
    return await wrapGitError(args[0], () => git(this.path, all, input === undefined ? {} : { input }));
  }

  /** Runs `work` again, once, after a fetch of all objects: a mirror may have lost some (power cut, bad disk). */
  async retryAfterRefetch<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!this.isMirror) throw error;
      await wrapGitError('fetch', () => renewMirror(this.path));
      return await work();
    }
  }
}
