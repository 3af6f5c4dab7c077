import { withoutCredentials } from './credentials.ts';
import { wrapGitError } from './errors.ts';
import { git } from './git/git.ts';
import { gitOf } from './mirror.ts';

/** Branches and leases, as in a mirror. */
const REFS = ['refs/heads/*', 'refs/tagyard/hosts/*'].map((ref) => `${ref}:${ref}`);

/** All commits of a bare repository in one file of git's own form; `null`: it has none. */
export async function bundleOf(path: string): Promise<Buffer | null> {
  const run = gitOf(path, () => undefined);
  return await wrapGitError('bundle', async () => {
    if ((await run(['for-each-ref', '--count=1', 'refs/heads'])).length === 0) return null;
    return await run(['bundle', 'create', '--quiet', '-', '--all']);
  });
}

/** The newest commit of a branch of a bare repository; `null`: there is no such branch. */
export async function tipOf(path: string, branch: string): Promise<string | null> {
  const args = ['for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`];
  const found = await wrapGitError('for-each-ref', () => gitOf(path, () => undefined)(args));
  return found.toString().trim() || null;
}

/** Makes a bare repository from a file with a bundle. */
export async function cloneBundle(bundle: string, path: string): Promise<void> {
  await wrapGitError('clone', async () => {
    await git('/', ['clone', '--quiet', '--mirror', bundle, path]);
    await gitOf(path, () => undefined)(['config', '--remove-section', 'remote.origin']);
  });
}

/** Sends everything of a bare repository to an empty remote one. */
export async function pushAll(
  path: string,
  remote: string,
  gitConfig?: string,
  passwordFile?: string,
): Promise<void> {
  const { url, env } = withoutCredentials(remote, passwordFile);
  const settings = gitConfig === undefined ? {} : { GIT_CONFIG_GLOBAL: gitConfig };
  const run = gitOf(path, () => undefined, { ...settings, ...env });
  await wrapGitError('push', () => run(['push', '--progress', url, ...REFS]));
}
