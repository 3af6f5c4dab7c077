import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';

const HOOKS = [
  'reference-transaction',
  'post-update',
  'pre-receive',
  'update',
  'post-receive',
  'pre-auto-gc',
];
const author = { name: 'Ada', email: 'ada@example.test' };
const edit = { site: 'acme', edit: () => 'x: 1\n', subject: 'Add acme', author, trailers: {} };

let home: string;
let marks: string;
let bare: string;
let number = 0;
/** A hook leaves a file when it runs. */
async function writeHooks(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const script = `#!/bin/sh\ntouch '${marks}'/$(basename "$0")\n`;
  for (const name of HOOKS) await writeFile(join(folder, name), script, { mode: 0o755 });
}
const COMMAND = 'alternate-refs';
const hasRun = () => [...HOOKS, COMMAND].filter((name) => existsSync(join(marks, name)));
/** git without the hostile settings. */
const plain = (...args: string[]) =>
  execFileSync('git', args, {
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
    encoding: 'utf8',
  });
const open = (url: string, options: { gitConfig?: string } = {}) =>
  openSitesRepo({ url, cacheDir: join(home, `cache-${number}`), ...options });

const before = { ...process.env };
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-git-'));
  marks = join(home, 'marks');
  await mkdir(marks);
  await writeHooks(join(home, 'hooks'));
  await writeHooks(join(home, 'template', 'hooks'));
  const settings = [
    '[safe]\nbareRepository = explicit',
    `[core]\nhooksPath = ${join(home, 'hooks')}\nlogAllRefUpdates = always`,
    `[init]\ntemplateDir = ${join(home, 'template')}\ndefaultBranch = other`,
    '[protocol]\nallow = never',
    '[url "https://elsewhere.example/"]\ninsteadOf = file:',
  ];
  await writeFile(join(home, '.gitconfig'), settings.join('\n'));
  // The process that starts git inherits these. A hook of others that calls Tagyard has the second one.
  Object.assign(process.env, {
    HOME: home,
    GIT_DIR: join(home, 'elsewhere'),
    GIT_TEMPLATE_DIR: join(home, 'template'),
  });
});
afterAll(async () => {
  process.env = before;
  await rm(home, { recursive: true, force: true });
});
beforeEach(async () => {
  number += 1;
  bare = join(home, `sites-${number}.git`);
  await rm(marks, { recursive: true });
  await mkdir(marks);
});

describe.each([
  ['local', (at: string) => at],
  ['remote', (at: string) => pathToFileURL(at).href],
])('a %s sites repository', (_kind, urlOf) => {
  test('is read and written whatever the settings of the user and the environment are', async () => {
    await initSitesRepo(bare);
    expect(existsSync(join(bare, 'hooks', 'update'))).toBe(false);
    const repo = await open(urlOf(bare));
    const { revision } = await repo.commit(edit);
    expect(await repo.head()).toBe(revision);
    expect(plain('-C', bare, 'rev-parse', 'main').trim()).toBe(revision);
    expect(hasRun()).toEqual([]);
  });

  test('can use SHA-256', async () => {
    plain('init', '-q', '--bare', '--initial-branch=main', '--object-format=sha256', bare);
    const repo = await open(urlOf(bare));
    const { revision } = await repo.commit(edit);
    expect(revision).toMatch(/^[0-9a-f]{64}$/);
    const next = await open(urlOf(bare));
    expect(await next.head()).toBe(revision);
    expect(await next.read(revision)).toMatchObject([{ site: 'acme', text: 'x: 1\n' }]);
    expect(await next.history('acme')).toMatchObject([{ revision }]);
  });
});

test('a remote with SHA-256 is adopted while others fetch it', async () => {
  plain('init', '-q', '--bare', '--initial-branch=main', '--object-format=sha256', bare);
  const repo = await open(pathToFileURL(bare).href);
  let isCommitted = false;
  const reader = async () => {
    while (!isCommitted) await repo.fetched();
  };
  const committed = repo.commit(edit).finally(() => {
    isCommitted = true;
  });
  await Promise.all([committed, ...Array.from({ length: 4 }, reader)]);
  expect((await committed).revision).toBe(await repo.fetched());
});

test('no hook of a local sites repository runs', async () => {
  await initSitesRepo(bare);
  await writeHooks(join(bare, 'hooks'));
  await (await open(bare)).commit(edit);
  plain('-C', bare, 'config', 'core.hooksPath', join(home, 'hooks'));
  const repo = await open(bare);
  await repo.commit({ ...edit, edit: () => 'x: 2\n' });
  expect(hasRun()).toEqual([]);
  // The hooks would run: an unprotected push runs them.
  const clone = join(home, `clone-${number}`);
  plain('clone', '-q', bare, clone);
  plain(
    '-C',
    clone,
    '-c',
    'user.name=A',
    '-c',
    'user.email=a@example.test',
    'commit',
    '-qm',
    'x',
    '--allow-empty',
  );
  plain('-C', clone, 'push', '-q');
  expect(hasRun()).toContain('post-receive');
});

