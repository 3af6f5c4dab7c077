import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { devNull } from 'node:os';
import { join } from 'node:path';
import { SitesRepoError, wrapGitError } from './errors.ts';
import { GitError, git } from './git/git.ts';
import { withoutStaleLocks } from './stale-lock.ts';

/** Forced: the mirror follows the remote's branches and leases, also after a rewrite. */
const REFSPECS = ['+refs/heads/*:refs/heads/*', '+refs/tagyard/hosts/*:refs/tagyard/hosts/*'];
/**
 * The progress shows that a slow remote is alive, so a large fetch may take any time. Git shows the progress in bytes
 * only for a pack that it doesn't unpack.
 */
export const FETCH = ['-c', 'fetch.unpackLimit=1', 'fetch', '--progress', '--prune', 'origin', ...REFSPECS];
const FETCH_ALL = ['-c', 'fetch.unpackLimit=1', 'fetch', '--progress', '--refetch', 'origin', ...REFSPECS];

/** As for `git`. */
export interface RunOptions {
  readonly silenceMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs git in one repository. */
export type RepoGit = (
  args: readonly string[],
  input?: string | Buffer,
  options?: RunOptions,
) => Promise<Buffer>;

/**
 * `onCleared` gets a message for each stale lock that was removed; `env` has the credentials. The repository is named
 * explicitly, as the setting `safe.bareRepository=explicit` demands.
 */
export function gitOf(
  path: string,
  onCleared: (message: string) => void,
  env: Readonly<Record<string, string>> = {},
): RepoGit {
  return (args, input, options) =>
    withoutStaleLocks(path, onCleared, () =>
      git(path, args, {
        ...options,
        env: { GIT_DIR: path, ...env, ...options?.env },
        ...(input === undefined ? {} : { input }),
      }),
    );
}

/** Whether the folder has what git recognises a repository by. Source: gitrepository-layout(5). */
export function isRepository(path: string): boolean {
  return ['HEAD', 'objects', 'refs'].every((name) => existsSync(join(path, name)));
}

/** Creates an empty bare repository unless one exists. */
export async function initSitesRepo(path: string, branch = 'main'): Promise<void> {
  if (existsSync(join(path, 'HEAD'))) return;
  await mkdir(path, { recursive: true });
  await git(path, initOf(branch));
}

function initOf(branch: string, ...more: readonly string[]): string[] {
  return ['init', '--quiet', '--bare', `--initial-branch=${branch}`, ...more];
}

/** Creates the bare mirror of the repository at `url`, or sets the URL of an existing one. Fetches nothing. */
export async function openMirror(mirror: string, git: RepoGit, url: string, branch: string): Promise<void> {
  // At every start: the last start may have been interrupted, or its settings may have named another URL.
  await mkdir(mirror, { recursive: true });
  await wrapGitError('init', () => git(initOf(branch)));
  await setRemote(git, url);
}

async function setRemote(git: RepoGit, url: string): Promise<void> {
  await wrapGitError('config', async () => {
    await git(['config', 'remote.origin.url', url]);
    await protectFromRemote(git);
  });
}

/**
 * For a repository on this machine, git itself starts the server's side, as this process's user, and without the settings
 * of the client's side. It would run the repository's hooks and the command that its settings name. A server on another
 * machine starts its side itself.
 */
async function protectFromRemote(git: RepoGit): Promise<void> {
  // `gc.recentObjectsHook` is run by the garbage collection that follows a push.
  const settings = [`core.hooksPath=${devNull}`, 'core.alternateRefsCommand=true', 'receive.autogc=false'];
  for (const [program, direction] of [
    ['upload-pack', []],
    ['receive-pack', ['--push']],
  ] as const) {
    // The operator's settings may lead the URL elsewhere.
    const url = (await git(['remote', 'get-url', ...direction, 'origin'])).toString().trim();
    const key = `remote.origin.${program.replace('-', '')}`;
    if (isOnThisMachine(url)) {
      await git(['config', key, ['git', ...settings.map((one) => `-c ${one}`), program].join(' ')]);
    } else {
      await git(['config', '--unset-all', key]).catch((error: unknown) => {
        if (!(error instanceof GitError && error.exitCode === NOT_SET)) throw error;
      });
    }
  }
}

/** The exit code of `git config --unset-all` for a setting that doesn't exist. */
const NOT_SET = 5;

/** As git decides it: a `file:` URL, or a path. A path has no colon before its first slash. */
function isOnThisMachine(url: string): boolean {
  return /^file:/i.test(url) || !/^[^/]*:/.test(url);
}

/** Fetches. A mirror that is still empty gets the remote's object format. */
export async function fetchMirror(mirror: string, git: RepoGit): Promise<void> {
  try {
    await git(FETCH);
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    const [, ours, format] = /mismatched algorithms: client (\w+); server (\w+)/.exec(message) ?? [];
    if (format === undefined) throw error;
    if ((await git(['for-each-ref', '--count=1', 'refs/heads'])).length > 0) {
      throw new SitesRepoError(
        `the remote repository now uses ${format}, its mirror ${ours}: stop this process and delete ${mirror}`,
        { cause: error },
      );
    }
    await renewEmptyMirror(mirror, git, format);
    await git(FETCH);
  }
}

/** Whether a push failed because the remote, which is empty, has another object format. */
export function isOtherFormat(error: unknown): boolean {
  return error instanceof Error && /does not support this repository.s hash algorithm/.test(error.message);
}

/** Gives an empty mirror the other object format than `pushed`, unless it has it already. */
export async function changeFormat(mirror: string, git: RepoGit, pushed: string): Promise<void> {
  if ((await formatOf(git)) !== pushed) return;
  await wrapGitError('init', () => renewEmptyMirror(mirror, git, pushed === 'sha1' ? 'sha256' : 'sha1'));
}

/** `sha1` or `sha256`. */
export async function formatOf(git: RepoGit): Promise<string> {
  return (await git(['rev-parse', '--show-object-format'])).toString().trim();
}

async function renewEmptyMirror(mirror: string, git: RepoGit, format: string): Promise<void> {
  const text = async (...args: string[]) => (await git(args)).toString().trim();
  const url = await text('config', 'remote.origin.url');
  const branch = await text('symbolic-ref', '--short', 'HEAD');
  // Beside it, because others read the mirror meanwhile.
  const [fresh, old] = [`${mirror}.new`, `${mirror}.old`];
  for (const folder of [fresh, old]) await rm(folder, { recursive: true, force: true });
  await mkdir(fresh);
  const inFresh: RepoGit = (args, input, options) =>
    git(args, input, { ...options, env: { ...options?.env, GIT_DIR: fresh } });
  await inFresh(initOf(branch, `--object-format=${format}`));
  await setRemote(inFresh, url);
  await rename(mirror, old);
  await rename(fresh, mirror);
  await rm(old, { recursive: true });
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
