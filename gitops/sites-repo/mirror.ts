import { existsSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from '../clients/git.ts';

/** Forced: the remote’s branch is what counts, wherever it was moved. */
const REFSPEC = '+refs/heads/*:refs/heads/*';
export const FETCH = ['fetch', '--quiet', '--prune', 'origin', REFSPEC];
const FETCH_ALL = ['-c', 'fetch.unpackLimit=1', 'fetch', '--quiet', '--refetch', 'origin', REFSPEC];

/** Makes an empty bare repository, where there is none yet. */
export async function initSitesRepo(path: string, branch = 'main'): Promise<void> {
  if (existsSync(join(path, 'HEAD'))) return;
  await mkdir(path, { recursive: true });
  await git(path, ['init', '--quiet', '--bare', `--initial-branch=${branch}`]);
}

/** A bare repository that follows the one at `url`; answers where it is. */
export async function openMirror(cacheDir: string, url: string, branch: string): Promise<string> {
  const mirror = join(cacheDir, 'sites.git');
  // Each time anew: it may have been cut off halfway, or mirror another repository than the one that is named now.
  await mkdir(mirror, { recursive: true });
  await git(mirror, ['init', '--quiet', '--bare', `--initial-branch=${branch}`]);
  await git(mirror, ['config', 'remote.origin.url', url]);
  return mirror;
}

/** Fetches every object again, as one pack, in place of single ones that a power cut or a bad disk may have spoilt. */
export async function renewMirror(mirror: string): Promise<void> {
  const objects = join(mirror, 'objects');
  const single = (await readdir(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name));
  for (const name of single) await rm(join(objects, name), { recursive: true, force: true });
  await git(mirror, FETCH_ALL);
}
