import { fileURLToPath } from 'node:url';
import Docker from 'dockerode';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { containersSettings } from '../../support/containers/stage.ts';
import { pickyRelease, removeContainers, tagServerImage } from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';
import { containerConfig } from '../../support/tag-server.ts';

const INSTANCE = 'test-image';
const CLI = fileURLToPath(new URL('../../../gitops/cli.ts', import.meta.url));
const TIMEOUT = { timeoutMs: 90_000, intervalMs: 100 };
/** The new image fails with this site's config. */
const UNLUCKY = 'beta';
const SITES = ['alpha', UNLUCKY, 'gamma'];

const reportSchema = z.object({
  sites: z.array(z.object({ site: z.string(), state: z.string(), detail: z.string() })),
  untouched: z.array(z.string()),
});

describeWith('docker', 'tagyard image on real containers', () => {
  const docker = new Docker();
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  let picky: string;
  let daemon: MemoryDaemon;
  let url: string;
  beforeAll(async () => {
    built = await tagServerImage(docker, INSTANCE);
    picky = await pickyRelease(docker, built, UNLUCKY);
  });
  afterAll(() => built[Symbol.asyncDispose]());
  beforeEach(async () => {
    const runtime = dockerRuntime({ docker, stopGraceSeconds: 2 });
    const containers = containersApplier(containersSettings(INSTANCE, '127.90'), runtime);
    // The cast is safe: the loop gives each applier only the changes that this applier planned.
    daemon = await memoryDaemon({}, [containers as never]);
    url = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
  });
  afterEach(async () => {
    await daemon.close();
    await removeContainers(docker, INSTANCE);
  });

  /** The processing containers by site: id, image and creation time. */
  const processing = async () => {
    const found = new Map<string, { id: string; image: string; created: string }>();
    for (const { Id, Names } of await docker.listContainers()) {
      const site = new RegExp(`^/tagyard-${INSTANCE}-(\\w+)-processing-`).exec(Names[0] ?? '')?.[1];
      if (site === undefined) continue;
      const { Image, Created } = await docker.getContainer(Id).inspect();
      found.set(site, { id: Id, image: Image, created: Created });
    }
    return found;
  };
  const roll = async (...sites: string[]) => {
    const args = ['image', picky, '--sites', sites.join(), '--watch', '1', '--at-once', '1', '--json'];
    const { exitCode, stdout } = await execa(process.execPath, [CLI, ...args], {
      reject: false,
      env: { INFRA_PROVISIONER_URL: url, INFRA_SECRET: SECRET },
    });
    const { sites: rolled, untouched } = reportSchema.parse(JSON.parse(stdout));
    return { exitCode, untouched, rolled, states: Object.fromEntries(rolled.map((s) => [s.site, s.state])) };
  };

  test('updates one site first, reverts those that fail, and keeps their old containers serving', async () => {
    for (const [number, site] of SITES.entries()) {
      const cipher = await encryptSecret(daemon.recipient, containerConfig({ env: site }));
      const extra = { image: built.image, containerConfig: cipher };
      await daemon.push(site, daemon.manifest(site, number, extra));
    }
    await eventually(() => {
      for (const site of SITES) expect(daemon.loop.status(site)).toMatchObject({ reason: 'Ready' });
    }, TIMEOUT);
    const before = await processing();
    expect([...before.keys()].sort()).toEqual(SITES);

    const { rolled, ...outcome } = await roll(...SITES);
    expect(outcome).toEqual({
      exitCode: 1,
      states: { alpha: 'swapped', [UNLUCKY]: 'reverted', gamma: 'swapped' },
      untouched: [],
    });
    expect(rolled[1]?.detail).toMatch(/exit code 3.*this release knows no such environment/);
    const [revert, change] = await daemon.repo.history(UNLUCKY, 2);
    expect(revert).toMatchObject({
      subject: `Revert ${UNLUCKY}`,
      trailers: {
        Reverts: change?.revision,
        Reason: expect.stringContaining('it died (exit code 3)'),
      },
    });
    await eventually(() => expect(daemon.loop.status(UNLUCKY)).toMatchObject({ reason: 'Ready' }), TIMEOUT);
    const after = await processing();
    expect(after.get(UNLUCKY)).toEqual(before.get(UNLUCKY));
    const [alpha, gamma] = [after.get('alpha'), after.get('gamma')];
    expect([alpha?.image, gamma?.image]).toEqual([picky, picky]);
    // The first one was started and found healthy before the next one was changed.
    expect(Date.parse(gamma?.created ?? '') - Date.parse(alpha?.created ?? '')).toBeGreaterThan(1_000);
    for (const site of ['alpha', 'gamma']) {
      const history = await daemon.repo.history(site, 5);
      expect(history.map(({ subject }) => subject)).toEqual([`Change the image of ${site}`, 'By hand']);
    }
  });
});
