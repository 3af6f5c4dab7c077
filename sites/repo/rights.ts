import { constants } from 'node:fs';
import { access, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { redactUrls, withoutCredentials } from './credentials.ts';
import { SitesRepoError } from './errors.ts';
import { gitOf, isRepository, openMirror } from './mirror.ts';
import { gitSettings } from './sites-repo.ts';

export interface RemoteRepo {
  readonly url: string;
  readonly branch: string;
  readonly gitConfig?: string | undefined;
  readonly passwordFile?: string | undefined;
}

const TRIED = 'refs/heads/tagyard-check';
/** An empty commit. */
const COMMIT = `commit ${TRIED}\ncommitter Tagyard <> 0 +0000\ndata 0\n\ndone\n`;

/**
 * The branches of the sites repository, if this process may read it and push to it: a push that git only tries shows
 * that. Throws an error with the server's own words.
 */
export async function askRights({
  url,
  branch,
  gitConfig,
  passwordFile,
}: RemoteRepo): Promise<readonly string[]> {
  const here = isRepository(url);
  const folder = here ? url : await mkdtemp(join(tmpdir(), 'tagyard-rights-'));
  try {
    const { url: clean, env } = withoutCredentials(url, passwordFile);
    const git = gitOf(folder, () => undefined, { ...gitSettings(gitConfig), ...env });
    if (here) {
      await Promise.all(['objects', 'refs'].map((name) => access(join(url, name), constants.W_OK)));
      return branchesIn(
        (await git(['for-each-ref', '--format=%(objectname)%09%(refname)', 'refs/heads'])).toString(),
      );
    }
    await openMirror(folder, git, clean, branch);
    const branches = branchesIn((await git(['ls-remote', '--heads', 'origin'])).toString());
    await git(['fast-import', '--quiet', '--done'], COMMIT);
    await git(['push', '--dry-run', 'origin', TRIED]).catch((error: Error) => {
      // A repository with another hash algorithm says so only to those who may push.
      if (!/hash algorithm/.test(error.message)) throw error;
    });
    return branches;
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new SitesRepoError(redactUrls(message).trim(), { cause });
  } finally {
    if (!here) await rm(folder, { recursive: true, force: true });
  }
}

function branchesIn(lines: string): string[] {
  return [...lines.matchAll(/\trefs\/heads\/(.+)$/gm)].map(([, name = '']) => name);
}
