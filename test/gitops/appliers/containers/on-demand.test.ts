import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../../base/clock.ts';
import { RetryableError } from '../../../../base/errors.ts';
import { OnDemand } from '../../../../gitops/appliers/containers/on-demand.ts';
import { type ContainerSpec, containerSpecs } from '../../../../sites/manifest/containers.ts';
import { Slots } from '../../../../sites/manifest/slots.ts';
import { FakeRuntime } from '../../../support/containers/fake-runtime.ts';
import { eventually } from '../../../support/eventually.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const NAME = 'tagyard-test-acme-shop-preview-0-00000000';
const manifest = loadedManifest('acme-shop', 0, { resources: { preview: { onDemand: true } } });

/** An on-demand container with an open gate. Tests that need an idle container pass a short `idleMs`. */
async function setup(
  subnet: string,
  options: {
    idleMs?: number;
    unusedMs?: number;
    isNew?: boolean;
    isStopped?: boolean;
    clock?: Clock;
    statuses?: number[];
  } = {},
) {
  const spec = containerSpecs(manifest, { slots: new Slots(subnet), originPort: 443 }).find(
    (each) => each.onDemand,
  );
  if (spec === undefined) throw new Error('the site has no preview server');
  const runtime = new FakeRuntime();
  const { statuses } = options;
  const id = await runtime.add({ name: NAME, mark: 'x', spec }, statuses === undefined ? {} : { statuses });
  if (options.isStopped) await runtime.stop(id);
  runtime.calls.length = 0;
  const busy: string[] = [];
  let missing = 0;
  const onDemand = new OnDemand({
    runtime,
    idleMs: options.idleMs ?? 60_000,
    ...(options.unusedMs === undefined ? {} : { unusedMs: options.unusedMs }),
    stopRetryMs: 50,
    startupDeadlineMs: options.clock === undefined ? 30_000 : 1_000,
    whileBusy: async (name, work) => {
      busy.push(name);
      await work();
    },
    onMissing: () => {
      missing += 1;
    },
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  await onDemand.openGate(NAME, spec, { isNew: options.isNew ?? false });
  return {
    spec,
    runtime,
    onDemand,
    busy,
    missing: () => missing,
    async found() {
      const [found] = await runtime.list();
      if (found === undefined) throw new Error('the container is missing');
      return found;
    },
    async [Symbol.asyncDispose]() {
      await onDemand.close();
      await runtime.close();
    },
  };
}

async function ask({ address, port }: ContainerSpec): Promise<number> {
  const { statusCode, body } = await request(`http://${address}:${port}/`, { reset: true });
  await body.dump();
  return statusCode;
}

/** Connects and gets an answer; the connection stays open. */
async function stay({ address, port }: ContainerSpec): Promise<Socket> {
  const client = connect(port, address);
  client.write('GET / HTTP/1.1\r\nhost: preview\r\n\r\n');
  await once(client, 'data');
  return client;
}

describe('a container on demand', () => {
  test('is started once for all clients that wait for it', async () => {
    await using host = await setup('127.61', { isStopped: true });
    expect(await Promise.all([ask(host.spec), ask(host.spec), ask(host.spec)])).toEqual([200, 200, 200]);
    expect(host.runtime.calls).toEqual([`resume ${NAME}`]);
    expect(host.busy).toEqual([NAME]);
  });

  test('is reported as missing if it is gone when a client connects: the event of its loss may have been missed', async () => {
    await using host = await setup('127.60', { isStopped: true });
    await host.runtime.remove((await host.found()).id);
    const client = connect(host.spec.port, host.spec.address);
    await eventually(() => expect(host.missing()).toBe(1));
    client.destroy();
  });

  test('is not started again while it runs', async () => {
    await using host = await setup('127.62');
    expect(await ask(host.spec)).toBe(200);
    expect(host.runtime.calls).toEqual([]);
  });

  test('is stopped when it has no client for a while, and is started for the next client', async () => {
    await using host = await setup('127.63', { idleMs: 50 });
    await eventually(() => expect(host.runtime.calls).toEqual([`stop ${NAME}`]));
    expect(host.onDemand.isOnStandby(await host.found())).toBe(true);
    expect(await ask(host.spec)).toBe(200);
    expect(host.runtime.calls.slice(0, 2)).toEqual([`stop ${NAME}`, `resume ${NAME}`]);
  });

  test('is stopped soon if it is new and unused, later if it is older or has had a client', async () => {
    await using used = await setup('127.72', { unusedMs: 100, isNew: true });
    expect(await ask(used.spec)).toBe(200);
    await using kept = await setup('127.73', { unusedMs: 100 });
    await using fresh = await setup('127.74', { unusedMs: 200, isNew: true });
    await eventually(() => expect(fresh.runtime.calls).toEqual([`stop ${NAME}`]));
    expect(fresh.onDemand.isOnStandby(await fresh.found())).toBe(true);
    expect([used.runtime.calls, kept.runtime.calls]).toEqual([[], []]);
  });

  test('is not stopped while a client is connected', async () => {
    await using host = await setup('127.64', { idleMs: 100 });
    const client = await stay(host.spec);
    // Meanwhile another container becomes idle and is stopped.
    await using other = await setup('127.65', { idleMs: 300 });
    await eventually(() => expect(other.runtime.calls).toEqual([`stop ${NAME}`]));
    expect(host.runtime.calls).toEqual([]);
    client.destroy();
    await eventually(() => expect(host.runtime.calls).toEqual([`stop ${NAME}`]));
  });

  test('is started again for a client that connects while it stops', async () => {
    await using host = await setup('127.66', { idleMs: 50 });
    const stopping = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const stop = host.runtime.stop.bind(host.runtime);
    host.runtime.stop = async (id) => {
      stopping.resolve();
      await release.promise;
      await stop(id);
    };
    await stopping.promise;
    const answer = ask(host.spec);
    await eventually(async () => expect(host.onDemand.isOnStandby(await host.found())).toBe(true));
    release.resolve();
    expect(await answer).toBe(200);
    expect(host.runtime.calls.slice(0, 2)).toEqual([`stop ${NAME}`, `resume ${NAME}`]);
  });

  test('closes the connections of its clients if it does not become healthy in time', async () => {
    await using host = await setup('127.67', { isStopped: true, statuses: [503], clock: fakeClock() });
    const client = connect(host.spec.port, host.spec.address);
    expect(await text(client)).toBe('');
  });

  test('that was removed makes its client wait until it exists again', async () => {
    await using host = await setup('127.68', { isStopped: true });
    const { id } = await host.found();
    await host.runtime.remove(id);
    const answer = ask(host.spec);
    await eventually(() => expect(host.onDemand.isOnStandby({ name: NAME, stopped: false })).toBe(true));
    await host.runtime.start({ name: NAME, mark: 'x', spec: host.spec });
    expect(await answer).toBe(200);
  });

  test('that could not be stopped is stopped only after its client has disconnected', async () => {
    await using host = await setup('127.69', { idleMs: 50 });
    const refusal = Promise.withResolvers<void>();
    let stops = 0;
    host.runtime.stop = async () => {
      stops += 1;
      await refusal.promise;
    };
    await eventually(() => expect(stops).toBe(1));
    const client = connect(host.spec.port, host.spec.address);
    client.write('GET / HTTP/1.1\r\nhost: preview\r\n\r\n');
    await eventually(async () => expect(host.onDemand.isOnStandby(await host.found())).toBe(true));
    refusal.reject(new RetryableError('the engine is busy'));
    await once(client, 'data');
    // Meanwhile the stop of another container, which has no clients, is retried.
    await using other = await setup('127.70', { idleMs: 50 });
    let otherStops = 0;
    other.runtime.stop = async () => {
      otherStops += 1;
      throw new RetryableError('the engine is busy');
    };
    await eventually(() => expect(otherStops).toBeGreaterThan(3));
    expect(stops).toBe(1);
    client.destroy();
    await eventually(() => expect(stops).toBeGreaterThan(1));
  });

  test('has its gate closed when it is no longer desired, but only in the sites of the pass', async () => {
    await using host = await setup('127.71');
    await host.onDemand.keepOnly(new Set(), new Set(['elsewhere']));
    expect(host.onDemand.hasGate(NAME)).toBe(true);
    await host.onDemand.keepOnly(new Set([NAME]));
    expect(host.onDemand.hasGate(NAME)).toBe(true);
    await host.onDemand.keepOnly(new Set());
    expect(host.onDemand.hasGate(NAME)).toBe(false);
    await expect(ask(host.spec)).rejects.toThrow();
  });
});
