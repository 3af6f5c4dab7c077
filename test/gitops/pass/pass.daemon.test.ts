import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { TARGETS } from '../../support/gitops/targets.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon();
});
afterEach(() => daemon.close());

async function applied(...names: string[]) {
  for (const [number, name] of names.entries()) await daemon.push(name, daemon.manifest(name, number));
  for (const name of names) await daemon.reaches(name, 'Ready');
  await daemon.fullPass();
  daemon.observations.length = 0;
}

const hostnames = (site: string, edge: string) => ({ ...daemon.manifest(site, 0).hostnames, edge });

describe('a pass', () => {
  test('observes only the site whose manifest changed', async () => {
    await applied('one', 'two', 'three');
    await daemon.push('two', daemon.manifest('two', 1, { name: 'Renamed' }));
    const revision = await daemon.repo.head();
    await eventually(() =>
      expect(daemon.loop.status('two')).toMatchObject({ ready: true, applied: revision }),
    );
    expect(daemon.observations).toMatchObject(TARGETS.map((target) => ({ target, sites: ['two'] })));
    // The status of the others shows that revision too, because it doesn't change them.
    expect(daemon.loop.status('one')).toMatchObject({ ready: true, applied: revision });
  });

  test('deletes what the manifest no longer asks for, without a full pass', async () => {
    await applied('one', 'two');
    await daemon.push('two', daemon.manifest('two', 1, { customDomains: ['m.two.example'] }));
    await eventually(() => expect(daemon.of('kv', 'two')).toContain('m.two.example'));
    await daemon.reaches('two', 'Ready');
    await daemon.push('two', daemon.manifest('two', 1));
    await eventually(() => expect(daemon.objectCount('two')).toBe(TARGETS.length));
    expect(daemon.observations.filter(({ sites }) => sites === null)).toEqual([]);
  });

  test('observes everything before a removal, after the interval, and on request', async () => {
    await applied('one', 'two');
    await daemon.push('two', null);
    await daemon.reaches('two', 'Removed');
    expect(daemon.observations[0]).toMatchObject({ target: 'containers', sites: null });
    daemon.observations.length = 0;
    await daemon.call('POST', '/sync');
    await eventually(() =>
      expect(daemon.observations).toContainEqual(expect.objectContaining({ target: 'dns', sites: null })),
    );
    await daemon.restart({ intervalSeconds: 0.05 });
    daemon.observations.length = 0;
    await eventually(() => expect(daemon.observations.length).toBeGreaterThan(3 * TARGETS.length));
    expect(daemon.observations.every(({ sites }) => sites === null)).toBe(true);
  });

  test('doesn’t delete a name that another site has taken over', async () => {
    await applied('one', 'two');
    const name = 'moved.example.net';
    const object = () => [...daemon.world('kv')].find(([key]) => key === name);
    // The other site's manifest asks for the name, but the object still has the mark of the first site.
    await daemon.push('two', daemon.manifest('two', 1, { hostnames: hostnames('two', name) }));
    await eventually(() => expect(daemon.of('kv', 'two')).toContain(name));
    await daemon.reaches('two', 'Ready');
    const mark = daemon.world('kv').get('one.example.net')?.mark ?? null;
    daemon.world('kv').set(name, { mark, hash: 'as it was' });
    daemon.applied.length = 0;
    await daemon.push('one', daemon.manifest('one', 0, { name: 'Renamed' }));
    await eventually(() => expect(daemon.applied.length).toBeGreaterThanOrEqual(TARGETS.length));
    await daemon.reaches('one', 'Ready');
    expect(object()).toBeDefined();
    expect(daemon.applied.filter(({ op }) => op === 'delete')).toEqual([]);
  });

  test('observes nothing if nothing has changed', async () => {
    await applied('one');
    const before = daemon.loop.passes;
    daemon.loop.trigger();
    await eventually(() => expect(daemon.loop.passes).toBeGreaterThan(before));
    expect(daemon.observations).toEqual([]);
  });
});

describe('a newer revision', () => {
  test('ends the active run of the site after its current step, and is applied instead', async () => {
    await applied('one', 'two');
    const gate = Promise.withResolvers<void>();
    let waiting = false;
    daemon.control.before = async ({ target, site }) => {
      if (target !== 'proxy' || site !== 'one' || waiting) return;
      waiting = true;
      await gate.promise;
    };
    daemon.applied.length = 0;
    await daemon.push('one', daemon.manifest('one', 0, { name: 'Second' }));
    await eventually(() => expect(waiting).toBe(true));
    await daemon.hasRead((await daemon.push('one', daemon.manifest('one', 0, { name: 'Third' }))).revision);
    gate.resolve();
    const revision = await daemon.repo.head();
    await eventually(() =>
      expect(daemon.loop.status('one')).toMatchObject({ ready: true, applied: revision }),
    );
    const order = daemon.applied.filter(({ site }) => site === 'one').map(({ target }) => target);
    // Two steps of the older one, then all of the newer one.
    expect(order).toEqual(['containers', 'proxy', ...TARGETS]);
  });

  test('replaces runs of its site that wait for another site’s run; a loop that stops drops them', async () => {
    await applied('one', 'two');
    await daemon.restart({ runsAtOnce: 1 });
    let gate = Promise.withResolvers<void>();
    const started: string[] = [];
    daemon.control.before = async ({ target, site }) => {
      if (target === 'containers') started.push(site);
      if (site === 'one') await gate.promise;
    };
    const renamed = (site: string, name: string) =>
      daemon.push(site, daemon.manifest(site, site === 'one' ? 0 : 1, { name }));
    await renamed('one', 'Second');
    await eventually(() => expect(started).toEqual(['one']));
    for (const name of ['Second', 'Third']) {
      await daemon.hasRead((await renamed('two', name)).revision);
    }
    gate.resolve();
    const revision = await daemon.repo.head();
    await eventually(() =>
      expect(daemon.loop.status('two')).toMatchObject({ ready: true, applied: revision }),
    );
    expect(started).toEqual(['one', 'two']);

    gate = Promise.withResolvers<void>();
    await renamed('one', 'Fourth');
    await eventually(() => expect(started).toEqual(['one', 'two', 'one']));
    await daemon.hasRead((await renamed('two', 'Fourth')).revision);
    const stopped = daemon.loop.stop();
    gate.resolve();
    await stopped;
    expect(started).toEqual(['one', 'two', 'one']);
  });
});

