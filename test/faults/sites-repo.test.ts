import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../sites/repo/sites-repo.ts';
import { eventually } from '../support/eventually.ts';
import { pathWithHooks } from '../support/path-with-hooks.ts';

let dir: string;
let bare: string;
const author = { name: 'Ada', email: 'ada@example.test' };
const edit = (site: string, change: (current: string | null) => string | null) => ({
  site,
  edit: change,
  subject: `Change ${site}`,
  author,
  trailers: { Site: site },
});
const put = (repo: SitesRepo, site: string, text: string) => repo.commit(edit(site, () => text));

const env = {
  ...process.env,
  GIT_AUTHOR_NAME: 'Op',
  GIT_AUTHOR_EMAIL: 'op@example.test',
  GIT_COMMITTER_NAME: 'Op',
  GIT_COMMITTER_EMAIL: 'op@example.test',
};
const gitIn = (at: string, args: readonly string[], input = '') =>
  execFileSync('git', ['-C', at, ...args], { encoding: 'utf8', input, env, stdio: 'pipe' }).trim();
const git = (...args: string[]) => gitIn(bare, args);

/** An operator's clone, with the branch checked out. */
function clone(): (...args: string[]) => string {
  const at = join(dir, `clone-${Math.random()}`);
  git('clone', '--quiet', bare, at);
  return (...args) => gitIn(at, args);
}

/** A commit of exactly these entries of `mktree`, on top of `parents`. */
function commitTree(entries: readonly string[], parents: readonly string[] = []): string {
  const tree = gitIn(bare, ['mktree'], entries.map((entry) => `${entry}\n`).join(''));
  return git('commit-tree', tree, '-m', 'By hand', ...parents.flatMap((parent) => ['-p', parent]));
}
const blobOf = (text: string) => gitIn(bare, ['hash-object', '-w', '--stdin'], text);
const file = (name: string, text: string) => `100644 blob ${blobOf(text)}\t${name}`;

