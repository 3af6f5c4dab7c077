import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GitError } from '../../../sites/repo/git/git.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';
import { withoutStaleLocks } from '../../../sites/repo/stale-lock.ts';
import { describeWith } from '../../support/components.ts';

let dir: string;
let bare: string;
let notices: string[];
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-lock-'));
  bare = join(dir, 'sites.git');
  notices = [];
  await initSitesRepo(bare);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const put = (repo: SitesRepo, text: string) =>
  repo.commit({
    site: 'acme',
    edit: () => text,
    subject: 'Change acme',
    author: { name: 'Ada', email: 'ada@example.test' },
    trailers: {},
  });

/** A lock of a process that crashed a minute ago. */
function staleLock(path: string): void {
  writeFileSync(path, '');
  const at = Date.now() / 1000 - 60;
  utimesSync(path, at, at);
}

describe.each([
  ['local', (at: string) => at, () => bare],
  ['remote', (at: string) => pathToFileURL(at).href, () => join(dir, 'cache', 'sites.git')],
])('a %s repository with a lock that no process holds', (_kind, urlOf, own) => {
  const open = () =>
    openSitesRepo({
      url: urlOf(bare),
      cacheDir: join(dir, 'cache'),
      onNotice: (message) => notices.push(message),
    });

  test.each(['config.lock', 'HEAD.lock', 'packed-refs.lock', 'refs/heads/main.lock'])(
    '%s: the repository opens, reads and commits, and names a lock that it removes',
    async (name) => {
      await put(await open(), 'x: 1\n');
      const lock = join(own(), name);
      staleLock(lock);
      const repo = await open();
      const { revision } = await put(repo, 'x: 2\n');
      expect(await repo.head()).toBe(revision);
      expect((await repo.readSite(revision, 'acme'))?.text).toBe('x: 2\n');
      await repo.indexHistory();
      // Some of these locks don't stop git: such a lock stays, and no notice names it.
      expect(notices).toEqual(existsSync(lock) ? [] : [expect.stringContaining(lock)]);
      if (name.startsWith('refs/')) expect(notices).toHaveLength(1);
    },
  );
});

test.each([
  ['a git process works in the repository', (lock: string) => ['git', 'cat-file', '--batch', lock]],
  ['a process has it open', (_lock: string) => ['cat', '-']],
])('a lock stays while %s, and the error names lock and process', async (_what, command) => {
  const open = () => openSitesRepo({ url: bare, cacheDir: dir });
  await put(await open(), 'x: 1\n');
  const lock = join(bare, 'refs', 'heads', 'main.lock');
  staleLock(lock);
  const [file = '', ...args] = command(lock);
  const isGit = file === 'git';
  const handle = openSync(isGit ? '/dev/null' : lock, 'r');
  const holder = spawn(file, isGit ? args.slice(0, 2) : args, {
    cwd: isGit ? bare : dir,
    stdio: ['pipe', 'ignore', 'ignore', handle],
  });
  await once(holder, 'spawn');
  closeSync(handle);
  const held = put(await open(), 'x: 2\n');
  await expect(held).rejects.toThrow(`${lock} is held by process ${holder.pid} (${file}`);
  expect(existsSync(lock)).toBe(true);
  holder.stdin?.end();
  await once(holder, 'exit');
  expect((await put(await open(), 'x: 2\n')).changed).toBe(true);
});

test('a lock of a remote is not removed, and the error names it', async () => {
  const url = pathToFileURL(bare).href;
  const repo = await openSitesRepo({ url, cacheDir: join(dir, 'cache') });
  await put(repo, 'x: 1\n');
  const lock = join(bare, 'refs', 'heads', 'main.lock');
  staleLock(lock);
  await expect(put(repo, 'x: 2\n')).rejects.toThrow(/main\.lock': File exists/);
  expect(existsSync(lock)).toBe(true);
});

test('a lock that its process removed meanwhile is not reported as removed', async () => {
  const lock = join(bare, 'refs', 'heads', 'main.lock');
  const message = `Unable to create '${lock}': File exists`;
  let runs = 0;
  const work = async () => {
    runs += 1;
    if (runs === 1) throw new GitError(128, message);
    return 'done';
  };
  expect(await withoutStaleLocks(bare, (notice) => notices.push(notice), work)).toBe('done');
  expect([runs, notices]).toEqual([2, []]);
});

describeWith('root', 'a lock of another user', () => {
  test('stays, and the error says so', () => {
    const folder = join(bare, 'refs', 'heads');
    const lock = join(folder, 'main.lock');
    staleLock(lock);
    for (const path of [dir, bare, folder]) chmodSync(path, 0o777);
    const from = (path: string) => new URL(`../../../sites/repo/${path}`, import.meta.url).href;
    const script = `
      const { withoutStaleLocks } = await import('${from('stale-lock.ts')}');
      const { GitError } = await import('${from('git/git.ts')}');
      process.setgroups([]);
      process.setgid(65534);
      process.setuid(65534);
      const refuse = async () => { throw new GitError(128, "Unable to create '${lock}': File exists"); };
      await withoutStaleLocks('${bare}', () => {}, refuse).catch((error) => console.log(error.message));
      process.exit();`;
    const answer = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
      encoding: 'utf8',
    });
    expect(answer).toContain('is held by a process of the user 0, perhaps');
    expect(existsSync(lock)).toBe(true);
  });
});
