import { execFileSync } from 'node:child_process';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../base/clock.ts';
import { formatMark } from '../../../base/ownership.ts';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
afterEach(async () => {
  vi.restoreAllMocks();
  await daemon.close();
});

test('enforces the last revision while the remote is unreachable for an hour, and continues when it is reachable again', async () => {
  // The daemon's clock is set ahead by five minutes at a time, by an hour in all.
  let aheadMs = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  daemon = await memoryDaemon({ pollSeconds: 0.05, intervalSeconds: 300, clock });
  for (const [number, site] of ['one', 'two'].entries()) {
    await daemon.push(site, daemon.manifest(site, number));
    await daemon.reaches(site, 'Ready');
  }
  await daemon.call('POST', '/deprovision?wait=20', { site: 'two' });
  const away = `${daemon.sitesRepo}.away`;
  await rename(daemon.sitesRepo, away);
  daemon.applied.length = 0;

  const head = vi.spyOn(daemon.repo, 'head');
  for (let minutes = 0; minutes < 60; minutes += 5) {
    aheadMs += 5 * 60_000;
    const before = head.mock.settledResults.filter(({ type }) => type === 'rejected').length;
    daemon.loop.trigger();
    await eventually(() =>
      expect(head.mock.settledResults.filter(({ type }) => type === 'rejected').length).toBeGreaterThan(
        before,
      ),
    );
    await eventually(() => expect(daemon.loop.lastError).not.toBeNull());
    const { body } = await daemon.call('GET', '/sites');
    expect(body.problem).toContain('newer revisions are unknown');
    expect(body.sites).toMatchObject([{ ready: true, reason: 'SourceUnavailable' }, { reason: 'Removed' }]);
    expect(body.sites[0].message).toMatch(/^the sites repository has been unreadable for \d+ s/);
    // Remove an object of the site from outside. It comes back, although no newer revision can be read.
    const [lost = ''] = daemon.of('containers', 'one');
    if (minutes < 10) {
      daemon.world('containers').delete(lost);
      await daemon.fullPass();
      await eventually(() => expect(daemon.of('containers', 'one')).toEqual([lost]));
    }
  }
  const { status, body } = await daemon.call('GET', '/readyz');
  expect(status).toBe(503);
  expect(body).toMatchObject({
    ...{ status: 'source_unavailable', passSeconds: expect.any(Number) },
    source: { since: expect.any(String) },
  });
  expect(body.source.seconds).toBeGreaterThan(50 * 60);
  const metrics = await daemon.app.inject({ url: '/metrics', headers: { 'x-secret': SECRET } });
  expect(metrics.body).toContain('tagyard_sites{reason="SourceUnavailable"} 1');
  expect(metrics.body).toMatch(/^tagyard_source_unavailable_seconds [1-9]\d{3}/m);
  expect(await daemon.call('POST', '/provision', daemon.manifest('three', 3))).toMatchObject({
    status: 503,
    body: { code: 'sites_repo_unavailable' },
  });
  expect((await daemon.app.inject({ method: 'GET', url: '/healthz' })).statusCode).toBe(200);
  expect(daemon.applied.map(({ target, op }) => `${target} ${op}`)).toEqual(
    Array(2).fill('containers create'),
  );
  daemon.applied.length = 0;

  // The remote has a new commit when it is back.
  await rename(away, daemon.sitesRepo);
  const beside = await openSitesRepo({ url: daemon.sitesRepo, cacheDir: daemon.dir });
  await beside.commit({
    site: 'one',
    edit: () => formatManifest(daemon.manifest('one', 0, { name: 'Renamed' })),
    subject: 'Meanwhile',
    author: { name: 'Op', email: 'op@example.test' },
    trailers: {},
  });
  const revision = await eventually(async () => {
    expect(daemon.loop.lastError).toBeNull();
    return await daemon.repo.head();
  });
  await eventually(() => expect(daemon.loop.status('one')).toMatchObject({ ready: true, applied: revision }));
  expect(daemon.applied.every(({ site, op }) => site === 'one' && op === 'update')).toBe(true);
  expect((await daemon.call('GET', '/sites')).body).toMatchObject({ problem: null });
});

test('after a restart while the remote is unreachable, enforces the revision that was fetched last', async () => {
  daemon = await memoryDaemon({ pollSeconds: 0.05 });
  await daemon.push('one', daemon.manifest('one', 1));
  await daemon.reaches('one', 'Ready');
  await rename(daemon.sitesRepo, `${daemon.sitesRepo}.away`);
  const [lost = ''] = daemon.of('containers', 'one');
  daemon.world('containers').delete(lost);
  await daemon.restart();
  await eventually(() => expect(daemon.of('containers', 'one')).toEqual([lost]));
  expect((await daemon.call('GET', '/sites/one')).body).toMatchObject({ reason: 'SourceUnavailable' });
  await rename(`${daemon.sitesRepo}.away`, daemon.sitesRepo);
  await eventually(async () =>
    expect((await daemon.call('GET', '/sites/one')).body).toMatchObject({ reason: 'Ready', message: '' }),
  );
});

