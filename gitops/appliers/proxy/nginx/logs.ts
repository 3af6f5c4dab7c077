import { readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The number of rotated files of a log: `<name>.1` (newer) and `<name>.2`. The log and each rotated file may take up to
 * a third of the limit.
 */
const ROTATED = 2;
/** How long the logs of a removed site are kept after their last line. */
const GONE_MS = 7 * 24 * 60 * 60 * 1000;

interface LogRotation {
  /** The folder in which nginx writes `error.log` and `sites/<site>.log`. */
  readonly directory: string;
  /** The sites that are served. */
  readonly sites: ReadonlySet<string>;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Further logs in the folder. */
  readonly others?: readonly string[];
  /** Maximum size of a log and its rotated files together, in bytes. */
  readonly maxBytes: number;
}

/**
 * Rotates full logs. Removes logs that no served site owns and that have been unchanged for a week. Returns true if
 * nginx must reopen its logs: until then, it writes to the renamed files.
 */
export async function rotateLogs({
  directory,
  sites,
  now,
  maxBytes,
  others = [],
}: LogRotation): Promise<boolean> {
  const folder = join(directory, 'sites');
  const names = (await readdir(folder)).filter((name) => /\.log(?:\.[0-9]+)?$/.test(name));
  const gone = names.filter((name) => !sites.has(name.replace(/\.log.*$/, '')));
  for (const name of gone) await dropIfOld(join(folder, name), now);

  let mustReopen = false;
  for (const path of [
    ...['error.log', ...others].map((name) => join(directory, name)),
    ...[...sites].map((site) => join(folder, `${site}.log`)),
  ]) {
    const bytes = await sizeOf(path);
    if (bytes !== null && bytes > maxBytes / (1 + ROTATED)) await rotate(path);
    // If only `.1` exists, an earlier process was killed after the rename, before nginx reopened the log.
    else if (bytes !== null || (await sizeOf(`${path}.1`)) === null) continue;
    mustReopen = true;
  }
  return mustReopen;
}

async function rotate(path: string): Promise<void> {
  for (let number = ROTATED; number > 1; number -= 1) {
    await rename(`${path}.${number - 1}`, `${path}.${number}`).catch(ignoreAbsent);
  }
  await rename(path, `${path}.1`);
}

async function dropIfOld(path: string, now: number): Promise<void> {
  const written = (await stat(path).catch(ignoreAbsent))?.mtimeMs ?? now;
  if (now - written > GONE_MS) await rm(path, { force: true });
}

/** `null` if there is no such file. */
async function sizeOf(path: string): Promise<number | null> {
  return (await stat(path).catch(ignoreAbsent))?.size ?? null;
}

function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
