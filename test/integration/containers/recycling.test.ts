import Docker from 'dockerode';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { Recycling } from '../../../gitops/appliers/containers/recycling.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { containersSettings, healthOf, slotUrl } from '../../support/containers/stage.ts';
import {
  checkedRelease,
  removeContainers,
  tagServerImage,
} from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { containerConfig, containerSecret } from '../../support/tag-server.ts';

const INSTANCE = 'test-recycle';
const SITE = 'acme';
const TIMEOUT = { timeoutMs: 90_000, intervalMs: 100 };

describeWith('docker', 'a container that reports itself unhealthy', () => {
  const docker = new Docker();
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  let image: string;
  let daemon: MemoryDaemon | undefined;
  beforeAll(async () => {
    built = await tagServerImage(docker, INSTANCE);
    image = await checkedRelease(docker, built);
  });
  afterAll(() => built[Symbol.asyncDispose]());
  afterEach(async () => {
    await daemon?.close();
    await removeContainers(docker, INSTANCE);
  });

  test('is replaced at once by another beside it: its own health check triggers a pass', async () => {
    const recycling = new Recycling({ days: 10, now: () => 0 });
    const settings = containersSettings(INSTANCE, '127.95', { recycling });
    const containers = containersApplier(settings, dockerRuntime({ docker, stopGraceSeconds: 2 }));
    daemon = await memoryDaemon({}, [containers as never]); // an applier gets only its own changes
    const { push, recipient, manifest, loop } = daemon;
    const extra = { image, containerConfig: await encryptSecret(recipient, containerConfig()) };
    await push(SITE, manifest(SITE, 1, extra));
    const serving = () => {
      const loaded = { ...loadedManifest(SITE, 1, { image }), config: containerSecret() };
      const [processing] = containers.desired(loaded);
      if (processing === undefined) throw new Error('there is no container');
      return processing.spec;
    };
    const settled = () =>
      eventually(async () => {
        expect(loop.status(SITE)).toMatchObject({ message: '', reason: 'Ready' });
        expect(await healthOf(serving())).toBe(200);
        // The engine reports a change to unhealthy only after it has found the container healthy.
        const all = await docker.listContainers({ all: true });
        const ours = all.filter(({ Names }) => Names[0]?.startsWith(`/tagyard-${INSTANCE}-`));
        expect(ours.map(({ Status }) => Status)).toEqual(
          Array(2).fill(expect.stringMatching(/\(healthy\)$/)),
        );
      }, TIMEOUT);
    await settled();
    const before = serving();
    const passes = loop.passes;

    const aged = await request(`${slotUrl(before)}/tagyard-demo/age?days=20`, {
      method: 'POST',
      reset: true,
    });
    await aged.body.dump();
    await eventually(() => expect(loop.passes).toBeGreaterThan(passes), TIMEOUT);
    await eventually(() => expect(recycling.edition(SITE)).toMatch(/\+1$/), TIMEOUT);
    await settled();
    expect(serving().address).not.toBe(before.address);
    expect(await healthOf(before)).toBe(0);
  });
});
