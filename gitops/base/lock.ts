import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** Somebody else holds the lock; `pid` is theirs where it is known. */
export class LockHeldError extends Error {
  override name = 'LockHeldError';
  readonly pid: number | null;
  constructor(path: string, pid: number | null) {
    super(`${path} is held by ${pid === null ? 'another process' : `process ${pid}`}`);
    this.pid = pid;
  }
}

/**
 * A lock that dies with its process, however that ends: the kernel's own record lock on `path`, taken through SQLite,
 * which is what Node has of it. Nothing of it can go stale, and a release takes its files away.
 * Throws `LockHeldError`, or SQLite's error where the file is not one of its own. Once a process and path: closing any
 * other descriptor of the file would drop the kernel's lock (fcntl(2)).
 */
export function acquireLock(path: string): { release(): void } {
  const pidFile = `${path}.pid`;
  for (;;) {
    appendFileSync(path, '', { mode: 0o600 });
    const inode = inodeOf(path);
    const database = lockFile(path, pidFile);
    if (inode !== null && inodeOf(path) === inode) {
      writeFileSync(pidFile, `${process.pid}\n`);
      return {
        release() {
          rmSync(pidFile, { force: true });
          rmSync(path, { force: true });
          database.close();
        },
      };
    }
    // Its last holder took the file away while we were opening it: what we hold is a lock on nothing.
    database.close();
  }
}

function lockFile(path: string, pidFile: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (cause) {
    database.close();
    if (isBusy(cause)) throw new LockHeldError(path, readPid(pidFile));
    throw cause;
  }
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}

/** SQLITE_BUSY, https://www.sqlite.org/rescode.html. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5;
}

function readPid(path: string): number | null {
  try {
    return Number.parseInt(readFileSync(path, 'utf8'), 10) || null;
  } catch {
    return null;
  }
}