describe('a removed site', () => {
  test.each([
    ['saved', {}],
    ['lost', { known: null }],
  ])(
    'still drains if an earlier process deleted its DNS records and the state is %s',
    async (_what, after) => {
      await applied('one', 'two');
      const beginning = new Date();
      await daemon.restart({ drainSeconds: 3_600 });
      await daemon.push('one', daemon.manifest('one', 0, { state: 'absent' }));
      await eventually(() => expect(daemon.loop.status('one')?.withdrawnAt).toBeDefined());
      const since = daemon.loop.status('one')?.withdrawnAt ?? '';
      expect(Date.parse(since)).toBeGreaterThanOrEqual(beginning.getTime());
      expect(daemon.of('dns', 'one')).toEqual([]);
      for (const known of [after, {}]) {
        await daemon.restart({ drainSeconds: 3_600, ...known });
        await eventually(() => expect(daemon.loop.status('one')?.withdrawnAt).toBeDefined());
        for (let passes = 0; passes < 3; passes += 1) await daemon.fullPass();
        expect(daemon.objectCount('one')).toBe(TARGETS.length - 1);
      }
      if (!('known' in after)) expect(daemon.loop.status('one')?.withdrawnAt).toBe(since);

      await daemon.restart({ drainSeconds: 0.001 });
      const removed = await daemon.reaches('one', 'Removed');
      expect(daemon.objectCount('one')).toBe(0);
      // A later removal of the same site drains anew.
      expect(removed?.withdrawnAt).toBeUndefined();
      await daemon.push('one', daemon.manifest('one', 0));
      await daemon.reaches('one', 'Ready');
      expect(daemon.loop.status('one')?.withdrawnAt).toBeUndefined();
    },
  );
});

test('a container that vanishes during its site’s run is replaced right after the run', async () => {
  await daemon.push('one', daemon.manifest('one', 0));
  await daemon.reaches('one', 'Ready');
  const isSwitching = Promise.withResolvers<void>();
  const mayGoOn = Promise.withResolvers<void>();
  daemon.control.before = async ({ target }) => {
    if (target !== 'proxy') return;
    isSwitching.resolve();
    await mayGoOn.promise;
  };
  await daemon.push('one', daemon.manifest('one', 0, { name: 'Another' }));
  await isSwitching.promise;
  // The run has already applied the container. The engine's event triggers a full pass.
  const [container = ''] = daemon.of('containers', 'one');
  daemon.world('containers').delete(container);
  await daemon.fullPass();
  mayGoOn.resolve();
  await eventually(() => expect(daemon.of('containers', 'one')).toEqual([container]));
  await daemon.reaches('one', 'Ready');
});

describe('failing sites', () => {
  test('don’t delay a healthy one, and at most eight are retried at once', async () => {
    const failing = Array.from({ length: 20 }, (_, index) => `bad-${index}`);
    const attempts = new Map<string, number>();
    let atOnce = 0;
    let most = 0;
    daemon.control.before = async ({ site, target }) => {
      if (!site.startsWith('bad') || target !== 'containers') return;
      const attempt = (attempts.get(site) ?? 0) + 1;
      attempts.set(site, attempt);
      if (attempt === 1) throw new RetryableError('it does not start');
      atOnce += 1;
      most = Math.max(most, atOnce);
      const { promise, resolve } = Promise.withResolvers<void>();
      setTimeout(resolve, 100);
      await promise;
      atOnce -= 1;
      throw new RetryableError('it does not start');
    };
    await Promise.all(failing.map((site, index) => daemon.push(site, daemon.manifest(site, index))));
    await Promise.all(failing.map((site) => daemon.reaches(site, 'Retrying')));
    await daemon.push('good', daemon.manifest('good', 99));
    await daemon.reaches('good', 'Ready');
    await eventually(() => expect([...attempts.values()].every((count) => count > 1)).toBe(true));
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(8);
  });

  test('are tried again immediately when their manifest changes', async () => {
    daemon.control.fault = (target, at) =>
      target === 'kv' && at !== 'observe' && at.desired?.hash !== undefined && at.summary.includes('bad')
        ? new RetryableError('not yet', { retryAfter: 3600 })
        : undefined;
    const hostnames = { ...daemon.manifest('one', 0).hostnames, edge: 'bad.example.net' };
    await daemon.push('one', daemon.manifest('one', 0, { hostnames }));
    const status = await daemon.reaches('one', 'Retrying');
    const next = status?.resources.find(({ target }) => target === 'kv')?.nextRetry;
    expect(Date.parse(next ?? '') - Date.now()).toBeGreaterThan(3_500_000);
    await daemon.push('one', daemon.manifest('one', 0));
    await daemon.reaches('one', 'Ready');
  });
});
