import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import type { Runtime } from '../../../gitops/appliers/containers/runtime.ts';
import { dockerBridgeGateway } from '../../../gitops/clients/docker.ts';
import { checkDockerBridge } from '../../../gitops/host-report/part-checks.ts';
import { buildDemoImage } from '../../../sites/local/demo/image.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { startImageRegistry } from '../../support/containers/image-registry.ts';
import { type OwnEngine, startOwnEngine } from '../../support/containers/own-engine.ts';
import { containersSettings, healthOf } from '../../support/containers/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { containerConfig, containerSecret } from '../../support/tag-server.ts';

const INSTANCE = 'test-engine';
const REPOSITORY = 'tagyard-test/engine';
const SITE = 'acme';
const ADDRESS_LABEL = 'tagyard.preview-address';
const TIMEOUT = { timeoutMs: 60_000, intervalMs: 100 };

describeWith(['docker', 'root'], 'an engine without a default bridge', () => {
  test('fails a part of the host, with what to do', async () => {
    await using engine = await startOwnEngine(new Docker(), `${INSTANCE}-none`, { hasBridge: false });
    expect(await checkDockerBridge(() => dockerBridgeGateway(engine.docker))).toEqual({
      name: 'docker_bridge',
      status: 'failed',
      detail: expect.stringContaining('no way to their preview server'),
      fix: expect.stringMatching(/^Remove "bridge": "none" from .*daemon\.json/),
    });
  });
});

