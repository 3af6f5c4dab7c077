import { execFileSync } from 'node:child_process';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { formatManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import type { Stage } from './stage.ts';

/** The state before the accident: the manifests by site, and the branch's newest commit. */
export interface Whole {
  readonly on: Stage;
  readonly manifests: Readonly<Record<string, ManifestInput>>;
  readonly tip: string;
}

/** An accident after which all or most sites seem to be removed, though none of them should be. */
interface Accident {
  readonly name: string;
  happen(whole: Whole): Promise<void> | void;
  /** The daemon's message: in the conditions of its sites, or as its last error. */
  readonly says: RegExp;
  repair(whole: Whole): Promise<void> | void;
}

const ENV = {
  ...process.env,
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@x',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@x',
};
const git = ({ on }: Whole, args: readonly string[], input = '') =>
  execFileSync('git', ['--git-dir', on.sitesRepo, ...args], {
    env: ENV,
    encoding: 'utf8',
    input,
    stdio: 'pipe',
  }).trim();
/** Replaces the branch by an unrelated commit, whose tree is what `mktree` reads. */
function replaceBy(whole: Whole, tree: string): void {
  const commit = git(whole, ['commit-tree', git(whole, ['mktree'], tree), '-m', 'x']);
  git(whole, ['update-ref', 'refs/heads/main', commit]);
}
const putBack = (whole: Whole) => void git(whole, ['update-ref', 'refs/heads/main', whole.tip]);
const pushAll = async ({ on, manifests }: Whole, text: (manifest: ManifestInput) => string | null) =>
  void (await on.push(
    Object.fromEntries(Object.entries(manifests).map(([site, manifest]) => [site, text(manifest)])),
  ));
const restore = (whole: Whole) => pushAll(whole, formatManifest);

export const ACCIDENTS: readonly Accident[] = [
  {
    name: 'all files are deleted in a commit',
    happen: (whole) => pushAll(whole, () => null),
    says: /has no site of this host/,
    repair: restore,
  },
  {
    name: 'the branch is emptied by a forced push',
    happen: (whole) => replaceBy(whole, ''),
    says: /has no site of this host/,
    repair: putBack,
  },
  {
    name: 'the branch is deleted',
    happen: (whole) => void git(whole, ['update-ref', '-d', 'refs/heads/main']),
    says: /SourceUnavailable/,
    repair: putBack,
  },
  {
    name: 'the repository can’t be read',
    happen: ({ on }) => renameSync(join(on.sitesRepo, 'objects'), join(on.dir, 'objects')),
    says: /git|repository/,
    repair: ({ on }) => renameSync(join(on.dir, 'objects'), join(on.sitesRepo, 'objects')),
  },
  {
    name: 'every manifest is invalid',
    happen: (whole) => pushAll(whole, (manifest) => formatManifest(manifest).replace('ports:', 'prots:')),
    says: /unknown key/,
    repair: restore,
  },
  {
    name: 'another branch is pushed over main',
    happen: (whole) => replaceBy(whole, `${git(whole, ['ls-tree', whole.tip, '--', 'site-3.yaml'])}\n`),
    says: /vanished|rewritten/,
    repair: putBack,
  },
];