/** The path of an object that is in no pack. */
function looseIn(repository: string, id: string): string {
  return join(repository, 'objects', id.slice(0, 2), id.slice(2));
}
const looseOf = (object: string) => looseIn(bare, git('rev-parse', object));
function damage(path: string, change: (bytes: Buffer) => Buffer): void {
  chmodSync(path, 0o644);
  writeFileSync(path, change(readFileSync(path)));
}

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-git-'));
  bare = join(dir, 'sites.git');
  await initSitesRepo(bare);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe.each([
  ['local', (at: string) => at],
  ['remote', (at: string) => pathToFileURL(at).href],
])('a %s sites repository', (_kind, urlOf) => {
  const open = (): Promise<SitesRepo> =>
    openSitesRepo({ url: urlOf(bare), cacheDir: join(dir, 'cache'), pollSeconds: 0.05 });
  const sitesOf = async (repo: SitesRepo) =>
    (await repo.read((await repo.head()) ?? '')).map(({ site }) => site).sort();

  test('follows a force-push, and does not take the old history for an ancestor of the new one', async () => {
    const repo = await open();
    await put(repo, 'acme', 'x: 1\n');
    const { revision } = await put(repo, 'beta', 'x: 1\n');
    const rewritten = commitTree([file('gamma.yaml', 'x: 1\n')]);
    git('update-ref', 'refs/heads/main', rewritten);
    expect(await repo.head()).toBe(rewritten);
    expect(await sitesOf(repo)).toEqual(['gamma']);
    expect(await repo.isAncestor(revision, rewritten)).toBe(false);
    // The same after the old history has been pruned.
    git('reflog', 'expire', '--expire=now', '--all');
    git('gc', '--quiet', '--prune=now');
    expect(await repo.isAncestor(revision, rewritten)).toBe(false);
    await put(repo, 'delta', 'x: 1\n');
    expect(await sitesOf(repo)).toEqual(['delta', 'gamma']);
  });

  test('reads an empty tree as no sites, and a first file can be committed on top', async () => {
    git('update-ref', 'refs/heads/main', commitTree([]));
    const repo = await open();
    expect(await sitesOf(repo)).toEqual([]);
    await put(repo, 'acme', 'x: 1\n');
    expect(await sitesOf(repo)).toEqual(['acme']);
  });

  test('can’t read a deleted branch, and never creates it again with one site only', async () => {
    const repo = await open();
    const { revision } = await put(repo, 'acme', 'x: 1\n');
    git('update-ref', '-d', 'refs/heads/main');
    await expect(repo.head()).rejects.toThrow('the branch main of the sites repository is gone');
    await expect(put(repo, 'beta', 'x: 1\n')).rejects.toThrow(SitesRepoError);
    // A process that starts now and remembers the branch doesn't create it either.
    const url = urlOf(bare);
    const again = await openSitesRepo({ url, cacheDir: join(dir, 'again'), initialized: true });
    await expect(put(again, 'beta', 'x: 1\n')).rejects.toThrow(SitesRepoError);
    expect(git('for-each-ref')).toBe('');
    git('update-ref', 'refs/heads/main', revision);
    await put(repo, 'beta', 'x: 1\n');
    expect(await sitesOf(repo)).toEqual(['acme', 'beta']);
  });

  test('creates no branch in a repository that has other branches', async () => {
    git('update-ref', 'refs/heads/production', commitTree([file('acme.yaml', 'x: 1\n')]));
    const repo = await open();
    await expect(put(repo, 'beta', 'x: 1\n')).rejects.toThrow(/no branch main/);
    expect(git('for-each-ref', '--format=%(refname)')).toBe('refs/heads/production');
  });

  test('reads through merges: contents, history, and who came first', async () => {
    const repo = await open();
    await put(repo, 'acme', 'x: 1\n');
    const op = clone();
    op('checkout', '-q', '-b', 'side');
    writeFileSync(join(op('rev-parse', '--show-toplevel'), 'side.yaml'), 'x: 1\n');
    op('add', '.');
    op('commit', '-q', '-m', 'On the side', '--date=@1000 +0000');
    const side = op('rev-parse', 'HEAD');
    await put(repo, 'acme', 'x: 2\n');
    op('fetch', '-q');
    op('checkout', '-q', '-B', 'main', 'origin/main');
    op('merge', '-q', '--no-ff', '-m', 'Merge', 'side');
    op('push', '-q', 'origin', 'HEAD:main');
    const merge = (await repo.head()) ?? '';
    expect(merge).toBe(op('rev-parse', 'HEAD'));
    expect(await sitesOf(repo)).toEqual(['acme', 'side']);
    expect((await repo.history('side')).map(({ revision }) => revision)).toEqual([side]);
    expect(await repo.history('acme')).toHaveLength(2);
    expect([...(await repo.versions('acme', { revision: merge })).values()]).toEqual(['x: 2\n', 'x: 1\n']);
    expect([...(await repo.versions('side', { revision: merge }))]).toEqual(
      [merge, side].map((revision) => [revision, 'x: 1\n']),
    );
    expect(await repo.isAncestor(side, merge)).toBe(true);
    const ages = await repo.ages(['acme', 'side'], merge, async () => true);
    expect(ages.get('acme')?.[0]).toBeLessThan(ages.get('side')?.[0] ?? Number.NaN);
  });

  test('reads plain files at the root only: no links, modules, folders or other names', async () => {
    const blob = blobOf('elsewhere.yaml');
    const commit = commitTree([file('module.yaml', 'x: 1\n')]);
    const tree = git('rev-parse', `${commit}^{tree}`);
    const entries = [
      file('acme.yaml', 'x: 1\n'),
      `100755 blob ${blobOf('x: 2\n')}\trunnable.yaml`,
      `120000 blob ${blob}\tlink.yaml`,
      `160000 commit ${commit}\tmodule.yaml`,
      `040000 tree ${tree}\tfolder`,
      `040000 tree ${tree}\tfolder.yaml`,
      file('notes.yml', 'x: 1\n'),
      file('.yaml', 'x: 1\n'),
    ];
    git('update-ref', 'refs/heads/main', commitTree(entries));
    const repo = await open();
    expect(await sitesOf(repo)).toEqual(['acme', 'runnable']);
    const head = (await repo.head()) ?? '';
    for (const site of ['link', 'module', 'folder', 'folder/module']) {
      expect(await repo.readSite(head, site)).toBeNull();
    }
  });

  test('reads a file’s name literally, also where git would read it as a pattern', async () => {
    const entries = ['acme.yaml', '*.yaml', ':(top)x.yaml', '[ab].yaml'].map((name) => file(name, 'x: 1\n'));
    const first = commitTree(entries);
    const second = commitTree([...entries.slice(1), file('acme.yaml', 'x: 2\n')], [first]);
    git('update-ref', 'refs/heads/main', second);
    const repo = await open();
    expect(await repo.head()).toBe(second);
    for (const site of ['*', ':(top)x', '[ab]']) {
      expect(await repo.readSite(second, site)).toMatchObject({ site, text: 'x: 1\n' });
      expect((await repo.history(site)).map(({ revision }) => revision)).toEqual([first]);
    }
  });

  test('reads all of 10,000 sites, and writes one of them', async () => {
    const names = Array.from({ length: 10_000 }, (_, at) => `site-${String(at).padStart(5, '0')}`);
    const files = names.map((name) => `M 100644 inline ${name}.yaml\ndata <<END\nname: ${name}\nEND\n`);
    const head = 'commit refs/heads/main\ncommitter Op <op@example.test> 1 +0000\ndata 1\nx\n';
    gitIn(bare, ['fast-import', '--quiet', '--done'], `${head}${files.join('')}\ndone\n`);
    const repo = await open();
    const found = await repo.read((await repo.head()) ?? '');
    expect(found.map(({ site }) => site)).toEqual(names);
    expect(found.every(({ site, text }) => text === `name: ${site}\n`)).toBe(true);
    const { revision } = await put(repo, 'site-05000', 'name: other\n');
    expect(git('diff', '--name-only', `${revision}^`, revision)).toBe('site-05000.yaml');
    expect(await repo.read(revision)).toHaveLength(10_000);
  });

  test('that can’t be read is an error, never an empty repository', async () => {
    await put(await open(), 'acme', 'its own: 1\n');
    const { revision } = await put(await open(), 'beta', 'x: 1\n');
    const breakings: Record<string, () => void> = {
      'a cut file': () => damage(looseOf('main:acme.yaml'), (bytes) => bytes.subarray(0, 4)),
      'a lost file': () => rmSync(looseOf('main:acme.yaml')),
      'a lost tree': () => rmSync(looseOf('main^{tree}')),
      'a lost commit': () => rmSync(looseOf('main')),
      'a damaged pack': () => {
        git('gc', '--quiet');
        const [pack = ''] = globSync(join(bare, 'objects/pack/*.pack'));
        damage(pack, (bytes) => bytes.fill(0xff, 20));
      },
      'an empty reference': () => writeFileSync(join(bare, 'refs/heads/main'), ''),
      'no repository at all': () => writeFileSync(join(bare, 'HEAD'), 'garbage'),
    };
    const whole = join(dir, 'whole');
    execFileSync('cp', ['-a', bare, whole]);
    for (const [name, breakIt] of Object.entries(breakings)) {
      await rm(bare, { recursive: true });
      await rm(join(dir, 'cache'), { recursive: true, force: true });
      execFileSync('cp', ['-a', whole, bare]);
      const repo = await open();
      breakIt();
      const reading = (async () => await repo.read((await repo.head()) ?? 'none'))();
      await expect(reading, name).rejects.toThrow(SitesRepoError);
      await expect(
        put(repo, 'gamma', 'x: 1\n').then(() => sitesOf(repo)),
        name,
      ).rejects.toThrow();
    }
    expect(gitIn(whole, ['rev-parse', 'main'])).toBe(revision);
  });
});

