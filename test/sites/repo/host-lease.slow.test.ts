import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fastImportStream } from '../../../sites/repo/edits/fast-import.ts';
import { SitesRepoError } from '../../../sites/repo/errors.ts';
import { holdBeforeStart, LeaseHeldError } from '../../../sites/repo/host-lease.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../../sites/repo/sites-repo.ts';
import { eventually } from '../../support/eventually.ts';
import { pathWithHooks } from '../../support/path-with-hooks.ts';

const MODULE = new URL('../../../sites/repo/sites-repo.ts', import.meta.url).href;

const { PATH } = process.env;
let dir: string;
let bare: string;
let notices: string[];
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-lease-'));
  bare = join(dir, 'sites.git');
  notices = [];
  await initSitesRepo(bare);
  process.env.PATH = pathWithHooks(dir);
});
afterEach(() => {
  process.env.PATH = PATH;
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

const leaseFile = () =>
  JSON.parse(
    execFileSync('git', ['-C', bare, 'show', 'refs/tagyard/hosts/tag-1:lease.json'], { encoding: 'utf8' }),
  );

/** Makes the repository refuse every push with this text; `null`: accept them again. */
function refusePushes(text: string | null): void {
  const hook = join(bare, 'hooks', 'pre-receive');
  mkdirSync(join(bare, 'hooks'), { recursive: true });
  if (text === null) rmSync(hook);
  else {
    // A push in the background may run the hook at any time, so the hook is replaced as a whole.
    writeFileSync(`${hook}.new`, `#!/bin/sh\necho ${text} >&2\nexit 1\n`, { mode: 0o755 });
    renameSync(`${hook}.new`, hook);
  }
}

describe.each([
  ['local', (at: string) => at],
  ['remote', (at: string) => pathToFileURL(at).href],
])('a host lease in a %s repository', (_kind, urlOf) => {
  /** A daemon with this id; `installation`: that of its pod. */
  async function daemon(holder: string, takeoverTerm?: number, installation: string | null = null) {
    const repo = await openSitesRepo({
      url: urlOf(bare),
      cacheDir: join(dir, holder),
      onNotice: (message) => notices.push(message),
    });
    const lease = repo.hostLease({ host: 'tag-1', holder, installation, takeoverTerm });
    const pass = async () => {
      await repo.head();
      await lease.hold();
    };
    return { lease, pass };
  }

  test('is taken by one of two daemons that start at once; the other’s error names the holder', async () => {
    const both = await Promise.all([daemon('one'), daemon('two')]);
    const results = await Promise.allSettled(both.map(({ pass }) => pass()));
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(1);
    expect(refused[0]?.reason).toBeInstanceOf(LeaseHeldError);
    expect(String(refused[0]?.reason)).toMatch(
      new RegExp(`another daemon acts as the host tag-1: process ${process.pid} on .* HOST_TAKEOVER_TERM=1`),
    );
    const again = await Promise.allSettled(both.map(({ pass }) => pass()));
    expect(again.map(({ status }) => status)).toEqual(results.map(({ status }) => status));
    expect(leaseFile()).toMatchObject({ term: 1 });
  });

  test('and its term are kept over a restart of the holder', async () => {
    await (await daemon('one')).pass();
    await (await daemon('one')).pass();
    expect(leaseFile()).toMatchObject({ term: 1, holder: 'one' });
  });

  test('can be taken over only by naming its term, and the former holder stops acting', async () => {
    const one = await daemon('one');
    await one.pass();
    await expect((await daemon('two', 2)).pass()).rejects.toThrow(LeaseHeldError);
    const two = await daemon('two', 1);
    await two.pass();
    expect(leaseFile()).toMatchObject({ term: 2, holder: 'two' });
    await expect(one.pass()).rejects.toThrow(LeaseHeldError);
    await expect(one.lease.assertNotLost()).rejects.toThrow(LeaseHeldError);
    await two.pass();
    await expect((await daemon('three', 1)).pass()).rejects.toThrow(LeaseHeldError);
  });

  test('lets its holder act while git can’t be reached, and no other daemon can take it', async () => {
    const one = await daemon('one');
    await one.pass();
    const two = await daemon('two', 1);
    renameSync(bare, `${bare}.away`);
    await expect(one.pass()).rejects.toThrow(SitesRepoError);
    await one.lease.assertNotLost();
    await expect(two.pass()).rejects.toThrow(SitesRepoError);
    renameSync(`${bare}.away`, bare);
    await one.pass();
    expect(leaseFile()).toMatchObject({ term: 1, holder: 'one' });
  });

  test('stops another daemon that starts while git is away or slow, even with a valid takeover term', async () => {
    await (await daemon('one')).pass();
    const away: Pick<SitesRepo, 'head'> = { head: () => Promise.reject(new SitesRepoError('away')) };
    const slow: Pick<SitesRepo, 'head'> = { head: () => new Promise(() => undefined) };
    // This daemon has read the lease once, while git answered.
    await expect((await daemon('two')).pass()).rejects.toThrow(LeaseHeldError);
    for (const repo of [away, slow]) {
      for (const takeoverTerm of [undefined, 1]) {
        const { lease } = await daemon('two', takeoverTerm);
        await expect(holdBeforeStart(repo, lease, 1)).rejects.toThrow(LeaseHeldError);
        await expect(lease.assertNotLost()).rejects.toThrow(LeaseHeldError);
      }
      await holdBeforeStart(repo, (await daemon('one')).lease, 1);
    }
  });

  test('passes to each new pod of one installation, and never back', async () => {
    const pod = (name: string, installation: string | null = 'us') => daemon(name, undefined, installation);
    const one = await pod('one');
    await one.pass();
    for (const other of [null, 'them'])
      await expect((await pod('two', other)).pass()).rejects.toThrow(LeaseHeldError);
    const two = await pod('two');
    await two.pass();
    expect(leaseFile()).toMatchObject({ term: 2, holder: 'two', installation: 'us' });
    await expect(one.pass()).rejects.toThrow(LeaseHeldError);
    await expect((await pod('one')).pass()).rejects.toThrow(LeaseHeldError);
    // The container of the present pod may restart.
    await (await pod('two')).pass();
    await (await pod('three')).pass();
    expect(leaseFile()).toMatchObject({ term: 3, holder: 'three' });
    for (const former of ['one', 'two'])
      await expect((await pod(former)).pass()).rejects.toThrow(LeaseHeldError);
  });

  test('isn’t taken by a new pod while git can’t be reached', async () => {
    await (await daemon('one', undefined, 'us')).pass();
    const next = await daemon('two', undefined, 'us');
    const away: Pick<SitesRepo, 'head'> = { head: () => Promise.reject(new SitesRepoError('away')) };
    // Its copy of git has the lease.
    await (await openSitesRepo({ url: urlOf(bare), cacheDir: join(dir, 'two') })).head();
    await expect(holdBeforeStart(away, next.lease, 1)).rejects.toThrow(LeaseHeldError);
    await next.pass();
    expect(leaseFile()).toMatchObject({ term: 2, holder: 'two' });
  });

  test('is taken by another daemon if the holder’s process has ended on this machine', async () => {
    const script = `const { openSitesRepo } = await import('${MODULE}');
      const repo = await openSitesRepo({ url: '${urlOf(bare)}', cacheDir: '${join(dir, 'ended')}' });
      await repo.head();
      await repo.hostLease({ host: 'tag-1', holder: 'ended', takeoverTerm: undefined }).hold();`;
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { stdio: 'pipe' });
    expect(leaseFile()).toMatchObject({ term: 1, holder: 'ended' });
    await (await daemon('two')).pass();
    expect(leaseFile()).toMatchObject({ term: 2, holder: 'two' });
  });
});

/** A daemon with a repository behind a URL. */
async function remoteDaemon(holder: string, takeoverTerm?: number) {
  const repo = await openSitesRepo({
    url: pathToFileURL(bare).href,
    cacheDir: join(dir, holder),
    onNotice: (message) => notices.push(message),
  });
  const lease = repo.hostLease({ host: 'tag-1', holder, takeoverTerm });
  return async () => {
    await repo.head();
    await lease.hold();
  };
}

test('a daemon that may only read the remote acts without a lease, and logs each reason once', async () => {
  refusePushes('read only');
  const pass = await remoteDaemon('one');
  for (let passes = 0; passes < 3; passes += 1) await pass();
  expect(notices).toEqual([expect.stringMatching(/can't be written.*read only/s)]);
  refusePushes('disk full');
  await eventually(async () => {
    await pass();
    expect(notices).toHaveLength(2);
  });
  expect(notices[1]).toContain('disk full');
});

test('a lease that could not be written is written as soon as the remote accepts it', async () => {
  refusePushes('out of order');
  const pass = await remoteDaemon('one');
  await pass();
  refusePushes(null);
  await eventually(async () => {
    await pass();
    expect(leaseFile()).toMatchObject({ term: 1, holder: 'one' });
  });
  await expect((await remoteDaemon('two'))()).rejects.toThrow(LeaseHeldError);
});

test('a lease that could not be written is made again if the mirror that held it was deleted', async () => {
  refusePushes('out of order');
  const pass = await remoteDaemon('one');
  await pass();
  rmSync(join(dir, 'one', 'sites.git'), { recursive: true });
  refusePushes(null);
  await eventually(async () => {
    await pass();
    expect(leaseFile()).toMatchObject({ term: 1, holder: 'one' });
  });
});

test('a takeover that can’t be written yet is repeated, and the daemon acts meanwhile', async () => {
  const one = await remoteDaemon('one');
  await one();
  refusePushes('out of order');
  const two = await remoteDaemon('two', 1);
  for (let passes = 0; passes < 3; passes += 1) await two();
  expect(leaseFile()).toMatchObject({ term: 1, holder: 'one' });
  refusePushes(null);
  await eventually(async () => {
    await two();
    expect(leaseFile()).toMatchObject({ term: 2, holder: 'two' });
  });
  await two();
  await expect(one()).rejects.toThrow(LeaseHeldError);
});

test('a process of another boot counts as running, because a cloned machine has the same machine id', async () => {
  await (await remoteDaemon('one'))();
  const { process: holder, ...record } = leaseFile();
  const text = JSON.stringify({ ...record, process: { ...holder, boot: 'of a clone' } });
  const commit = fastImportStream(
    'refs/tagyard/hosts/tag-1',
    null,
    [
      {
        path: 'lease.json',
        text,
        subject: 'Act as the host tag-1',
        author: { name: 'Op', email: 'op@example.test' },
        trailers: {},
      },
    ],
    1,
  );
  execFileSync('git', ['-C', bare, 'fast-import', '--quiet', '--done', '--force'], { input: commit });
  await expect((await remoteDaemon('two'))()).rejects.toThrow(LeaseHeldError);
  // The same daemon after a restart of its machine.
  await (await remoteDaemon('one'))();
  expect(leaseFile()).toMatchObject({ term: 1, holder: 'one', process: holder });
});
