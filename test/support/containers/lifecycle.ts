import { once } from 'node:events';
import http from 'node:http';
import { createServer } from 'node:net';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { GivenUpError, RetryableError, TerminalError } from '../../../base/errors.ts';
import type { ContainersSettings } from '../../../gitops/appliers/containers/applier.ts';
import { Recycling } from '../../../gitops/appliers/containers/recycling.ts';
import type { ContainerSpec } from '../../../sites/manifest/containers.ts';
import { eventually } from '../eventually.ts';
import { containerSecret, FOREIGN_PREVIEW } from '../tag-server.ts';
import {
  containersStage,
  healthOf,
  isOfProcessing,
  PREVIEW,
  PROCESSING,
  type RuntimeUnderTest,
  slotUrl,
} from './stage.ts';

const DAY_MS = 86_400_000;

/** The lifecycle of containers with any runtime: start, age, stop on demand, removal. */
export function containersLifecycle(
  settings: ContainersSettings,
  setup: () => Promise<RuntimeUnderTest>,
): void {
  const stage = containersStage(settings, setup);
  const { signal, site, build, planOf, applyAll, up, specAt, names } = stage;
  type Applier = ReturnType<typeof build>;

  const another = () => site({ config: containerSecret({ env: '2' }) });
  const age = async (spec: ContainerSpec, days: number) => {
    const { body } = await request(`${slotUrl(spec)}/tagyard-demo/age?days=${days}`, {
      method: 'POST',
      reset: true,
    });
    await body.dump();
  };
  const opsOf = async (applier: Applier, manifest = site()) =>
    (await planOf(applier, manifest)).map(({ op }) => op).sort();
  const failureOf = async (work: Promise<unknown>): Promise<Error> => {
    const [outcome] = await Promise.allSettled([work]);
    if (outcome?.status === 'fulfilled') throw new Error('it did not fail');
    return outcome?.reason as Error; // appliers throw nothing else
  };

  test('lets a first container serve as soon as it is healthy', async () => {
    const applier = build({ steadyMs: 600_000 });
    const specs = await up(applier, site());
    expect(await Promise.all(specs.map(healthOf))).toEqual([200, 200]);
  });

  test('keeps the old container if the new one is healthy for a moment only', async () => {
    const applier = build({ steadyMs: 60_000 });
    const old = await up(applier, site());
    const change = (await planOf(applier, another())).find(
      ({ key, op }) => op === 'create' && key.includes('processing'),
    );
    if (change?.desired === undefined) throw new Error('nothing to do');
    const { spec } = change.desired;
    const failed = failureOf(applier.apply(change, signal));
    // More than 20 healthy probes: by then the applier's own probes have succeeded, too.
    let seen = 0;
    await eventually(async () => {
      expect(await healthOf(spec)).toBe(200);
      seen += 1;
      expect(seen).toBeGreaterThan(20);
    });
    await age(spec, 20);
    expect((await failed).message).toMatch(/healthy after \d+ ms, it reported itself unhealthy soon after/);
    expect(await names()).toHaveLength(2);
    expect(await Promise.all(old.map(healthOf))).toEqual([200, 200]);
  });

  test('starts another container beside one that serves and is unhealthy', async () => {
    const recycling = new Recycling({ days: 0, now: Date.now });
    const applier = build({ recycling });
    const before = specAt(await up(applier, site()), PROCESSING);
    await age(before, 20);
    const changes = await planOf(applier, site());
    expect(changes.map(({ op }) => op)).toEqual(['update']);
    const listening = new AbortController();
    const triggered = applier.events?.(listening.signal)[Symbol.asyncIterator]().next();
    await applyAll(applier, changes);
    // It still serves, and a new edition is due: the applier triggers a pass.
    await triggered;
    listening.abort();
    expect(await healthOf(before)).toBe(503);
    expect(applier.edition?.(site())).toMatch(/^0\+1 /);
    expect(await opsOf(applier)).toEqual(['create', 'create', 'delete', 'delete']);
    const [after] = await up(applier, site());
    expect(after?.address).not.toBe(before.address);
    expect(await opsOf(applier)).toEqual([]);
    expect(await healthOf(before)).toBe(0);
  });

  test('replaces containers after a number of days, before age makes them unhealthy', async () => {
    let now = 0;
    const applier = build({ recycling: new Recycling({ days: 10, now: () => now }) });
    await up(applier, site());
    now = 10 * DAY_MS;
    expect(await opsOf(applier)).toEqual(['create', 'create', 'delete', 'delete']);
    const specs = await up(applier, site());
    expect(await opsOf(applier)).toEqual([]);
    expect(await Promise.all(specs.map(healthOf))).toEqual([200, 200]);
  });

  test('gives up a spec that fails every time, with the reason', async () => {
    const applier = build({ giveUpAfter: 4 });
    const broken = site({ config: containerSecret({ auth: 'bad' }) });
    const change = (await planOf(applier, broken)).find(isOfProcessing);
    if (change === undefined) throw new Error('nothing to do');
    const errors: Error[] = [];
    for (let time = 0; time < 4; time += 1) errors.push(await failureOf(applier.apply(change, signal)));
    expect(errors.map((error) => error.constructor)).toEqual([
      RetryableError,
      RetryableError,
      TerminalError,
      GivenUpError,
    ]);
    expect(errors[3]?.message).toContain('exit code 1');
    expect(errors[3]?.message).toContain('Google refuses its CONTAINER_CONFIG (status 403)');
    expect(errors[3]?.message).toContain('4 times in a row');
    // Once no site wants the spec any more, its failures are forgotten.
    await planOf(applier, another());
    expect((await failureOf(applier.apply(change, signal))).constructor).toBe(RetryableError);
  });

  test('never gives up a spec that was healthy before', async () => {
    const { runtime } = stage.world;
    let refused = false;
    const start: typeof runtime.start = async (launch, within) => {
      const spec = { ...launch.spec, config: containerSecret({ auth: 'bad' }) };
      return await runtime.start(refused ? { ...launch, spec } : launch, within);
    };
    const applier = build({ giveUpAfter: 4 }, { ...runtime, start });
    await up(applier, site());
    const found = (await stage.containers()).find(({ name }) => name.includes('-processing-'));
    await runtime.remove(found?.id ?? '', signal);
    const change = (await planOf(applier, site())).find(isOfProcessing);
    if (change === undefined) throw new Error('nothing to do');
    refused = true;
    const errors: Error[] = [];
    for (let time = 0; time < 5; time += 1) errors.push(await failureOf(applier.apply(change, signal)));
    expect(errors.filter((error) => error instanceof GivenUpError)).toEqual([]);
    refused = false;
    await applier.apply(change, signal);
    expect(await opsOf(applier)).toEqual([]);
  });

  test('completes a request in progress before its container is removed', async () => {
    const applier = build();
    const spec = specAt(await up(applier, site()), PROCESSING);
    const slow = http.request(`${slotUrl(spec)}/g/collect`, { method: 'POST', agent: false });
    slow.write('en=first&');
    await once(slow, 'socket');
    const deletes = applier.plan([], await applier.observe([], signal)).changes;
    const removal = applyAll(applier, deletes);
    // The container without requests is removed; the other one waits.
    await eventually(async () => expect(await names()).toHaveLength(1));
    slow.end('en=last');
    const [answer] = (await once(slow, 'response')) as [http.IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(200);
    await removal;
    expect(await names()).toEqual([]);
  });

  test('releases a slot only when another process can use it', async () => {
    const applier = build();
    const specs = await up(applier, site());
    await applyAll(applier, applier.plan([], await applier.observe([], signal)).changes);
    for (const { boundAddress, port } of specs) {
      const server = createServer().listen(port, boundAddress);
      await once(server, 'listening');
      server.close();
    }
  });

  const onDemandSite = () => {
    const manifest = site();
    const preview = { ...manifest.resources.preview, onDemand: true };
    return { ...manifest, resources: { ...manifest.resources, preview } };
  };
  const stoppedNames = async () => {
    const all = await stage.containers();
    return all.filter(({ stopped }) => stopped).map(({ name }) => name.replace(/-[0-9a-f]{8}$/, ''));
  };
  const PREVIEW_SERVER = [`tagyard-${settings.identity.instance}-acme-shop-preview-0`];

  test('stops a preview server without clients, and starts it for the first requests', async () => {
    const applier = build({ previewIdleMs: 200 });
    const specs = await up(applier, onDemandSite());
    await eventually(async () => expect(await stoppedNames()).toEqual(PREVIEW_SERVER));
    // A stopped preview server is as desired, so nothing is to be done.
    expect(await opsOf(applier, onDemandSite())).toEqual([]);
    const visits = await Promise.all(
      [1, 2, 3].map(async () => {
        const { statusCode, body } = await request(`${slotUrl(specAt(specs, PREVIEW))}${FOREIGN_PREVIEW}`, {
          reset: true,
        });
        return [statusCode, (await body.text()).includes('Preview failed to load')];
      }),
    );
    expect(visits).toEqual([1, 2, 3].map(() => [200, true]));
    await eventually(async () => expect(await stoppedNames()).toEqual(PREVIEW_SERVER));
    await applier.close?.();
  });

  test('takes over a stopped preview server in the next daemon, and starts it on demand', async () => {
    const { runtime } = stage.world;
    const first = build({ previewIdleMs: 200 }, { ...runtime, close: async () => undefined });
    const specs = await up(first, onDemandSite());
    await eventually(async () => expect(await stoppedNames()).toEqual(PREVIEW_SERVER));
    await first.close?.();
    expect(await healthOf(specAt(specs, PREVIEW))).toBe(0);
    const next = build();
    expect(await opsOf(next, onDemandSite())).toEqual(['update']);
    await up(next, onDemandSite());
    expect(await stoppedNames()).toEqual(PREVIEW_SERVER);
    expect(await healthOf(specAt(specs, PREVIEW))).toBe(200);
    expect(await stoppedNames()).toEqual([]);
    expect(await opsOf(next, onDemandSite())).toEqual([]);
    await next.close?.();
  });

  /** A clock on which the pauses between probes take a twentieth of their time. */
  const fast: Clock = {
    ...systemClock,
    now: () => systemClock.now() * 20,
    sleep: (ms, options) => systemClock.sleep(ms / 20, options),
  };
  test.each([
    ['processing', /^processing server 0 fails its health check since \S+Z \(GET \/healthz: no answer\)/],
    ['preview', /^the preview server fails its health check since /],
  ])(
    'says that a %s server without answers doesn’t serve, until it has been repaired',
    async (role, said) => {
      const logged: string[] = [];
      const log = { info: (_: object, text: string) => logged.push(text), warn: () => undefined };
      const applier = build({ clock: fast, log });
      await up(applier, site());
      const ended = new AbortController();
      const events = applier.events?.(ended.signal)[Symbol.asyncIterator]();
      const triggered = events?.next();
      const name = (await names()).find((one) => one.includes(`-${role}-`)) ?? '';
      expect(applier.faultOf?.('acme-shop')).toBeNull();
      await stage.world.freeze(name);
      expect(await triggered).toMatchObject({ value: 'acme-shop' });
      const fault = applier.faultOf?.('acme-shop');
      expect(fault).toMatch(said);
      expect(applier.faultOf?.('another')).toBeNull();
      const others = role === 'processing' ? [] : [expect.stringContaining('acme-shop/processing/0/')];
      expect(applier.serving?.('acme-shop')).toEqual(others);
      expect(applier.serving?.('another')).toEqual([]);
      const changes = await planOf(applier, site());
      expect(changes.map(({ op }) => op)).toEqual(['update']);
      const repairing = applyAll(applier, changes);
      expect(applier.faultOf?.('acme-shop')).toBe(fault);
      await repairing;
      // It has answered only once.
      expect(applier.faultOf?.('acme-shop')).toBe(fault);
      await eventually(() => expect(applier.faultOf?.('acme-shop')).toBeNull());
      expect(logged).toEqual([expect.stringMatching(/ answers its health check again$/)]);
      ended.abort();
    },
  );

  test('a container that is removed on purpose is no outage', async () => {
    const applier = build({ clock: fast });
    await up(applier, site());
    const ended = new AbortController();
    const triggered = applier.events?.(ended.signal)[Symbol.asyncIterator]().next();
    await applyAll(applier, applier.plan([], await applier.observe([], signal)).changes);
    // The watch of the next container shows that its rounds go on.
    await up(applier, another());
    await stage.world.freeze((await names()).find((one) => one.includes('-processing-')) ?? '');
    await triggered;
    await eventually(() =>
      expect(applier.faultOf?.('acme-shop')).toMatch(/^processing server 0 fails[^;]*$/),
    );
    ended.abort();
  });

  const isFree = async ({ address, port }: ContainerSpec) => {
    const server = createServer().listen(port, address);
    const free = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    return free;
  };

  test('closes the port gate of a container that vanished and is not desired any more', async () => {
    const applier = build({ previewIdleMs: 200 });
    const preview = specAt(await up(applier, onDemandSite()), PREVIEW);
    await eventually(async () => expect(await stoppedNames()).toEqual(PREVIEW_SERVER));
    const found = (await stage.containers()).find(({ stopped }) => stopped);
    await stage.world.runtime.remove(found?.id ?? '', signal);
    // An observation of other sites doesn't concern this one.
    await applier.observe([], signal, { sites: new Set(['elsewhere']), keys: new Set() });
    expect(await isFree(preview)).toBe(false);
    await applier.observe([], signal);
    expect(await isFree(preview)).toBe(true);
    await applier.close?.();
  });

  test('starts a container again that was removed while it was stopped, and its client waits for that', async () => {
    const applier = build({ previewIdleMs: 200 });
    const specs = await up(applier, onDemandSite());
    await eventually(async () => expect(await stoppedNames()).toEqual(PREVIEW_SERVER));
    const found = (await stage.containers()).find(({ stopped }) => stopped);
    await stage.world.runtime.remove(found?.id ?? '', signal);
    const visit = request(`${slotUrl(specAt(specs, PREVIEW))}/healthz`, { reset: true });
    expect(await opsOf(applier, onDemandSite())).toEqual(['create']);
    await up(applier, onDemandSite());
    const { statusCode, body } = await visit;
    await body.dump();
    expect(statusCode).toBe(200);
    await applier.close?.();
  });
}