describeWith(['docker', 'root'], 'containers on an engine that fails', () => {
  // Needs root: the tests stop the engine, so they start one of their own.
  describe('and that belongs to the tests', () => {
    const settings = containersSettings(INSTANCE, '127.89', { steadyMs: 1_000 });
    let engine: OwnEngine;
    let image: string;
    let daemon: MemoryDaemon;
    /** Changes the options with which containers are created. */
    let recreate = (options: Docker.ContainerCreateOptions): Docker.ContainerCreateOptions => options;
    /** Called right after a container was started or removed, within the change. */
    let afterChange: (what: 'start' | 'remove') => Promise<void>;
    beforeAll(async () => {
      engine = await startOwnEngine(new Docker(), INSTANCE);
      // Without `StopTimeout`, a container that gets SIGTERM before its handler is set blocks the engine for 10 s.
      const create = engine.docker.createContainer.bind(engine.docker);
      vi.spyOn(engine.docker, 'createContainer').mockImplementation((options) =>
        create({ ...recreate(options), StopTimeout: 1 }),
      );
      image = await buildDemoImage({ docker: engine.docker, repository: REPOSITORY });
    });
    afterAll(() => engine[Symbol.asyncDispose]());
    beforeEach(async () => {
      afterChange = async () => undefined;
      const inner = dockerRuntime({ docker: engine.docker, stopGraceSeconds: 2 });
      const runtime: Runtime = {
        ...inner,
        async start(launch, signal) {
          const id = await inner.start(launch, signal);
          await afterChange('start');
          return id;
        },
        async remove(id, signal) {
          await inner.remove(id, signal);
          await afterChange('remove');
        },
      };
      // The cast is safe: an applier gets only its own changes.
      daemon = await memoryDaemon({}, [containersApplier(settings, runtime) as never]);
    });
    afterEach(async () => {
      await daemon.close();
      // A test that failed may have left the engine stopped.
      await engine.start();
      const all = await engine.docker.listContainers({ all: true });
      await Promise.all(all.map(({ Id }) => engine.docker.getContainer(Id).remove({ force: true })));
    });

    const push = async (env: string, from = image) => {
      const cipher = await encryptSecret(daemon.recipient, containerConfig({ env }));
      await daemon.push(SITE, daemon.manifest(SITE, 1, { image: from, containerConfig: cipher }));
    };
    /** The site matches its newest manifest, and no other container exists. */
    const settles = (env: string, from = image) =>
      eventually(async () => {
        const head = await daemon.repo.head();
        expect(daemon.loop.status(SITE)).toMatchObject({ message: '', reason: 'Ready', applied: head });
        const { docker } = engine;
        expect((await docker.listContainers()).map(({ State }) => State)).toEqual(['running', 'running']);
        expect(await docker.listContainers({ all: true })).toHaveLength(2);
        const manifest = loadedManifest(SITE, 1, { image: from });
        const wanted = { ...manifest, config: containerSecret({ env }) };
        const specs = containersApplier(settings, dockerRuntime(engine)).desired(wanted);
        expect(await Promise.all(specs.map(({ spec }) => healthOf(spec)))).toEqual([200, 200]);
      }, TIMEOUT);

    test.each([
      ['the new container has just started', 'start'],
      ['the first old container is removed', 'remove'],
    ] as const)('end a swap by themselves after the engine is restarted when %s', async (_what, moment) => {
      await push('1');
      await settles('1');
      let restarts = 0;
      afterChange = async (what) => {
        if (what !== moment || restarts > 0) return;
        restarts += 1;
        await engine.stop();
        await engine.start();
      };
      await push('2');
      await settles('2');
      expect(restarts).toBe(1);
    });

    test('report an engine that is down, are not changed meanwhile, and continue when it is back', async () => {
      await push('1');
      await settles('1');
      await engine.stop();
      await push('2');
      // The engine's containers ended with it. That it is down is why they can't be repaired.
      await eventually(() => {
        expect(daemon.loop.status(SITE)).toMatchObject({
          ready: false,
          reason: 'ObserveFailed',
          message: expect.stringMatching(
            /^containers: Docker did not answer.*; processing server 0 fails its health check since /,
          ),
        });
      }, TIMEOUT);
      await engine.start();
      await settles('2');
    });

    test.each([
      ['', { [ADDRESS_LABEL]: '192.0.2.1' }],
      [' by an earlier release', {}],
    ])(
      'are replaced if they were created%s for another address of the bridge',
      async (_who, label: Record<string, string>) => {
        const { docker } = engine;
        const network = `tagyard-${INSTANCE}-readdressed`;
        await docker.createNetwork({ Name: network });
        const { signal } = new AbortController();
        const build = () =>
          containersApplier(
            settings,
            dockerRuntime({ docker, networkOf: () => network, stopGraceSeconds: 2 }),
          );
        const manifest = { ...loadedManifest(SITE, 1, { image }), config: containerSecret({}) };
        const planBy = async (applier: ReturnType<typeof build>) => {
          const desired = applier.desired(manifest);
          return applier.plan(desired, await applier.observe(desired, signal)).changes;
        };
        const hosts = async () => {
          const all = await docker.listContainers({ all: true });
          const found = await Promise.all(all.map(({ Id }) => docker.getContainer(Id).inspect()));
          return found.flatMap(({ HostConfig }) => HostConfig.ExtraHosts ?? []);
        };
        const before = `${manifest.hostnames.preview}:192.0.2.1`;
        recreate = (options) => {
          if (options.HostConfig?.ExtraHosts?.length !== 1) return options;
          const { [ADDRESS_LABEL]: _, ...labels } = options.Labels ?? {};
          const HostConfig = { ...options.HostConfig, ExtraHosts: [before] };
          return { ...options, HostConfig, Labels: { ...labels, ...label } };
        };
        const earlier = build();
        for (const change of await planBy(earlier)) await earlier.apply(change, signal);
        expect(await hosts()).toEqual([before]);
        recreate = (options) => options;

        const now = build();
        const changes = await planBy(now);
        expect(changes).toMatchObject([
          { op: 'update', key: expect.stringContaining('/processing/'), observed: { outdated: true } },
        ]);
        for (const change of changes) await now.apply(change, signal);
        const address = await dockerBridgeGateway(docker);
        expect(await hosts()).toEqual([`${manifest.hostnames.preview}:${address}`]);
        expect(await planBy(now)).toEqual([]);
        for (const { Id } of await docker.listContainers({ all: true })) {
          await docker.getContainer(Id).remove({ force: true });
        }
        await docker.getNetwork(network).remove();
      },
    );

    const rob = async (from: string) => {
      // Frozen, so that the daemon restores no container until the image, too, is removed.
      const freeze = join(daemon.dir, 'freeze');
      await writeFile(freeze, 'the image is removed\n');
      const all = await engine.docker.listContainers({ all: true });
      await Promise.all(all.map(({ Id }) => engine.docker.getContainer(Id).remove({ force: true })));
      await engine.docker.getImage(from).remove({ force: true });
      await rm(freeze);
    };

    test('report a missing image, and start again once it is loaded', async () => {
      const archive = await bytesOf(await engine.docker.getImage(image).get());
      await push('1');
      await settles('1');
      await rob(image);
      await daemon.call('POST', '/sync');
      await eventually(() => {
        expect(daemon.loop.status(SITE)).toMatchObject({
          ready: false,
          reason: 'Failed',
          message: expect.stringContaining(`there is no image ${image} on this host`),
        });
      }, TIMEOUT);
      const loaded = await engine.docker.loadImage(Readable.from([archive]));
      await bytesOf(loaded);
      await settles('1');
    });

    test('pull the missing image of a registry again', async () => {
      await using registry = await startImageRegistry(engine.docker, image);
      await push('1', registry.image);
      await settles('1', registry.image);
      const reads = registry.reads();
      expect(reads).toBeGreaterThan(0);
      await rob(image);
      await daemon.call('POST', '/sync');
      await settles('1', registry.image);
      expect(registry.reads()).toBeGreaterThan(reads);
    });
  });
});

async function bytesOf(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
