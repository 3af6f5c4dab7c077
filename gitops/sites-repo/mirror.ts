import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from '../clients/git.ts';
import { wrapGitError } from './errors.ts';
import { withoutStaleLocks } from './stale-lock.ts';

/** Forced: the mirror follows the remote's branches and leases, also after a rewrite. */
const REFSPECS = ['+refs/heads/*:refs/heads/*', '+refs/tagyard/hosts/*:refs/tagyard/hosts/*'];
/**
 * The progress shows that a slow remote is alive, so a large fetch may take any time. Git shows the progress in bytes
 * only for a pack that it doesn't unpack.
 */
export const FETCH = ['-c', 'fetch.unpackLimit=1', 'fetch', '--progress', '--prune', 'origin', ...REFSPECS];
const FETCH_ALL = ['-c', 'fetch.unpackLimit=1', 'fetch', '--progress', '--refetch', 'origin', ...REFSPECS];

/** Runs git in one repository. `silenceMs`: as for `git`. */
export type RepoGit = (
  args: readonly string[],
  input?: string | Buffer,
  options?: { readonly silenceMs?: number },
) => Promise<Buffer>;

/** `onCleared` gets a message for each stale lock that was removed; `env` has the credentials. */
export function gitOf(
  path: string,
  onCleared: (message: string) => void,
  env: Readonly<Record<string, string>> = {},
): RepoGit {
  return (args, input, options) =>
    withoutStaleLocks(path, onCleared, () =>
      git(path, args, { ...options, env, ...(input === undefined ? {} : { input }) }),
    );
}

/** Creates an empty bare repository unless one exists. */
export async function initSitesRepo(path: string, branch = 'main'): Promise<void> {
  if (existsSync(join(path, 'HEAD'))) return;
  await mkdir(path, { recursive: true });
  await git(path, ['init', '--quiet', '--bare', `--initial-branch=${branch}`]);
}

/** Creates the bare mirror of the repository at `url`, or sets the URL of an existing one. Fetches nothing. */
export async function openMirror(mirror: string, git: RepoGit, url: string, branch: string): Promise<void> {
  // At every start: the last start may have been interrupted, or its settings may have named another URL.
  await mkdir(mirror, { recursive: true });
  await wrapGitError('init', () => git(['init', '--quiet', '--bare', `--initial-branch=${branch}`]));
  await wrapGitError('config', () => git(['config', 'remote.origin.url', url]));
}

/**
 * Replaces loose objects, which a power cut or a bad disk may have damaged: fetches all objects as one pack. If the
 * fetch fails, keeps the loose objects, because most of them are intact.
 */
export async function renewMirror(mirror: string, git: RepoGit): Promise<void> {
  const objects = join(mirror, 'objects');
  const aside = join(mirror, 'objects-aside');
  await rm(aside, { recursive: true, force: true });
  await mkdir(aside);
  const loose = (await readdir(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name));
  for (const name of loose) await rename(join(objects, name), join(aside, name));
  try {
    await git(FETCH_ALL);
  } catch (error) {
    for (const name of loose) await cp(join(aside, name), join(objects, name), { recursive: true });
    throw error;
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}
