import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';

let dir: string;
let bare: string;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-proposals-'));
  bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const git = (args: readonly string[], input = '') =>
  execFileSync('git', ['-C', bare, '-c', 'user.name=Op', '-c', 'user.email=op@a.test', ...args], {
    input,
    encoding: 'utf8',
  }).trim();

/** Moves a ref to a new commit, as a forge does it for a proposal. */
function propose(ref: string, text: string): string {
  const blob = git(['hash-object', '-w', '--stdin'], text);
  const commit = git(['commit-tree', git(['mktree'], `100644 blob ${blob}\tacme.yaml\n`), '-m', text]);
  git(['update-ref', ref, commit]);
  return commit;
}

test.each(['refs/pull/12/head', 'refs/pull/12/merge', 'refs/merge-requests/3/head'])(
  '%s is fetched when it is asked for, and again when it has moved',
  async (ref) => {
    propose('refs/heads/main', 'x: 0\n');
    const first = propose(ref, 'x: 1\n');
    const repo = await openSitesRepo({ url: pathToFileURL(bare).href, cacheDir: join(dir, 'mirror') });
    expect(await repo.resolve(ref)).toBe(first);
    expect((await repo.read(first)).map(({ text }) => text)).toEqual(['x: 1\n']);
    const moved = propose(ref, 'x: 2\n');
    expect(await repo.resolve(ref)).toBe(moved);
    expect(await repo.head()).toBe(git(['rev-parse', 'main']));
  },
);

test.each(['refs/pull/404/head', 'refs/pull/1/../../heads/main', 'refs/secret/1', '--upload-pack=x'])(
  '%s, which is none, is no commit',
  async (ref) => {
    propose('refs/heads/main', 'x: 0\n');
    propose('refs/secret/1', 'x: 1\n');
    const repo = await openSitesRepo({ url: pathToFileURL(bare).href, cacheDir: join(dir, 'mirror') });
    expect(await repo.resolve(ref)).toBeNull();
  },
);
