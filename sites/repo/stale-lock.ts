import { readdir, readFile, readlink, realpath, rm, stat } from 'node:fs/promises';
import { uptime } from 'node:os';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { SitesRepoError } from './errors.ts';
import { GitError } from './git/git.ts';

/** Milliseconds. A younger lock is not judged yet, because its process may have only just started. */
const MIN_AGE_MS = 2_000;
/** After a crash there may be a lock for each file that git replaces: config, HEAD, packed-refs, a branch. */
const MAX_LOCKS = 5;

/**
 * Runs `work`, a git command in the repository `dir`. If a lock file stops it and no process holds the lock, removes
 * the file, reports that to `onCleared` and runs `work` again. Git creates such a file before it replaces another one;
 * after a crash or a power cut it is never removed. Throws `SitesRepoError` if a process holds the lock.
 */
export async function withoutStaleLocks<T>(
  dir: string,
  onCleared: (message: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  for (let cleared = 0; ; cleared += 1) {
    try {
      return await work();
    } catch (error) {
      const lock = error instanceof GitError ? lockOf(error.message, dir) : null;
      if (lock === null || cleared === MAX_LOCKS) throw error;
      const outcome = await clear(lock, dir);
      if (typeof outcome === 'object') {
        throw new SitesRepoError(`${lock} is held by ${outcome.holder}; end it, or wait until it has ended`, {
          cause: error,
        });
      }
      if (outcome === 'removed') onCleared(`removed ${lock}: git was interrupted, and no process holds it`);
    }
  }
}

/**
 * The lock file that git's message names; `null` if it is that of another repository than `dir`, such as a remote.
 */
function lockOf(message: string, dir: string): string | null {
  const created = /Unable to create '([^']+\.lock)': File exists/.exec(message)?.[1];
  const config = /could not lock config file (\S+): File exists/.exec(message)?.[1];
  const path = created ?? (config === undefined ? undefined : `${config}.lock`);
  if (path === undefined) return null;
  const lock = resolve(dir, path);
  return lock.startsWith(resolve(dir) + sep) ? lock : null;
}

/**
 * Removes the lock unless a process holds it. `gone`: git removed it meanwhile, or replaced it by the lock of another
 * process.
 */
async function clear(lock: string, dir: string): Promise<'removed' | 'gone' | { readonly holder: string }> {
  const before = await stat(lock).catch(() => null);
  if (before === null) return 'gone';
  const youngMs = MIN_AGE_MS - (Date.now() - before.mtimeMs);
  if (youngMs > 0) await new Promise((resume) => setTimeout(resume, Math.min(youngMs, MIN_AGE_MS)));
  // A lock with another inode or time is that of a process that started later.
  const isStill = async () => {
    const now = await stat(lock).catch(() => null);
    return now?.ino === before.ino && now.mtimeMs === before.mtimeMs;
  };
  if (!(await isStill())) return 'gone';
  const holder = await holderOf(lock, dir);
  if (holder !== null) return { holder };
  if (!(await isStill())) return 'gone';
  await rm(lock, { force: true });
  return 'removed';
}

/**
 * The process that may hold a lock of this repository: one that has the file open, or a git process in the folder or
 * with its path as an argument. Such a git process may hold a lock whose file it no longer has open: git closes a lock
 * file before it renames it. Source: proc(5).
 */
async function holderOf(lock: string, dir: string): Promise<string | null> {
  const folder = await realpath(dir);
  const file = join(await realpath(dirname(lock)).catch(() => dirname(lock)), basename(lock));
  const entries = await readdir('/proc').catch(() => null);
  if (entries === null) return 'an unknown process (this system has no /proc)';
  const found = await stat(lock).catch(() => null);
  // What was written before this boot has no process any more.
  if (found === null || found.mtimeMs < Date.now() - uptime() * 1000) return null;
  // /proc may hide the processes of other users from all but root (hidepid in proc(5)).
  const user = process.getuid?.();
  if (user !== 0 && found.uid !== user) {
    return `a process of the user ${found.uid}, perhaps; delete the file if no git process works in the repository`;
  }
  for (const pid of entries.filter((name) => /^\d+$/.test(name))) {
    const args = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0').filter(Boolean);
    if (args.length === 0) continue;
    const isGit = /^git(?:-|$)/.test(basename(args[0] ?? ''));
    const uses = (isGit && (await worksIn(pid, args, folder))) || (await hasOpen(pid, file));
    if (uses) return `process ${pid} (${args.slice(0, 2).join(' ')})`;
  }
  return null;
}

async function worksIn(pid: string, args: readonly string[], folder: string): Promise<boolean> {
  if (args.some((arg) => arg.includes(folder))) return true;
  // The working folder of another user's process can't be read, so it may be this repository.
  const cwd = await readlink(`/proc/${pid}/cwd`).catch((error: NodeJS.ErrnoException) =>
    error.code === 'EACCES' ? folder : null,
  );
  return cwd === folder || cwd?.startsWith(folder + sep) === true;
}

async function hasOpen(pid: string, file: string): Promise<boolean> {
  const handles = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const links = await Promise.all(handles.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  return links.includes(file);
}