describe('a remote that doesn’t answer in time', () => {
  let aheadMs: number;
  /** The remote answers while this file exists. */
  let answer: string;
  const reason = async () => (await daemon.call('GET', '/sites/one')).body.reason;
  const ready = async () => (await daemon.call('GET', '/readyz')).status;
  const repairs = async () => {
    const [lost = ''] = daemon.of('containers', 'one');
    daemon.world('containers').delete(lost);
    daemon.loop.sync();
    await eventually(() => expect(daemon.of('containers', 'one')).toEqual([lost]));
  };
  beforeEach(async () => {
    aheadMs = 0;
    const startedMs = systemClock.now();
    const clock = {
      ...systemClock,
      // Ten times as slow as the real clock: a test on a busy machine must not itself reach the minute.
      now: () => startedMs + (systemClock.now() - startedMs) / 10 + aheadMs,
      // Sleeps are twenty times as short as asked for, so that passes come often.
      sleep: (ms: number, options?: { signal?: AbortSignal }) => systemClock.sleep(ms / 20, options),
    };
    daemon = await memoryDaemon({ pollSeconds: 0.05, clock });
    await daemon.push('one', daemon.manifest('one', 1));
    await daemon.reaches('one', 'Ready');
    answer = join(daemon.dir, 'answer');
    const uploadPack = join(daemon.dir, 'upload-pack');
    const script = `until [ -e ${answer} ]; do sleep 0.02; done\nexec git-upload-pack "$@"`;
    await writeFile(uploadPack, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const mirror = join(daemon.dir, 'mirror', 'sites.git');
    execFileSync('git', ['-C', mirror, 'config', 'remote.origin.uploadpack', uploadPack]);
  });

  test('delays no repair, and is reported after a minute; its answer is applied when it arrives', async () => {
    await repairs();
    expect([await reason(), await ready()]).toEqual(['Ready', 200]);
    aheadMs += 61_000;
    await repairs();
    await eventually(async () => expect([await reason(), await ready()]).toEqual(['SourceUnavailable', 503]));
    await writeFile(answer, '');
    await eventually(async () => expect([await reason(), await ready()]).toEqual(['Ready', 200]));
  });

  test('is not reported if each late answer comes within a minute', async () => {
    const head = vi.spyOn(daemon.repo, 'head');
    for (let round = 0; round < 3; round += 1) {
      await repairs();
      aheadMs += 40_000;
      expect([await reason(), await ready()]).toEqual(['Ready', 200]);
      // Waits for all pending reads of the remote and one more, so that none of this round is left for the next.
      const begun = head.mock.settledResults.length;
      await writeFile(answer, '');
      await eventually(() => {
        const types = head.mock.settledResults.slice(0, begun + 1).map(({ type }) => type);
        expect(types).toEqual(Array(begun + 1).fill('fulfilled'));
      });
      await rm(answer);
    }
    expect([await reason(), await ready()]).toEqual(['Ready', 200]);
    expect(daemon.loop.lastError).toBeNull();
    await writeFile(answer, '');
  });
});

test.each([
  ['is gone', (bare: string) => rm(join(bare, 'refs', 'heads', 'main'))],
  ['is damaged', (bare: string) => writeFile(join(bare, 'refs', 'heads', 'main'), '')],
  ['is away with its repository', (bare: string) => rename(bare, `${bare}.away`)],
])('while the local branch %s, the last revision is enforced and no site removed', async (_what, breakIt) => {
  daemon = await memoryDaemon();
  await daemon.push('one', daemon.manifest('one', 1));
  await daemon.reaches('one', 'Ready');
  // Git can't confirm the removal of this site, because the branch can't be read.
  const mark = formatMark({ instance: 'test', host: 'tag-1' }, 'ghost', '0123abcd');
  daemon.world('containers').set('ghost.example.net', { mark, hash: 'x' });
  await breakIt(daemon.sitesRepo);
  const [lost = ''] = daemon.of('containers', 'one');
  daemon.world('containers').delete(lost);
  daemon.loop.sync();
  await eventually(() => expect(daemon.of('containers', 'one')).toEqual([lost]));
  expect((await daemon.call('GET', '/sites/one')).body).toMatchObject({ reason: 'SourceUnavailable' });
  expect(daemon.of('containers', 'ghost')).toEqual(['ghost.example.net']);
});
