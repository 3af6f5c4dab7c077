import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { containersApplier } from '../../gitops/appliers/containers/applier.ts';
import { dockerRuntime } from '../../gitops/appliers/containers/docker-runtime.ts';
import type { Runtime } from '../../gitops/appliers/containers/runtime.ts';
import { encryptSecret } from '../../gitops/manifest/secrets.ts';
import { buildDemoImage } from '../../sites/demo/image.ts';
import { describeWith } from '../support/components.ts';
import { startImageRegistry } from '../support/containers/image-registry.ts';
import { type OwnEngine, startOwnEngine } from '../support/containers/own-engine.ts';
import { containersSettings, healthOf } from '../support/containers/stage.ts';
import { eventually } from '../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../support/gitops/memory-daemon.ts';
import { loadedManifest } from '../support/manifest.ts';
import { containerConfig, containerSecret } from '../support/tag-server.ts';

const INSTANCE = 'test-engine';
const REPOSITORY = 'tagyard-test/engine';
const SITE = 'acme';
const PATIENCE = { timeoutMs: 60_000, intervalMs: 100 };

describeWith('docker', 'containers and an engine that fails them', () => {
  // As root only: an engine of one's own is the only one that a test may stop.
  describe.skipIf(process.getuid?.() !== 0)('with an engine of its own, as root', () => {
    const settings = containersSettings(INSTANCE, '127.89', { steadyMs: 1_000 });
    let engine: OwnEngine;
    let image: string;
    let daemon: MemoryDaemon;
    /** Called as soon as a container was started or removed, in the middle of whatever that is a part of. */
    let after: (what: 'start' | 'remove') => Promise<void>;
    beforeAll(async () => {
      engine = await startOwnEngine(new Docker(), INSTANCE);
      // One that is told to stop before it can hear holds the engine up for ten seconds otherwise.
      const create = engine.docker.createContainer.bind(engine.docker);
      vi.spyOn(engine.docker, 'createContainer').mockImplementation((options) =>
        create({ ...options, StopTimeout: 1 }),
      );
      image = await buildDemoImage({ docker: engine.docker, repository: REPOSITORY });
    });
    afterAll(() => engine[Symbol.asyncDispose]());
    beforeEach(async () => {
      after = async () => undefined;
      const inner = dockerRuntime({ docker: engine.docker, stopGraceSeconds: 2 });
      const runtime: Runtime = {
        ...inner,
        async start(launch, signal) {
          const id = await inner.start(launch, signal);
          await after('start');
          return id;
        },
        async remove(id, signal) {
          await inner.remove(id, signal);
          await after('remove');
        },
      };
      daemon = await memoryDaemon({}, [containersApplier(settings, runtime) as never]); // the loop hands it its own changes
    });
    afterEach(async () => {
      await daemon.close();
      const all = await engine.docker.listContainers({ all: true });
      await Promise.all(all.map(({ Id }) => engine.docker.getContainer(Id).remove({ force: true })));
    });

    const push = async (env: string, from = image) => {
      const cipher = await encryptSecret(daemon.recipient, containerConfig({ env }));
      await daemon.push(SITE, daemon.manifest(SITE, 1, { image: from, containerConfig: cipher }));
    };
    /** The site is as its newest manifest says, and nothing else is there. */
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
      }, PATIENCE);

    test.each([
      ['the new one has just started', 'start'],
      ['the first old one has gone', 'remove'],
    ] as const)('end a swap by themselves after the engine is restarted when %s', async (_what, moment) => {
      await push('1');
      await settles('1');
      let restarts = 0;
      after = async (what) => {
        if (what !== moment || restarts > 0) return;
        restarts += 1;
        await engine.stop();
        await engine.start();
      };
      await push('2');
      await settles('2');
      expect(restarts).toBe(1);
    });

    test('say so while the engine is away, are left alone, and go on when it is back', async () => {
      await push('1');
      await settles('1');
      await engine.stop();
      await push('2');
      await daemon.reaches(SITE, 'ObserveFailed');
      expect(daemon.loop.status(SITE)?.message).toMatch(/containers: Docker did not answer/);
      await engine.start();
      await settles('2');
    });

    const rob = async (from: string) => {
      // Nobody puts a container back before its image is gone, too.
      const freeze = join(daemon.dir, 'freeze');
      await writeFile(freeze, 'the image goes\n');
      const all = await engine.docker.listContainers({ all: true });
      await Promise.all(all.map(({ Id }) => engine.docker.getContainer(Id).remove({ force: true })));
      await engine.docker.getImage(from).remove({ force: true });
      await rm(freeze);
    };

    test('say that their image is gone, and come back by themselves once somebody loads it', async () => {
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
      }, PATIENCE);
      const loaded = await engine.docker.loadImage(Readable.from([archive]));
      await bytesOf(loaded);
      await settles('1');
    });

    test('get an image of a registry back by themselves', async () => {
      await using registry = await startImageRegistry(engine.docker, image);
      await push('1', registry.image);
      await settles('1', registry.image);
      const pulls = registry.pulls();
      expect(pulls).toBeGreaterThan(0);
      await rob(image);
      await daemon.call('POST', '/sync');
      await settles('1', registry.image);
      expect(registry.pulls()).toBeGreaterThan(pulls);
    });
  });
});

async function bytesOf(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
