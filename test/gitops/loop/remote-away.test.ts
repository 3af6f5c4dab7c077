import { rename } from 'node:fs/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../../gitops/base/clock.ts';
import { formatManifest } from '../../../gitops/manifest/load.ts';
import { openSitesRepo } from '../../../gitops/sites-repo/sites-repo.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
afterEach(async () => {
  vi.restoreAllMocks();
  await daemon.close();
});

test('while a remote is unreachable for an hour nothing changes, and the daemon continues when it is back', async () => {
  // The daemon's clock is an hour ahead at the end, five minutes at a time.
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
    expect(body.sites).toMatchObject([{ ready: true, reason: 'Ready' }, { reason: 'Removed' }]);
  }
  expect(await daemon.call('POST', '/provision', daemon.manifest('three', 3))).toMatchObject({
    status: 503,
    body: { code: 'sites_repo_unavailable' },
  });
  expect((await daemon.app.inject({ method: 'GET', url: '/healthz' })).statusCode).toBe(200);
  expect(daemon.applied).toEqual([]);

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
