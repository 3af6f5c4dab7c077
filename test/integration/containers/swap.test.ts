import { once } from 'node:events';
import { createServer } from 'node:net';
import Docker from 'dockerode';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { containerName } from '../../../gitops/appliers/containers/desired.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { describeWith } from '../../support/components.ts';
import { containersHost } from '../../support/containers/host.ts';
import { containersSettings, healthOf } from '../../support/containers/stage.ts';
import { nextRelease, removeContainers, tagServerImage } from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { ask } from '../../support/proxy/proxy.ts';
import { startLoad } from '../../support/steady-load.ts';
import { FOREIGN_PREVIEW } from '../../support/tag-server.ts';

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

  type Resources = LoadedManifest['resources'];
  const resources = (
    processing: Partial<Resources['processing']>,
    preview: Partial<Resources['preview']>,
  ) => {
    const plain = loadedManifest().resources;
    return { processing: { ...plain.processing, ...processing }, preview: { ...plain.preview, ...preview } };
  };

  test('loses no request in ten upgrades at 200 requests a second', async () => {
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

  const replicated = () => site({ resources: resources({ replicas: 2 }, {}) });
  test('spreads requests over replicas, and loses no request after a replica has ended', async () => {
    await host.apply(replicated());
    const specs = host.containers.desired(replicated()).map(({ spec }) => spec);
    const [first, second] = specs.filter(({ role }) => role === 'processing');
    expect(specs.filter(({ role }) => role === 'preview')).toHaveLength(1);
    if (first === undefined || second === undefined) throw new Error('there are no two replicas');
    const load = startLoad(host.endpoint, site().hostnames.origin, { perSecond: 20 });
    const heard = async ({ address, port }: typeof first) => {
      const { body } = await request(`http://${address}:${port}/tagyard-demo/events`, { reset: true });
      return z.object({ events: z.array(z.unknown()) }).parse(await body.json()).events.length;
    };
    await eventually(async () => {
      expect(await heard(first)).toBeGreaterThan(20);
      expect(await heard(second)).toBeGreaterThan(20);
    });
    // Its process ends as in a crash: nothing has redirected the traffic before.
    await docker.getContainer(containerName(INSTANCE, second)).stop({ t: 5 });
    const before = await heard(first);
    await eventually(async () => expect(await heard(first)).toBeGreaterThan(before + 50));
    await host.apply(replicated());
    const { failures } = await load.end();
    // Requests that the ended replica was processing are lost; the other replica answers all later requests.
    expect(failures.slice(2)).toEqual([]);
    expect(await host.plan([replicated()])).toEqual([]);
  });

  test('holds the first preview request behind nginx until the preview server has started', async () => {
    const thrifty = site({ resources: resources({}, { onDemand: true }) });
    host.restart({ previewIdleMs: 200 });
    await host.apply(thrifty);
    const preview = host.containers.desired(thrifty).find(({ spec }) => spec.role === 'preview');
    const running = async () => {
      if (preview === undefined) throw new Error('there is no preview server');
      return (await docker.getContainer(containerName(INSTANCE, preview.spec)).inspect()).State.Running;
    };
    await eventually(async () => expect(await running()).toBe(false));
    const { status, body } = await ask(host.endpoint, {
      host: thrifty.hostnames.preview,
      path: FOREIGN_PREVIEW,
    });
    expect([status, body]).toEqual([200, expect.stringContaining('Preview failed to load')]);
    await eventually(async () => expect(await running()).toBe(false));
    await host.containers.close?.();
  });

  test('removes a site in the order that keeps traffic safe, and releases its slots', async () => {
    await host.apply(site());
    const specs = host.containers.desired(site()).map(({ spec }) => spec);
    await host.apply();
    expect(await Promise.all(specs.map(healthOf))).toEqual([0, 0]);
    for (const { address, port } of specs) {
      const server = createServer().listen(port, address);
      await once(server, 'listening');
      server.close();
    }
    expect(await host.plan([])).toEqual([]);
  });
});
