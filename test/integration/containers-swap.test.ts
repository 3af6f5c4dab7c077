import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { dockerRuntime } from '../../gitops/appliers/containers/docker-runtime.ts';
import type { LoadedManifest } from '../../gitops/manifest/containers.ts';
import { containersHost } from '../fixtures/containers-host.ts';
import { containersSettings } from '../fixtures/containers-stage.ts';
import { loadedManifest } from '../fixtures/manifest.ts';
import { nextRelease, removeContainers, tagServerImage } from '../fixtures/tag-server-image.ts';
import { describeWith } from '../helpers/components.ts';
import { startLoad } from '../helpers/steady-load.ts';

const INSTANCE = 'test-swap';

describeWith(['docker', 'nginx'], 'a site behind nginx', () => {
  const docker = new Docker();
  const settings = containersSettings(INSTANCE, '127.84', { drain: { leastMs: 300, mostMs: 10_000 } });
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  let releases: string[];
  let host: Awaited<ReturnType<typeof containersHost>>;
  beforeAll(async () => {
    built = await tagServerImage(docker, INSTANCE);
    releases = [built.image, await nextRelease(docker, built)];
  });
  afterAll(() => built[Symbol.asyncDispose]());
  beforeEach(async () => {
    host = await containersHost(dockerRuntime({ docker, stopGraceSeconds: 2 }), settings);
  });
  afterEach(async () => {
    await host[Symbol.asyncDispose]();
    await removeContainers(docker, INSTANCE);
  });

  const site = (extra: Partial<LoadedManifest> = {}): LoadedManifest => ({
    ...loadedManifest(),
    image: built.image,
    ...extra,
  });

  it('loses no request in ten upgrades at 200 requests a second', async () => {
    await host.apply(site());
    const load = startLoad(host.endpoint, site().hostnames.origin, { perSecond: 200 });
    for (let upgrade = 1; upgrade <= 10; upgrade += 1) {
      await host.apply(site({ image: releases[upgrade % 2] ?? '' }));
    }
    const { sent, failures } = await load.end();
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(1_000);
    expect(await host.plan([site()])).toEqual([]);
  });
});
