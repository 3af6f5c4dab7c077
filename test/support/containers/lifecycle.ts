import { once } from 'node:events';
import http from 'node:http';
import { createServer } from 'node:net';
import { request } from 'undici';
import { expect, test } from 'vitest';
import type { ContainersSettings } from '../../../gitops/appliers/containers/applier.ts';
import { Recycling } from '../../../gitops/appliers/containers/recycling.ts';
import { GivenUpError, RetryableError, TerminalError } from '../../../gitops/base/errors.ts';
import type { ContainerSpec } from '../../../gitops/manifest/containers.ts';
import { eventually } from '../eventually.ts';
import { containerSecret } from '../tag-server.ts';
import { containersStage, healthOf, PREVIEW, PROCESSING, type RuntimeUnderTest, slotUrl } from './stage.ts';

const DAY_MS = 86_400_000;

/** How containers come, age, rest and go, whatever they run on. */
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

  test('lets a first start serve at once', async () => {
    const applier = build({ steadyMs: 600_000 });
    const specs = await up(applier, site());
    expect(await Promise.all(specs.map(healthOf))).toEqual([200, 200]);
  });

  test('takes no new one that is healthy for a moment only, and keeps the old', async () => {
    const applier = build({ steadyMs: 60_000 });
    const old = await up(applier, site());
    const change = (await planOf(applier, another())).find(
      ({ key, op }) => op === 'create' && key.includes('processing'),
    );
    if (change?.desired === undefined) throw new Error('nothing to do');
    const { spec } = change.desired;
    const failed = failureOf(applier.apply(change, signal));
    // Seen healthy often enough for the applier, which asks in this very process, to have seen it too.
    let seen = 0;
    await eventually(async () => {
      expect(await healthOf(spec)).toBe(200);
      seen += 1;
      expect(seen).toBeGreaterThan(20);
    });
    await age(spec, 20);
    expect((await failed).message).toMatch(
      /healthy after \d+ ms, it answered that it is not healthy soon after/,
    );
    expect(await names()).toHaveLength(2);
    expect(await Promise.all(old.map(healthOf))).toEqual([200, 200]);
  });

  test('replaces one that serves but asks to be replaced by another beside it', async () => {
    const recycling = new Recycling({ days: 0, now: Date.now });
    const applier = build({ recycling });
    const before = specAt(await up(applier, site()), PROCESSING);
    await age(before, 20);
    const changes = await planOf(applier, site());
    expect(changes.map(({ op }) => op)).toEqual(['update']);
    const listening = new AbortController();
    const heard = applier.events?.(listening.signal)[Symbol.asyncIterator]().next();
    await applyAll(applier, changes);
    // It still serves, and another one is wished for: the loop is told to look again.
    await heard;
    listening.abort();
    expect(await healthOf(before)).toBe(503);
    expect(applier.edition?.(site())).toBe('0+1');
    expect(await opsOf(applier)).toEqual(['create', 'create', 'delete', 'delete']);
    const [after] = await up(applier, site());
    expect(after?.address).not.toBe(before.address);
    expect(await opsOf(applier)).toEqual([]);
    expect(await healthOf(before)).toBe(0);
  });

  test('replaces them before they are too old, by the date alone', async () => {
    let now = 0;
    const applier = build({ recycling: new Recycling({ days: 10, now: () => now }) });
    await up(applier, site());
    now = 10 * DAY_MS;
    expect(await opsOf(applier)).toEqual(['create', 'create', 'delete', 'delete']);
    const specs = await up(applier, site());
    expect(await opsOf(applier)).toEqual([]);
    expect(await Promise.all(specs.map(healthOf))).toEqual([200, 200]);
  });

  test('gives a spec up that fails every time, and says why', async () => {
    const applier = build({ giveUpAfter: 4 });
    const broken = site({ config: containerSecret({ auth: 'bad' }) });
    const [change] = await planOf(applier, broken);
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
  });

  test('never gives one up that was healthy before', async () => {
    const { runtime } = stage.world;
    let refused = false;
    const start: typeof runtime.start = async (launch, within) => {
      const spec = { ...launch.spec, config: containerSecret({ auth: 'bad' }) };
      return await runtime.start(refused ? { ...launch, spec } : launch, within);
    };
    const applier = build({ giveUpAfter: 4 }, { ...runtime, start });
    await up(applier, site());
    const [found] = await stage.containers();
    await runtime.remove(found?.id ?? '', signal);
    const [change] = await planOf(applier, site());
    if (change === undefined) throw new Error('nothing to do');
    refused = true;
    const errors: Error[] = [];
    for (let time = 0; time < 5; time += 1) errors.push(await failureOf(applier.apply(change, signal)));
    expect(errors.filter((error) => error instanceof GivenUpError)).toEqual([]);
    refused = false;
    await applier.apply(change, signal);
    expect(await opsOf(applier)).toEqual([]);
  });

  test('lets a request end that is under way when its container goes', async () => {
    const applier = build();
    const spec = specAt(await up(applier, site()), PROCESSING);
    const slow = http.request(`${slotUrl(spec)}/g/collect`, { method: 'POST', agent: false });
    slow.write('en=first&');
    await once(slow, 'socket');
    const deletes = applier.plan([], await applier.observe([], signal)).changes;
    const gone = applyAll(applier, deletes);
    // Everything that has no request under way is gone; this one waits.
    await eventually(async () => expect(await names()).toHaveLength(1));
    slow.end('en=last');
    const [answer] = (await once(slow, 'response')) as [http.IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(200);
    await gone;
    expect(await names()).toEqual([]);
  });

  test('gives a slot back only when it can be had', async () => {
    const applier = build();
    const specs = await up(applier, site());
    await applyAll(applier, applier.plan([], await applier.observe([], signal)).changes);
    for (const { boundAddress, port } of specs) {
      const server = createServer().listen(port, boundAddress);
      await once(server, 'listening');
      server.close();
    }
  });

  const thrifty = () => {
    const manifest = site();
    const preview = { ...manifest.resources.preview, onDemand: true };
    return { ...manifest, resources: { ...manifest.resources, preview } };
  };
  const asleep = async () => {
    const all = await stage.containers();
    return all.filter(({ stopped }) => stopped).map(({ name }) => name.replace(/-[0-9a-f]{8}$/, ''));
  };
  const REST = [`tagyard-${settings.identity.instance}-acme-shop-preview-0`];

  test('rests while nobody previews, and the first request waits for it', async () => {
    const applier = build({ previewIdleMs: 200 });
    const specs = await up(applier, thrifty());
    await eventually(async () => expect(await asleep()).toEqual(REST));
    // At rest is as it should be.
    expect(await opsOf(applier, thrifty())).toEqual([]);
    const visits = await Promise.all(
      [1, 2, 3].map(async () => {
        const { statusCode, body } = await request(`${slotUrl(specAt(specs, PREVIEW))}/gtm/debug`, {
          reset: true,
        });
        return [statusCode, (await body.text()).includes('Preview failed to load')];
      }),
    );
    expect(visits).toEqual([1, 2, 3].map(() => [200, true]));
    await eventually(async () => expect(await asleep()).toEqual(REST));
    await applier.close?.();
  });

  test('is found at rest by the next daemon, and wakes up for it', async () => {
    const { runtime } = stage.world;
    const first = build({ previewIdleMs: 200 }, { ...runtime, close: async () => undefined });
    const specs = await up(first, thrifty());
    await eventually(async () => expect(await asleep()).toEqual(REST));
    await first.close?.();
    expect(await healthOf(specAt(specs, PREVIEW))).toBe(0);
    const next = build();
    expect(await opsOf(next, thrifty())).toEqual(['update']);
    await up(next, thrifty());
    expect(await asleep()).toEqual(REST);
    expect(await healthOf(specAt(specs, PREVIEW))).toBe(200);
    expect(await asleep()).toEqual([]);
    expect(await opsOf(next, thrifty())).toEqual([]);
    await next.close?.();
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

  test('gives up the place of one that went without it and is not wanted any more', async () => {
    const applier = build({ previewIdleMs: 200 });
    const preview = specAt(await up(applier, thrifty()), PREVIEW);
    await eventually(async () => expect(await asleep()).toEqual(REST));
    const found = (await stage.containers()).find(({ stopped }) => stopped);
    await stage.world.runtime.remove(found?.id ?? '', signal);
    // A look at other sites says nothing of this one.
    await applier.observe([], signal, { sites: new Set(['elsewhere']), keys: new Set() });
    expect(await isFree(preview)).toBe(false);
    await applier.observe([], signal);
    expect(await isFree(preview)).toBe(true);
    await applier.close?.();
  });

  test('takes the place over from another that is to stand there no more', async () => {
    const applier = build();
    const preview = specAt(await up(applier, thrifty()), PREVIEW);
    const desired = applier.desired(thrifty())[PREVIEW];
    if (desired === undefined) throw new Error('there is no preview server');
    const hash = 'f'.repeat(64);
    const next = { ...desired, hash, key: 'acme-shop/preview/0/ffffffff', spec: { ...preview, hash } };
    const [change] = applier.plan([next], []).changes;
    if (change === undefined) throw new Error('nothing to do');
    await applier.apply(change, signal);
    expect(await healthOf(preview)).toBe(200);
    await applier.close?.();
  });

  test('brings one back that was removed while it rested, and keeps its visitor waiting for that', async () => {
    const applier = build({ previewIdleMs: 200 });
    const specs = await up(applier, thrifty());
    await eventually(async () => expect(await asleep()).toEqual(REST));
    const found = (await stage.containers()).find(({ stopped }) => stopped);
    await stage.world.runtime.remove(found?.id ?? '', signal);
    const visit = request(`${slotUrl(specAt(specs, PREVIEW))}/healthz`, { reset: true });
    expect(await opsOf(applier, thrifty())).toEqual(['create']);
    await up(applier, thrifty());
    const { statusCode, body } = await visit;
    await body.dump();
    expect(statusCode).toBe(200);
    await applier.close?.();
  });
}
