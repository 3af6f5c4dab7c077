import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { containersSettings } from '../../support/containers/stage.ts';
import { removeContainers, tagServerImage } from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { containerConfig } from '../../support/tag-server.ts';

const INSTANCE = 'test-teardown';
const TIMEOUT = { timeoutMs: 60_000, intervalMs: 100 };

describeWith('docker', 'a container that can’t be removed', () => {
  const docker = new Docker();
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  let daemon: MemoryDaemon;
  /** While this is set, the engine removes nothing. */
  let stuck = false;
  let refused = 0;
  beforeAll(async () => {
    built = await tagServerImage(docker, INSTANCE);
  });
  afterAll(() => built[Symbol.asyncDispose]());
  beforeEach(async () => {
    const runtime = dockerRuntime({ docker, stopGraceSeconds: 2 });
    const containers = containersApplier(containersSettings(INSTANCE, '127.88'), {
      ...runtime,
      async remove(id, signal) {
        if (stuck) {
          refused += 1;
          throw new RetryableError('Docker answered 500 while removing a container: device or resource busy');
        }
        await runtime.remove(id, signal);
      },
    });
    daemon = await memoryDaemon({}, [containers as never]); // an applier gets only its own changes
  });
  afterEach(async () => {
    await daemon.close();
    await removeContainers(docker, INSTANCE);
  });

  const containers = async () => {
    const all = await docker.listContainers({ all: true });
    return all.filter(({ Names }) => Names.some((name) => name.startsWith(`/tagyard-${INSTANCE}-`)));
  };

  test('doesn’t fail the removal of its site, and is removed once it can be, without another request', async () => {
    const cipher = await encryptSecret(daemon.recipient, containerConfig());
    await daemon.push('acme', daemon.manifest('acme', 1, { image: built.image, containerConfig: cipher }));
    await eventually(() => expect(daemon.loop.status('acme')?.reason).toBe('Ready'), TIMEOUT);
    expect(await containers()).toHaveLength(2);

    stuck = true;
    const answer = await daemon.call('POST', '/deprovision?wait=60', { site: 'acme' });
    expect(answer).toMatchObject({ status: 200, body: { operation: { status: 'succeeded' } } });
    expect(daemon.objectCount('acme')).toBe(0);
    // Both removals are retried, and the status says why the containers still exist.
    await eventually(() => {
      expect(refused).toBeGreaterThan(2);
      expect(daemon.loop.status('acme')?.message).toContain('device or resource busy');
    }, TIMEOUT);
    expect(await containers()).toHaveLength(2);

    stuck = false;
    await eventually(async () => expect(await containers()).toEqual([]), TIMEOUT);
    await eventually(() => expect(daemon.loop.status('acme')?.reason ?? 'Removed').toBe('Removed'), TIMEOUT);
  });
});
