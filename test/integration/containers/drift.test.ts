import { once } from 'node:events';
import { createServer } from 'node:net';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import { containerName } from '../../../gitops/appliers/containers/desired.ts';
import { dockerRuntime } from '../../../gitops/appliers/containers/docker-runtime.ts';
import { createOptions } from '../../../gitops/appliers/containers/docker-spec.ts';
import type { ContainerSpec, LoadedManifest } from '../../../sites/manifest/containers.ts';
import { describeWith } from '../../support/components.ts';
import { containersSettings, healthOf } from '../../support/containers/stage.ts';
import { removeContainers, tagServerImage } from '../../support/containers/tag-server-image.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { containerSecret } from '../../support/tag-server.ts';

const INSTANCE = 'test-drift';

/** Changes the processing container of a site from outside. It may return a function that removes an obstacle. */
type Accident = (container: Docker.Container, spec: ContainerSpec) => Promise<unknown>;
type Clearing = () => Promise<unknown>;

describeWith('docker', 'the applier of containers', () => {
  const docker = new Docker();
  const settings = containersSettings(INSTANCE, '127.85');
  const { signal } = new AbortController();
  const build = () => containersApplier(settings, dockerRuntime({ docker, stopGraceSeconds: 2 }));
  let built: Awaited<ReturnType<typeof tagServerImage>>;
  let applier: ReturnType<typeof build>;
  let specs: ContainerSpec[];
  beforeAll(async () => {
    built = await tagServerImage(docker, INSTANCE);
  });
  afterAll(() => built[Symbol.asyncDispose]());
  beforeEach(async () => {
    applier = build();
    specs = applier.desired(site()).map(({ spec }) => spec);
    await converge();
  });
  afterEach(() => removeContainers(docker, INSTANCE));

  const site = (extra: Partial<LoadedManifest> = {}) => ({
    ...loadedManifest(),
    image: built.image,
    ...extra,
  });
  /** An observation that finds another container at a desired address fails; the next one uses other addresses. */
  const planFor = (manifest = site()) =>
    eventually(async () => {
      const desired = applier.desired(manifest);
      const plan = applier.plan(desired, await applier.observe(desired, signal));
      specs = desired.map(({ spec }) => spec);
      return plan;
    });
  const converge = async (manifest = site()) => {
    const { changes } = await planFor(manifest);
    const up = changes.filter(({ op }) => op !== 'delete');
    await Promise.all(up.map((change) => applier.apply(change, signal)));
    const down = changes.filter(({ op }) => op === 'delete');
    await Promise.all(down.map((change) => applier.apply(change, signal)));
  };
  const processing = () => {
    const [spec] = specs;
    if (spec === undefined) throw new Error('there is no container');
    return { spec, container: docker.getContainer(containerName(INSTANCE, spec)) };
  };
  const removed: Accident = (container) => container.remove({ force: true });

  const accidents: [what: string, accident: Accident][] = [
    ['killed by its engine', (container) => container.kill()],
    ['stopped by hand', (container) => container.stop({ t: 1 })],
    ['paused', (container) => container.pause()],
    ['removed', removed],
    ['renamed', (container) => container.rename({ name: `tagyard-${INSTANCE}-mine` })],
    [
      'replaced by one whose label has another hash',
      async (container, spec) => {
        await container.remove({ force: true });
        const mark = `tgy1 ${INSTANCE} tag-1 acme-shop 00000000`;
        await docker.createContainer(createOptions({ name: containerName(INSTANCE, spec), mark, spec }));
      },
    ],
    [
      'cut off from its network',
      (container) => docker.getNetwork('bridge').disconnect({ Container: container.id }),
    ],
    [
      'removed, and its port is taken by another process',
      async (container, spec) => {
        await container.remove({ force: true });
        const thief = createServer().listen(spec.port, spec.address);
        await once(thief, 'listening');
        const clear: Clearing = async () => {
          await expect(converge()).rejects.toThrow(/address already in use|port is already allocated/);
          thief.close();
          await once(thief, 'close');
        };
        return clear;
      },
    ],
    [
      'removed while its site asks for an image that is missing',
      async (container) => {
        await container.remove({ force: true });
        const away = site({ image: `sha256:${'0'.repeat(64)}` });
        await expect(converge(away)).rejects.toThrow(/there is no image sha256:0+ on this host/);
      },
    ],
  ];
  test.each(accidents)('observes and repairs a container that is %s', async (_what, accident) => {
    const { spec, container } = processing();
    const clear = (await accident(container, spec)) as Clearing | Buffer | undefined; // the library answers buffers
    const { changes } = await planFor();
    expect(changes.map(({ op, key }) => `${op} ${key.split('/')[1]}`)).toContainEqual(
      expect.stringMatching(/^(?:create|update) processing$/),
    );
    // The other role is unaffected.
    expect(changes.filter(({ key }) => key.includes('/preview/'))).toEqual([]);
    if (typeof clear === 'function') await clear();
    await converge();
    expect((await planFor()).changes).toEqual([]);
    expect(await Promise.all(specs.map(healthOf))).toEqual([200, 200]);
  });

  test('triggers a pass for each change from outside, but for none of its own', async () => {
    const listening = new AbortController();
    let triggers = 0;
    const follow = (async () => {
      for await (const _ of applier.events?.(listening.signal) ?? []) triggers += 1;
    })();
    // A subscription that isn't complete yet gets no events.
    await eventually(async () => {
      await processing()
        .container.pause()
        .catch(() => undefined);
      await processing().container.unpause();
      expect(triggers).toBeGreaterThan(0);
    });
    const heard = async (accident: () => Promise<unknown>) => {
      const before = triggers;
      await accident();
      await eventually(() => expect(triggers).toBeGreaterThan(before));
    };
    await heard(() => processing().container.kill());
    await heard(() => processing().container.rename({ name: `tagyard-${INSTANCE}-mine` }));
    await converge();
    await heard(() => processing().container.remove({ force: true }));
    await converge();
    const before = triggers;
    await converge(site({ config: containerSecret({ env: '2' }) }));
    // Events arrive in order: the event of this pause follows those of the swap.
    const [last] = (await docker.listContainers()).filter(({ Names }) =>
      Names[0]?.startsWith(`/tagyard-${INSTANCE}-`),
    );
    await docker.getContainer(last?.Id ?? '').pause();
    await eventually(() => expect(triggers).toBe(before + 1));
    listening.abort();
    await follow;
  });

  test('doesn’t replace a foreign container of the same name, and reports an unknown owner', async () => {
    const { spec, container } = processing();
    await container.remove({ force: true });
    const name = containerName(INSTANCE, spec);
    const { id } = await docker.createContainer({ name, Image: built.image, Labels: { owner: 'else' } });
    const { changes, conflicts } = await planFor();
    expect(changes).toEqual([]);
    expect(conflicts).toMatchObject([{ detail: expect.stringContaining('an unknown owner (no mark)') }]);
    expect((await docker.getContainer(id).inspect()).Id).toBe(id);
  });

  const next = () => site({ config: containerSecret({ env: '2' }) });
  const moments = ['created', 'started', 'removed'] as const;
  test.each(moments)(
    'continues a swap that the previous daemon did not complete, after a container was %s',
    async (moment) => {
      const dying = new AbortController();
      const runtime = dockerRuntime({ docker, stopGraceSeconds: 2 });
      const victim = containersApplier(settings, {
        ...runtime,
        async start(launch, within) {
          if (moment === 'created') {
            // The engine has created the container, and the daemon ends before it starts the container.
            await docker.createContainer(createOptions(launch));
            dying.abort();
            within.throwIfAborted();
          }
          const id = await runtime.start(launch, within);
          if (moment === 'started') dying.abort();
          return id;
        },
        async remove(id, within) {
          await runtime.remove(id, within);
          if (moment === 'removed') dying.abort();
        },
      });
      const desired = victim.desired(next());
      const { changes } = victim.plan(desired, await victim.observe(desired, signal));
      for (const change of changes.toSorted(
        (a, b) => Number(a.op === 'delete') - Number(b.op === 'delete'),
      )) {
        await victim.apply(change, dying.signal).catch(() => undefined);
        if (dying.signal.aborted) break;
      }
      expect(dying.signal.aborted).toBe(true);
      // One container of each role served all the time.
      const roles = new Set<string>();
      for (const { Names, State } of await docker.listContainers()) {
        const role = /-(processing|preview)-0-/.exec(
          Names[0]?.startsWith(`/tagyard-${INSTANCE}-`) ? Names[0] : '',
        )?.[1];
        if (role !== undefined && State === 'running') roles.add(role);
      }
      expect([...roles].sort()).toEqual(['preview', 'processing']);

      applier = build();
      await converge(next());
      expect((await planFor(next())).changes).toEqual([]);
      const left = (await docker.listContainers({ all: true })).filter(({ Names }) =>
        Names[0]?.startsWith(`/tagyard-${INSTANCE}-`),
      );
      expect(left).toHaveLength(2);
      expect(await Promise.all(applier.desired(next()).map(({ spec }) => healthOf(spec)))).toEqual([
        200, 200,
      ]);
    },
  );
});
