import { parseManifest } from '../../sites/manifest/load.ts';
import { isNamedBy, saysRemoval } from './manifests.ts';
import type { Entry, Repository } from './repository.ts';

/** The most revisions of one file that are read to find its last valid version. */
const MAX_VERSIONS = 200;

/** What the head of the branch says, read by plain git. */
export interface GitView {
  readonly head: string;
  readonly tree: readonly Entry[];
}

export async function viewGit(repository: Repository): Promise<GitView> {
  const head = await repository.head();
  return { head, tree: await repository.tree(head) };
}

const fileOf = ({ tree }: GitView, site: string) =>
  tree.find(({ mode, path }) => path === `${site}.yaml` && mode.startsWith('100'));

/**
 * The manifest text that is in force for a site: that of its file if it is valid, else the newest valid version on the
 * branch; `null` if there is none.
 */
export async function textInForce(
  repository: Repository,
  view: GitView,
  site: string,
): Promise<string | null> {
  const path = `${site}.yaml`;
  const isValid = (text: string | null): text is string =>
    text !== null && text.length <= 262_144 && parseManifest(Buffer.from(text, 'latin1').toString(), path).ok;
  const file = fileOf(view, site);
  const newest = file === undefined ? null : await repository.text(file.id);
  if (isValid(newest)) return newest;
  const log = await repository.git([
    'log',
    '--first-parent',
    `--max-count=${MAX_VERSIONS}`,
    '--format=%H',
    view.head,
    '--',
    `:(literal)${path}`,
  ]);
  for (const revision of log.split('\n').filter(Boolean)) {
    const entry = (await repository.tree(revision)).find(
      (one) => one.path === path && one.mode.startsWith('100'),
    );
    const text = entry === undefined ? null : await repository.text(entry.id);
    if (isValid(text)) return text;
  }
  return null;
}

/**
 * Whether git still has a site in any form: as a file, link, submodule or folder of its name, also in a folder, in
 * other case or with another ending; or as the same file under a name that the tree did not have before. A site whose
 * text in force says that it is to be removed doesn't count.
 */
export async function isInGit(
  repository: Repository,
  { before, after, site }: { readonly before: GitView; readonly after: GitView; readonly site: string },
): Promise<boolean> {
  const named = after.tree.some(({ path }) => isNamedBy(path, site));
  const old = fileOf(before, site);
  const known = new Set(before.tree.map(({ path }) => path));
  const isMoved =
    old !== undefined &&
    after.tree.some(({ id, path, mode }) => id === old.id && mode.startsWith('100') && !known.has(path));
  if (!named && !isMoved) return false;
  const text = await textInForce(repository, after, site);
  return text === null || !saysRemoval(text, 'home');
}
