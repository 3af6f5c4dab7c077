import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { initSitesRepo } from '../../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../../sites/repo/sites-repo.ts';

let dir: string;
let bare: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-path-commits-'));
  bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const open = (cache: string) => openSitesRepo({ url: bare, cacheDir: join(dir, cache) });

/** Commits on a branch by fast-import: each changes files, or deletes them (`null`). */
function commits(
  branch: string,
  from: string | null,
  changes: readonly Record<string, string | null>[],
): void {
  const blocks = changes.map((files, index) => {
    const lines = Object.entries(files).map(([path, text]) =>
      text === null
        ? `D ${JSON.stringify(path)}`
        : `M 100644 inline ${JSON.stringify(path)}\ndata ${Buffer.byteLength(text)}\n${text}`,
    );
    const parent = index === 0 && from !== null ? `from ${from}\n` : '';
    return `commit refs/heads/${branch}\ncommitter Ada <ada@example.test> ${1_700_000_000 + index} +0000\ndata 6\nChange\n${parent}${lines.map((line) => `${line}\n`).join('')}\n`;
  });
  const args = ['-C', bare, 'fast-import', '--quiet', '--done', '--force'];
  execFileSync('git', args, { input: `${blocks.join('')}done\n` });
}
const git = (...args: string[]) =>
  execFileSync('git', ['-C', bare, '-c', 'user.name=A', '-c', 'user.email=a@example.test', ...args], {
    encoding: 'utf8',
  }).trim();

/** Compares each site's history with git's own: as a whole, and in pages if it has more than two commits. */
async function expectSame(indexed: SitesRepo, sites: readonly string[]): Promise<void> {
  const plain = await open('plain');
  for (const site of sites) {
    const whole = await plain.history(site, 100);
    expect(await indexed.history(site, 100)).toEqual(whole);
    for (const { revision } of whole.length > 2 ? whole : []) {
      expect(await indexed.history(site, 2, revision)).toEqual(await plain.history(site, 2, revision));
    }
  }
}

const CHANGES = [
  { 'a.yaml': '1', 'c.yaml': '1', 'clients/x.yaml': '1' },
  { 'b.yaml': '1', 'ä\n b.yaml': '1', '\nz.yaml': '1' },
  {},
  { 'a.yaml': '2' },
  { 'b.yaml': null, 'moved.yaml': '1' },
  { 'a.yaml': '3', 'b.yaml': '4' },
];
const SITES = ['a', 'b', 'c', 'moved', 'clients/x', 'ä\n b', '\nz', 'none'];

test('a site’s history is git’s own, also after later commits and after a restart', async () => {
  commits('main', null, CHANGES);
  const repo = await open('one');
  await repo.indexPaths();
  await expectSame(repo, SITES);
  commits('main', 'refs/heads/main^0', CHANGES.slice(3));
  await expectSame(repo, SITES);
  const later = await open('one');
  await later.indexPaths();
  await expectSame(later, SITES);
});

test('a site’s history is git’s own after merges and after the branch was rewritten', async () => {
  commits('main', null, CHANGES);
  commits('side', 'refs/heads/main~2', [{ 'c.yaml': '7' }, { 'a.yaml': '9' }, { 'a.yaml': '2' }]);
  const repo = await open('one');
  await repo.indexPaths();
  const tree = git('rev-parse', 'main^{tree}');
  const merge = git('commit-tree', tree, '-p', 'main', '-p', 'side', '-m', 'Merge');
  git('update-ref', 'refs/heads/main', merge);
  await expectSame(repo, SITES);
  commits('main', 'refs/heads/main^0', [{ 'a.yaml': '11' }, { 'a.yaml': '12' }]);
  await expectSame(repo, SITES);
  git('update-ref', 'refs/heads/main', 'side');
  await expectSame(repo, SITES);
});

test('the path index needs no second walk through a long history, and replaces a damaged file', async () => {
  commits(
    'main',
    null,
    Array.from({ length: 1_100 }, (_, index) => ({ [`s${index % 7}.yaml`]: `${index}` })),
  );
  await (await open('one')).indexPaths();
  const file = join(dir, 'one', 'path-commits.json');
  const kept = JSON.parse(await readFile(file, 'utf8'));
  expect([kept.tip, kept.commits['s3.yaml'].length]).toEqual([git('rev-parse', 'main'), 157]);
  // A start reads the file instead of git, so it doesn't find what the file lacks.
  await writeFile(file, JSON.stringify({ ...kept, commits: {} }));
  const again = await open('one');
  await again.indexPaths();
  expect(await again.history('s3')).toEqual([]);
  await writeFile(file, '{"tip":');
  const repaired = await open('one');
  await repaired.indexPaths();
  await expectSame(repaired, ['s3']);
});
