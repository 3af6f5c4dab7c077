import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** Another process holds the lock; `pid` is its id if known. */
export class LockHeldError extends Error {
  override name = 'LockHeldError';
  readonly pid: number | null;
  constructor(path: string, pid: number | null) {
    super(`${path} is held by ${pid === null ? 'another process' : `process ${pid}`}`);
    this.pid = pid;
  }
}

/**
 * Locks `path` by the kernel's record lock, which ends with the process and so can't become stale. Node offers this
 * lock only through SQLite. `release` deletes the files. Throws `LockHeldError`, or SQLite's error if the file has
 * other content. Call it once per process and path: the kernel drops the lock when any descriptor of the file is closed
 * (fcntl(2)).
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
    // The last holder deleted the file after we opened it, so our lock is on a deleted file.
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
