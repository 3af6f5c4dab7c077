import { existsSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from '../clients/git.ts';

/** Forced: the mirror follows the remote's branch, also after a rewrite. */
const REFSPEC = '+refs/heads/*:refs/heads/*';
export const FETCH = ['fetch', '--quiet', '--prune', 'origin', REFSPEC];
const FETCH_ALL = ['-c', 'fetch.unpackLimit=1', 'fetch', '--quiet', '--refetch', 'origin', REFSPEC];

/** Creates an empty bare repository unless one exists. */
export async function initSitesRepo(path: string, branch = 'main'): Promise<void> {
  if (existsSync(join(path, 'HEAD'))) return;
  await mkdir(path, { recursive: true });
  await git(path, ['init', '--quiet', '--bare', `--initial-branch=${branch}`]);
}

/** Creates or updates the bare mirror of the repository at `url`; answers its path. */
export async function openMirror(cacheDir: string, url: string, branch: string): Promise<string> {
  const mirror = join(cacheDir, 'sites.git');
  // At every start: the last one may have been interrupted, or have mirrored another URL.
  await mkdir(mirror, { recursive: true });
  await git(mirror, ['init', '--quiet', '--bare', `--initial-branch=${branch}`]);
  await git(mirror, ['config', 'remote.origin.url', url]);
  return mirror;
}

/** Replaces loose objects, which a power cut or a bad disk may have damaged, by a fetch of all objects as one pack. */
export async function renewMirror(mirror: string): Promise<void> {
  const objects = join(mirror, 'objects');
  const loose = (await readdir(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name));
  for (const name of loose) await rm(join(objects, name), { recursive: true, force: true });
  await git(mirror, FETCH_ALL);
}
