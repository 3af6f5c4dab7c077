import { request } from 'undici';
import { expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import type { ContainersSettings } from '../../../gitops/appliers/containers/applier.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { testWith } from '../components.ts';
import { eventually } from '../eventually.ts';
import { FACTS, serviceAccountJson } from '../service-account.ts';
import { containerConfig, containerSecret, FOREIGN_PREVIEW } from '../tag-server.ts';
import {
  containersStage,
  healthOf,
  isOfProcessing,
  PREVIEW,
  PROCESSING,
  type RuntimeUnderTest,
  slotUrl,
} from './stage.ts';

/** The behaviour of the containers applier with any runtime. */
export function containersBehaviour(
  settings: ContainersSettings,
  setup: () => Promise<RuntimeUnderTest>,
): void {
  const stage = containersStage(settings, setup);
  const { signal, site, build, planOf, applyAll, up, specAt, containers, names } = stage;

  test('serves both roles, each at its own slot', async () => {
    const applier = build();
    const specs = await up(applier, site());
    for (const spec of specs) expect(await healthOf(spec)).toBe(200);
    await request(`${slotUrl(specAt(specs, PROCESSING))}/g/collect?v=2`);
    const { body } = await request(`${slotUrl(specAt(specs, PROCESSING))}/tagyard-demo/events`);
    expect(await body.json()).toMatchObject({ events: [{ path: '/g/collect', query: 'v=2' }] });
    const debug = await request(`${slotUrl(specAt(specs, PREVIEW))}${FOREIGN_PREVIEW}`);
    expect(await debug.body.text()).toContain('Preview failed to load');
  });

  test('takes headers as long as nginx, which is in front, takes', async () => {
    const specs = await up(build(), site());
    const line = 'x'.repeat(60_000);
    const headers = { cookie: `_ga=${line}`, 'x-one': line, 'x-two': line, 'x-three': line };
    for (const spec of specs) {
      const { statusCode } = await request(`${slotUrl(spec)}/healthz?${line}`, { headers });
      expect(statusCode).toBe(200);
    }
  });

  test('starts a changed spec beside the old one, which serves until it is removed', async () => {
    const applier = build();
    const old = await up(applier, site());
    const changed = site({ config: containerSecret({ env: '2' }) });
    const changes = await planOf(applier, changed);
    expect(changes.map(({ op }) => op).sort()).toEqual(['create', 'create', 'delete', 'delete']);
    await applyAll(
      applier,
      changes.filter(({ op }) => op === 'create'),
    );
    const next = applier.desired(changed).map(({ spec }) => spec);
    for (const spec of [...old, ...next]) expect(await healthOf(spec)).toBe(200);
    await applyAll(
      applier,
      changes.filter(({ op }) => op === 'delete'),
    );
    expect(await Promise.all(old.map(healthOf))).toEqual([0, 0]);
    expect(await Promise.all(next.map(healthOf))).toEqual([200, 200]);
    expect(await planOf(applier, changed)).toEqual([]);
  });

  // Needs root, because the file is given to the container's user.
  testWith('root', 'gives each container the key of a service account in a file of its own', async () => {
    const applier = build();
    await up(applier, site());
    expect(await stage.world.keys()).toEqual([]);
    const withKey = (keyId: string) => {
      const serviceAccountKey = new Secret(JSON.stringify(serviceAccountJson({ private_key_id: keyId })));
      return site({ serviceAccount: { ...FACTS, keyId, key: '' }, serviceAccountKey });
    };
    for (const keyId of ['first', 'second']) {
      const changed = withKey(keyId);
      // Both roles are replaced, each beside its old container.
      const ops = (await planOf(applier, changed)).map(({ op }) => op).sort();
      expect(ops).toEqual(['create', 'create', 'delete', 'delete']);
      await up(applier, changed);
      for (const name of await names()) {
        const { file, project } = await stage.world.account(name);
        expect(JSON.parse(file)).toEqual(serviceAccountJson({ private_key_id: keyId }));
        expect(project).toBe(FACTS.projectId);
      }
      expect((await stage.world.keys()).toSorted()).toEqual((await names()).toSorted());
      expect(await planOf(applier, changed)).toEqual([]);
    }
    await up(applier, site());
    expect(await stage.world.keys()).toEqual([]);
  });

  test('reports a container that died and is restarted', async () => {
    const applier = build();
    const specs = await up(applier, site());
    const listening = new AbortController();
    const events = applier.events?.(listening.signal)[Symbol.asyncIterator]();
    const event = events?.next();
    const [name = ''] = await names();
    // A subscription that isn't complete yet misses events, so the container is killed repeatedly until one arrives.
    let hasEvent = false;
    void event?.then(() => {
      hasEvent = true;
    });
    await eventually(async () => {
      if (!hasEvent) await stage.world.kill(name).catch(() => undefined);
      expect(hasEvent).toBe(true);
    });
    listening.abort();
    await eventually(async () => {
      expect(await Promise.all(specs.map(healthOf))).toEqual([200, 200]);
    });
    expect(await planOf(applier, site())).toEqual([]);
  });

  test('replaces a container that runs and doesn’t answer', async () => {
    const applier = build();
    const specs = await up(applier, site());
    const [name = ''] = await names();
    await stage.world.freeze(name);
    const changes = await planOf(applier, site());
    expect(changes.map(({ op }) => op)).toEqual(['update']);
    await applyAll(applier, changes);
    expect(await Promise.all(specs.map(healthOf))).toEqual([200, 200]);
    expect(await planOf(applier, site())).toEqual([]);
  });

  test('removes a container that dies while it starts, gives the reason without its secret, and keeps the old one', async () => {
    const applier = build();
    const old = await up(applier, site());
    const auth = 'bad';
    const broken = site({ config: containerSecret({ auth }) });
    // Only the processing server fetches its configuration from Google: the preview server would start.
    const creates = (await planOf(applier, broken)).filter(({ op }) => op === 'create');
    const change = creates.find(isOfProcessing);
    const attempt = async () => {
      const [outcome] = await Promise.allSettled([applyAll(applier, change === undefined ? [] : [change])]);
      if (outcome?.status !== 'rejected') throw new Error('it came up');
      return outcome.reason as Error; // appliers throw nothing else
    };
    const errors = [await attempt(), await attempt(), await attempt()];
    for (const error of errors) {
      expect(error.message).toContain('exit code 1');
      expect(error.message).toContain('gtm_auth=[secret] failed with status 403');
      expect(error.message).not.toContain(auth);
      expect(error.message).not.toContain(containerConfig({ auth }));
    }
    expect(errors.map((error) => error.constructor)).toEqual([RetryableError, RetryableError, TerminalError]);
    expect(await names()).toHaveLength(2);
    expect(await Promise.all(old.map(healthOf))).toEqual([200, 200]);
  });

  test('removes a container that is not healthy by the deadline', async () => {
    const { runtime } = stage.world;
    const applier = build(
      { startupDeadlineMs: 300 },
      {
        ...runtime,
        async start(launch, within) {
          const id = await runtime.start(launch, within);
          await stage.world.freeze(launch.name);
          return id;
        },
      },
    );
    const [change] = await planOf(applier, site());
    const applied = applyAll(applier, change === undefined ? [] : [change]);
    await expect(applied).rejects.toThrow(/was not healthy after 300 ms/);
    expect(await names()).toEqual([]);
  });

  test('keeps a container that an aborted change had started, and continues with it', async () => {
    const interrupted = new AbortController();
    const { runtime } = stage.world;
    const applier = build(
      {},
      {
        ...runtime,
        async start(launch, within) {
          const id = await runtime.start(launch, within);
          interrupted.abort();
          return id;
        },
      },
    );
    const [change] = await planOf(applier, site());
    if (change === undefined) throw new Error('nothing to do');
    await expect(applier.apply(change, interrupted.signal)).rejects.toThrow();
    const [left] = await containers();
    expect(left).toBeDefined();

    const again = build();
    await again.apply(change, signal);
    expect((await containers()).map(({ id }) => id)).toEqual([left?.id]);
  });
}