test('a local sites repository that is deleted is named as gone, and used again once it is back', async () => {
  const repo = await openSitesRepo({ url: bare, cacheDir: dir });
  const { revision } = await put(repo, 'acme', 'x: 1\n');
  await rename(bare, `${bare}.away`);
  const gone = new RegExp(`the sites repository ${bare} is gone.*put it back`);
  await expect(repo.head()).rejects.toThrow(gone);
  await expect(put(repo, 'acme', 'x: 2\n')).rejects.toThrow(gone);
  expect(existsSync(bare)).toBe(false);
  await rename(`${bare}.away`, bare);
  expect(await repo.head()).toBe(revision);
  await put(repo, 'acme', 'x: 2\n');
});

test('an unreadable reference is an error, not a deleted branch', async () => {
  const repo = await openSitesRepo({ url: bare, cacheDir: dir });
  await put(repo, 'acme', 'x: 1\n');
  writeFileSync(join(bare, 'refs/heads/main'), '');
  await expect(repo.head()).rejects.toThrow(/branch main .* can't be read/);
});

describe('a remote', () => {
  const { PATH } = process.env;
  beforeEach(() => {
    process.env.PATH = pathWithHooks(dir);
  });
  afterEach(() => {
    process.env.PATH = PATH;
  });
  const open = (name = 'cache'): Promise<SitesRepo> =>
    openSitesRepo({ url: pathToFileURL(bare).href, cacheDir: join(dir, name), pollSeconds: 0.05 });

  /** Installs a hook in the remote, written for Node. */
  async function hook(name: string, script: string): Promise<void> {
    await mkdir(join(bare, 'hooks'), { recursive: true });
    await writeFile(join(bare, 'hooks', name), `#!${process.execPath}\n${script}\n`, { mode: 0o755 });
  }

  test('that is unreachable is retried: what was fetched stays readable, and new commits arrive when it is back', async () => {
    const repo = await open();
    const { revision } = await put(repo, 'acme', 'x: 1\n');
    const stop = new AbortController();
    const seen: (string | null)[] = [];
    const following = (async () => {
      for await (const each of repo.changes(stop.signal, () => undefined)) seen.push(each);
    })();
    await eventually(() => expect(seen).toEqual([revision]));
    await rename(bare, `${bare}.away`);
    await eventually(() => expect(seen).toEqual([revision, null]));
    await expect(repo.head()).rejects.toThrow(SitesRepoError);
    await expect(put(repo, 'beta', 'x: 1\n')).rejects.toThrow(SitesRepoError);
    expect((await repo.read(revision)).map(({ site }) => site)).toEqual(['acme']);
    await rename(`${bare}.away`, bare);
    expect(await repo.head()).toBe(revision);
    const { revision: next } = await put(await open('other'), 'beta', 'x: 1\n');
    await eventually(() => expect(seen.at(-1)).toBe(next));
    stop.abort();
    await following;
  });

  test('that another client pushes to at the same moment loses neither commit', async () => {
    const repo = await open();
    await put(repo, 'acme', 'x: 1\n');
    const rival = commitTree(
      [file('acme.yaml', 'x: 1\n'), file('beta.yaml', 'x: 1\n')],
      [git('rev-parse', 'main')],
    );
    git('update-ref', 'refs/heads/waiting', rival);
    // Moves the branch between our fetch and our first push, which is rejected.
    await hook(
      'pre-receive',
      `const { execFileSync } = require('node:child_process');
      const { existsSync, writeFileSync } = require('node:fs');
      if (existsSync('rivalled')) process.exit(0);
      writeFileSync('rivalled', '');
      const env = { ...process.env, GIT_QUARANTINE_PATH: undefined };
      delete env.GIT_QUARANTINE_PATH;
      execFileSync('git', ['update-ref', 'refs/heads/main', 'refs/heads/waiting'], { env });`,
    );
    let calls = 0;
    const { revision } = await repo.commit(
      edit('acme', () => {
        calls += 1;
        return 'x: 2\n';
      }),
    );
    expect(calls).toBe(2);
    expect(git('rev-parse', `${revision}^`)).toBe(rival);
    expect(git('rev-parse', 'main')).toBe(revision);
    expect(git('show', 'main:acme.yaml')).toBe('x: 2');
    expect(git('show', 'main:beta.yaml')).toBe('x: 1');
  });

  test('whose answer to a push is lost contains the edit once', async () => {
    const repo = await open();
    await put(repo, 'acme', 'n: 1\n');
    const command = fileURLToPath(new URL('../support/signal-command.ts', import.meta.url));
    await hook(
      'post-receive',
      `const { execFileSync } = require('node:child_process');
      const args = [${JSON.stringify(command)}, '${process.pid}', String(process.ppid), 'SIGKILL'];
      execFileSync(process.execPath, args);`,
    );
    const { revision, changed } = await repo.commit(edit('acme', (current) => `${current}more: 1\n`));
    expect(changed).toBe(true);
    expect(git('rev-parse', 'main')).toBe(revision);
    expect(git('show', 'main:acme.yaml')).toBe('n: 1\nmore: 1');
  });

  test('shows a commit to no reader before its hook has accepted it, and never if it is refused', async () => {
    const repo = await open();
    const { revision } = await put(repo, 'acme', 'x: 1\n');
    await hook(
      'pre-receive',
      `const { existsSync, writeFileSync } = require('node:fs');
      writeFileSync('asked', '');
      while (!existsSync('answer')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      process.exit(1);`,
    );
    const refused = expect(put(repo, 'acme', 'x: 2\n')).rejects.toThrow(SitesRepoError);
    await eventually(() => expect(existsSync(join(bare, 'asked'))).toBe(true));
    // What the mirror holds, and what a fetch answers.
    const seen = async () => [(await repo.history('acme')).map((one) => one.revision), await repo.head()];
    expect(await seen()).toEqual([[revision], revision]);
    writeFileSync(join(bare, 'answer'), '');
    await refused;
    expect(await seen()).toEqual([[revision], revision]);
    rmSync(join(bare, 'hooks', 'pre-receive'));
    const { revision: next } = await put(repo, 'acme', 'x: 3\n');
    expect((await repo.history('acme')).map((one) => one.revision)).toEqual([next, revision]);
  });

  test('that refuses the first commit does not get it with the next one', async () => {
    const repo = await open();
    await hook('pre-receive', 'process.exit(1);');
    await expect(put(repo, 'acme', 'x: 1\n')).rejects.toThrow(SitesRepoError);
    rmSync(join(bare, 'hooks', 'pre-receive'));
    const { revision } = await put(repo, 'beta', 'x: 1\n');
    expect((await repo.read(revision)).map(({ site }) => site)).toEqual(['beta']);
    expect(git('rev-list', '--count', 'main')).toBe('1');
  });

  test('that refuses a push says why, and does not contain the commit', async () => {
    const repo = await open();
    const { revision } = await put(repo, 'acme', 'x: 1\n');
    await hook('pre-receive', "console.error('the branch is frozen'); process.exit(1);");
    await expect(put(repo, 'acme', 'x: 2\n')).rejects.toThrow(/the branch is frozen/);
    expect(await repo.head()).toBe(revision);
    expect(await repo.readSite(revision, 'acme')).toMatchObject({ text: 'x: 1\n' });
  });

  test.each([
    ['a cut file', 'main:acme.yaml', (path: string) => damage(path, () => Buffer.alloc(0))],
    ['a lost file', 'main:acme.yaml', rmSync],
    ['a lost tree', 'main^{tree}', rmSync],
  ])('restores what a mirror has lost: %s', async (_what, object, breakIt) => {
    const { revision } = await put(await open(), 'acme', 'x: 1\n');
    const mirror = join(dir, 'cache', 'sites.git');
    const fresh = await open();
    breakIt(looseIn(mirror, gitIn(mirror, ['rev-parse', object])));
    expect(await fresh.read(revision)).toMatchObject([{ site: 'acme', text: 'x: 1\n' }]);
    expect(await fresh.readSite(revision, 'acme')).toMatchObject({ text: 'x: 1\n' });
  });

  test('that can’t be reached when the mirror lacks an object makes the mirror lose no other', async () => {
    const repo = await open();
    const { revision: older } = await put(repo, 'acme', 'x: 1\n');
    const { revision } = await put(repo, 'beta', 'x: 1 # another\n');
    const mirror = join(dir, 'cache', 'sites.git');
    rmSync(looseIn(mirror, gitIn(mirror, ['rev-parse', 'main:beta.yaml'])));
    await rename(bare, `${bare}.away`);
    const fresh = await openSitesRepo({
      url: pathToFileURL(bare).href,
      cacheDir: join(dir, 'cache'),
      initialized: true,
    });
    await expect(fresh.read(revision)).rejects.toThrow(SitesRepoError);
    expect(await fresh.read(older)).toMatchObject([{ site: 'acme', text: 'x: 1\n' }]);
    await rename(`${bare}.away`, bare);
    expect((await fresh.read(revision)).map(({ site }) => site)).toEqual(['acme', 'beta']);
  });

  test.each([
    ['the mirror', (mirror: string) => rmSync(mirror, { recursive: true })],
    ['the folder of the mirror', (mirror: string) => rmSync(join(mirror, '..'), { recursive: true })],
    ['the mirror’s HEAD', (mirror: string) => rmSync(join(mirror, 'HEAD'))],
  ])('is mirrored again by each use after %s was deleted', async (_what, remove) => {
    const repo = await open();
    const lease = repo.hostLease({ host: 'tag-1', holder: 'me', takeoverTerm: undefined });
    const { revision } = await put(repo, 'acme', 'x: 1\n');
    await lease.hold();
    const holder = git('rev-parse', 'refs/tagyard/hosts/tag-1');
    const uses = {
      head: async () => expect(await repo.head()).toBe(revision),
      history: async () => expect(await repo.history('acme')).toMatchObject([{ revision }]),
      many: async () => {
        const texts = Array.from({ length: 40 }, () => repo.readSite(revision, 'acme'));
        expect(await Promise.all(texts)).toHaveLength(40);
      },
      lease: () => lease.hold(),
      commit: async () => expect(await put(repo, 'beta', 'x: 1\n')).toMatchObject({ changed: true }),
    };
    for (const use of Object.values(uses)) {
      remove(join(dir, 'cache', 'sites.git'));
      await use();
    }
    expect(git('rev-parse', 'refs/tagyard/hosts/tag-1')).toBe(holder);
    expect(git('rev-parse', 'main^')).toBe(revision);
  });

  test('that can’t be reached when the mirror is deleted is mirrored again once it is back', async () => {
    const repo = await open();
    const { revision } = await put(repo, 'acme', 'x: 1\n');
    await rename(bare, `${bare}.away`);
    rmSync(join(dir, 'cache', 'sites.git'), { recursive: true });
    await expect(repo.head()).rejects.toThrow(SitesRepoError);
    await expect(repo.head()).rejects.toThrow(SitesRepoError);
    await rename(`${bare}.away`, bare);
    expect(await repo.head()).toBe(revision);
  });

  test('is mirrored again where the mirror is incomplete, or is a mirror of another remote', async () => {
    await put(await open(), 'acme', 'x: 1\n');
    gitIn(join(dir, 'cache', 'sites.git'), ['config', '--unset', 'remote.origin.url']);
    const repo = await open();
    expect((await repo.read((await repo.head()) ?? '')).map(({ site }) => site)).toEqual(['acme']);

    bare = join(dir, 'moved.git');
    await initSitesRepo(bare);
    git('update-ref', 'refs/heads/main', commitTree([file('beta.yaml', 'x: 1\n')]));
    const moved = await open();
    expect((await moved.read((await moved.head()) ?? '')).map(({ site }) => site)).toEqual(['beta']);
  });
});
