import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatMark } from '../../../base/ownership.ts';
import { containerName } from '../../../gitops/appliers/containers/desired.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { followedRuntime } from '../../../gitops/appliers/containers/followed-runtime.ts';
import { ContainerLogs } from '../../../gitops/container-logs/container-logs.ts';
import type { ContainerLog } from '../../../gitops/report/container-logs.ts';
import { containerSpecs } from '../../../sites/manifest/containers.ts';
import { describeWith } from '../../support/components.ts';
import { containersSettings } from '../../support/containers/stage.ts';
import {
  changedRelease,
  removeContainers,
  tagServerImage,
} from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { signal, signalContainer } from '../../support/signal.ts';

const INSTANCE = 'test-output';
const SITE = 'acme-shop';
const SETTINGS = containersSettings(INSTANCE, '127.85');
const FOLLOWER = fileURLToPath(new URL('../../support/containers/follower-main.ts', import.meta.url));
/** Numbered lines on both streams, a flood on request, and a last line. */
const PRINTER = `
  let count = 0;
  setInterval(() => {
    for (let index = 0; index < 5; index += 1, count += 1)
      (count % 3 === 0 ? console.error : console.log)(JSON.stringify({ Name: 'printer', Type: 'Message', Message: 'line ' + count }));
  }, 20);
  process.once('SIGUSR2', () => { for (let index = 0; index < 30000; index += 1) console.log('flood'); console.log('after'); });
  process.once('SIGTERM', () => { console.log('the last line'); process.exit(0); });`;

const numbersOf = (lines: readonly ContainerLog[]): number[] =>
  lines.flatMap(({ message }) => /^line (\d+)$/.exec(message ?? '')?.[1] ?? []).map(Number);

describeWith('docker', 'the output of containers in Docker', () => {
  const docker = new Docker();
  const never = new AbortController().signal;
  const warn = (fields: object, message: string) => {
    throw new Error(message, { cause: fields });
  };
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  let dir: string;
  let image: string;
  beforeAll(async () => {
    built = await tagServerImage(docker, INSTANCE);
    image = await changedRelease(docker, built, PRINTER);
    dir = await mkdtemp(join(tmpdir(), 'tagyard-output-'));
  });
  afterAll(async () => {
    await built[Symbol.asyncDispose]();
    await rm(dir, { recursive: true });
  });

  const launch = () => {
    const [spec] = containerSpecs({ ...loadedManifest(SITE), image }, SETTINGS);
    if (spec === undefined) throw new Error('the site has no containers');
    return {
      name: containerName(INSTANCE, spec),
      mark: formatMark(SETTINGS.identity, SITE, spec.hash),
      spec,
    };
  };
  const storeIn = async (folder: string, linesPerSecond: number) => {
    const options = { kept: 'all', keepDays: 7, megabytes: 8, linesPerSecond, log: { warn } } as const;
    const store = new ContainerLogs({ dir: join(dir, folder), ...options });
    await store.open();
    return store;
  };
  const everything = async (store: ContainerLogs): Promise<ContainerLog[]> => {
    const { logs, position } = await store.newer(SITE, { limit: 100_000, after: '0' }, 0, never);
    expect(position).not.toBe('0');
    return logs;
  };

  test('is kept once and without a gap, whatever is killed or restarted', async () => {
    const bare = dockerRuntime({ docker, stopGraceSeconds: 2 });
    const id = await bare.start(launch(), never);
    const folder = join(dir, 'kills');
    const follow = async (): Promise<ChildProcess> => {
      const child = spawn(process.execPath, [FOLLOWER, folder, INSTANCE], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(child.stdout as NonNullable<typeof child.stdout>, 'data');
      return child;
    };
    const read = async () => {
      const store = await storeIn('kills', 1_000);
      const lines = await everything(store);
      await store.close();
      return lines;
    };
    for (const name of ['SIGKILL', 'SIGKILL', 'SIGTERM'] as const) {
      const child = await follow();
      const before = await read().then(
        (lines) => lines.length,
        () => 0,
      );
      await eventually(async () => expect((await read()).length).toBeGreaterThan(before + 100));
      const ended = once(child, 'exit');
      signal(child.pid ?? 0, name);
      await ended;
    }
    // The process in the container dies, and the engine starts it again: its count starts again.
    const { State } = await docker.getContainer(id).inspect();
    await signalContainer(docker, { container: id, instance: INSTANCE }, 'SIGKILL');
    await eventually(async () => {
      const again = await docker.getContainer(id).inspect();
      expect(again.State).toMatchObject({ Running: true });
      expect(again.State.Pid).not.toBe(State.Pid);
    });

    const store = await storeIn('kills', 1_000);
    const runtime = followedRuntime(bare, { identity: SETTINGS.identity, sink: store, log: { warn } });
    await runtime.list(new Set(), never);
    await eventually(async () => {
      const numbers = numbersOf(await everything(store));
      expect(numbers.filter((number) => number === 10)).toHaveLength(2);
    });
    await runtime.remove(id, never);
    await runtime.close();
    const lines = await everything(store);
    await store.close();
    expect(lines.some(({ message }) => message === 'the last line')).toBe(true);
    expect(lines.every(({ dropped }) => dropped === null)).toBe(true);
    // Each stream is in order, and its count starts again with each run of the process.
    for (const stream of ['stdout', 'stderr'] as const) {
      const expected = (count: number) => {
        const all = Array.from({ length: 3 * count + 3 }, (_, number) => number);
        return all.filter((number) => (number % 3 === 0) === (stream === 'stderr')).slice(0, count);
      };
      const numbers = numbersOf(lines.filter((line) => line.stream === stream));
      const second = numbers.findIndex((number, index) => number < (numbers[index - 1] ?? 0));
      for (const run of [numbers.slice(0, second), numbers.slice(second)]) {
        expect(run.length).toBeGreaterThan(5);
        expect(run).toEqual(expected(run.length));
      }
    }
    expect(lines.find(({ message }) => message === 'line 3')).toMatchObject({
      ...{ stream: 'stderr', level: 'error', source: 'processing/0', kind: 'tag', name: 'printer' },
    });
  });

  test('is cut in a flood, and each line that was not kept is counted', async () => {
    const store = await storeIn('flood', 20);
    const bare = dockerRuntime({ docker, stopGraceSeconds: 2 });
    const runtime = followedRuntime(bare, { identity: SETTINGS.identity, sink: store, log: { warn } });
    const id = await runtime.start(launch(), never);
    await eventually(async () => expect(await everything(store)).not.toEqual([]));
    await signalContainer(docker, { container: id, instance: INSTANCE }, 'SIGUSR2');
    await eventually(async () => {
      const counted = (await everything(store)).reduce((sum, { dropped }) => sum + (dropped ?? 0), 0);
      expect(counted).toBeGreaterThan(29_000);
    });
    await runtime.remove(id, never);
    await runtime.close();
    const lines = await everything(store);
    await store.close();
    const kept = lines.filter(({ kind }) => kind !== 'dropped').length;
    const dropped = lines.reduce((sum, one) => sum + (one.dropped ?? 0), 0);
    // Printed were 250 lines a second, the flood, and a few lines of the server itself.
    expect(kept).toBeLessThan(2_000);
    expect(dropped + kept).toBeGreaterThan(30_000);
    await removeContainers(docker, INSTANCE);
  });
});