describe('a remote on this machine', () => {
  test.each<[kind: string, open: () => Promise<SitesRepo>]>([
    ['behind a file: URL', () => open(pathToFileURL(bare).href)],
    [
      'to which the operator’s settings lead another URL',
      async () => {
        const url = `https://sites.example/${number}.git`;
        const gitConfig = join(home, `leads-${number}.gitconfig`);
        await writeFile(gitConfig, `[url "${bare}"]\ninsteadOf = ${url}`);
        return open(url, { gitConfig });
      },
    ],
  ])('%s runs no program of its own for a fetch, a push or a listing', async (_kind, openIt) => {
    await initSitesRepo(bare);
    await writeHooks(join(bare, 'hooks'));
    await offerCommand();
    await use(await openIt());
    expect(hasRun()).toEqual([]);
    plain('-C', bare, 'config', 'core.hooksPath', join(home, 'hooks'));
    await use(await openIt());
    expect(hasRun()).toEqual([]);
    // They would run: an unprotected push runs them.
    const clone = join(home, `clone-${number}`);
    plain('clone', '-q', bare, clone);
    plain('-C', clone, 'push', '-q', 'origin', 'HEAD:refs/heads/unprotected');
    expect(hasRun()).toEqual(expect.arrayContaining(['pre-receive', 'update', 'post-receive', COMMAND]));
  });

  /** A command of the repository, which a push to it runs if it borrows objects of another one. */
  async function offerCommand(): Promise<void> {
    const lender = join(home, `lender-${number}.git`);
    await initSitesRepo(lender);
    await (await openSitesRepo({ url: lender, cacheDir: join(home, `cache-lender-${number}`) })).commit(edit);
    await writeFile(join(bare, 'objects', 'info', 'alternates'), `${join(lender, 'objects')}\n`);
    plain('-C', bare, 'config', 'core.alternateRefsCommand', `touch '${join(marks, COMMAND)}'; true`);
  }
});

test('the hooks of a remote on another machine run', async () => {
  await initSitesRepo(bare);
  await writeHooks(join(bare, 'hooks'));
  const ssh = join(home, 'ssh');
  // The other machine is this one.
  await writeFile(ssh, `#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n`, { mode: 0o755 });
  const gitConfig = join(home, 'ssh.gitconfig');
  await writeFile(gitConfig, `[core]\nsshCommand = ${ssh}`);
  await use(await open(`ssh://git.example${bare}`, { gitConfig }));
  expect(hasRun()).toEqual(expect.arrayContaining(['pre-receive', 'update', 'post-receive']));
});

/** Fetches, pushes a commit and a lease, and lists the remote's references. */
async function use(repo: SitesRepo): Promise<void> {
  const head = await repo.head();
  await repo.commit({ ...edit, edit: () => `x: ${head}\n` });
  await repo.hostLease({ host: 'tag-1', holder: 'one', takeoverTerm: undefined }).hold();
  expect(plain('-C', bare, 'for-each-ref', '--format=%(refname)')).toContain('refs/tagyard/hosts/tag-1');
}

test('a mirror is kept if the remote’s object format changes, and the error says what to do', async () => {
  await initSitesRepo(bare);
  const url = pathToFileURL(bare).href;
  const repo = await open(url);
  const { revision } = await repo.commit(edit);
  await rm(bare, { recursive: true });
  plain('init', '-q', '--bare', '--initial-branch=main', '--object-format=sha256', bare);
  await (await open(bare)).commit(edit);
  await expect(repo.head()).rejects.toThrow(
    /now uses sha256, its mirror sha1: stop this process and delete .*sites\.git/,
  );
  expect(await repo.fetched()).toBe(revision);
});

test('a file of the operator’s own settings is used, and must exist', async () => {
  await initSitesRepo(bare);
  const gitConfig = join(home, 'own.gitconfig');
  await expect(open(bare, { gitConfig })).rejects.toThrow(
    /SITES_REPO_GIT_CONFIG: .*own\.gitconfig can’t be read/,
  );
  const url = `https://sites.example/${number}.git`;
  await writeFile(
    gitConfig,
    `[url "${pathToFileURL(bare).href}"]\ninsteadOf = ${url}\n[safe]\nbareRepository = explicit`,
  );
  const repo = await open(url, { gitConfig });
  const { revision } = await repo.commit(edit);
  expect(plain('-C', bare, 'rev-parse', 'main').trim()).toBe(revision);
});
