import { describe, expect, test } from 'vitest';
import { GivenUpError, RetryableError, TerminalError } from '../../../../base/errors.ts';
import { formatMark } from '../../../../base/ownership.ts';
import { buildBringUp } from '../../../../gitops/appliers/containers/bring-up.ts';
import { containerName, desiredContainers } from '../../../../gitops/appliers/containers/desired.ts';
import { Failures } from '../../../../gitops/appliers/containers/failures.ts';
import type { Launch } from '../../../../gitops/appliers/containers/runtime.ts';
import type { Resource } from '../../../../gitops/appliers/contract.ts';
import type { ContainerSpec } from '../../../../sites/manifest/containers.ts';
import { Slots } from '../../../../sites/manifest/slots.ts';
import { type FakeBehaviour, FakeRuntime } from '../../../support/containers/fake-runtime.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { loadedManifest } from '../../../support/manifest.ts';
import { containerSecret } from '../../../support/tag-server.ts';

const SLOTS = new Slots('127.97');
const IDENTITY = { instance: 'unit', host: 'tag-1' };
const { signal } = new AbortController();

type Wanted = Resource<ContainerSpec>;

/** The processing container of a site; if `onDemand`, its preview container, on demand. */
function wanted(env = '1', onDemand = false): Wanted {
  const manifest = {
    ...loadedManifest('acme-shop', 0, { resources: { preview: { onDemand } } }),
    config: containerSecret({ env }),
  };
  const resource = desiredContainers(manifest, { slots: SLOTS, originPort: 8443 }).at(onDemand ? 1 : 0);
  if (resource === undefined) throw new Error('the site has no containers');
  return resource;
}

const nameOf = ({ spec }: Wanted) => containerName(IDENTITY.instance, spec);
const launchOf = (resource: Wanted, mark = formatMark(IDENTITY, resource.site, resource.hash)): Launch => ({
  name: nameOf(resource),
  mark,
  spec: resource.spec,
});

function setup(behave?: (launch: Launch, start: number) => FakeBehaviour) {
  const runtime = new FakeRuntime(behave);
  const clock = fakeClock();
  const renewed: string[] = [];
  const closedGates: string[] = [];
  const bringUp = buildBringUp({
    runtime,
    identity: IDENTITY,
    startupDeadlineMs: 1_000,
    steadyMs: 1_000,
    startsAtOnce: 2,
    failures: new Failures(4, clock),
    renew: (site) => void renewed.push(site),
    closeGate: async (name) => void closedGates.push(name),
    clock,
  });
  return {
    runtime,
    renewed,
    closedGates,
    bringUp: (resource: Wanted, within = signal) => bringUp(resource, within),
    /** What the next four attempts throw. */
    async errors(): Promise<unknown[]> {
      const errors: unknown[] = [];
      for (let time = 0; time < 4; time += 1) {
        const failed = bringUp(wanted(), signal).catch((error: unknown) => (error as Error).constructor); // it throws errors only
        errors.push(await failed);
      }
      return errors;
    },
    [Symbol.asyncDispose]: () => runtime.close(),
  };
}

describe('bringing a container up', () => {
  test('starts a missing one', async () => {
    await using host = setup();
    await host.bringUp(wanted());
    expect(host.runtime.calls).toEqual([`start ${nameOf(wanted())}`]);
  });

  test('keeps a healthy one', async () => {
    await using host = setup();
    await host.runtime.add(launchOf(wanted()));
    await host.bringUp(wanted());
    expect(host.runtime.calls).toEqual([]);
  });

  test('replaces one that runs but does not answer', async () => {
    await using host = setup();
    await host.runtime.add(launchOf(wanted()), { statuses: [] });
    await host.bringUp(wanted());
    const name = nameOf(wanted());
    expect(host.runtime.calls).toEqual([`remove ${name}`, `start ${name}`]);
    // Clients that wait at its gate get the new one.
    expect(host.closedGates).toEqual([]);
  });

  test('asks for a new edition of one that serves and is unhealthy', async () => {
    await using host = setup();
    await host.runtime.add(launchOf(wanted()), { statuses: [503] });
    await host.bringUp(wanted());
    expect(host.renewed).toEqual(['acme-shop']);
    expect(host.runtime.calls).toEqual([]);
  });

  test('replaces one of another mark, and closes its gate', async () => {
    await using host = setup();
    await host.runtime.add(launchOf(wanted(), formatMark(IDENTITY, 'acme-shop', '0123abcd')));
    await host.bringUp(wanted());
    const name = nameOf(wanted());
    expect(host.runtime.calls).toEqual([`remove ${name}`, `start ${name}`]);
    expect(host.closedGates).toEqual([name]);
  });

  test('refuses to replace a foreign one, unless the manifest adopts it', async () => {
    await using host = setup();
    await host.runtime.add(launchOf(wanted(), 'tgy1 other tag-9 acme-shop 0123abcd'));
    await expect(host.bringUp(wanted())).rejects.toThrow(RetryableError);
    expect(host.runtime.calls).toEqual([]);
    await host.bringUp({ ...wanted(), adopt: true });
    expect(host.runtime.calls).toHaveLength(2);
  });

  test('keeps one on demand that is stopped, and replaces one that is unhealthy', async () => {
    await using host = setup();
    const resource = wanted('1', true);
    const name = nameOf(resource);
    const stopped = await host.runtime.add(launchOf(resource));
    await host.runtime.stop(stopped);
    await host.bringUp(resource);
    expect(host.runtime.calls).toEqual([`stop ${name}`]);
    await host.runtime.remove(stopped);
    await host.runtime.add(launchOf(resource), { statuses: [503] });
    await host.bringUp(resource);
    expect(host.runtime.calls.slice(2)).toEqual([`remove ${name}`, `start ${name}`]);
    expect(host.renewed).toEqual([]);
  });

  test.each([
    ['isn’t in its slot or network', { inPlace: false }],
    ['has an earlier address of the bridge', { isReaddressed: true }],
  ])('starts a healthy container again if it %s', async (_what, behaviour) => {
    await using host = setup();
    await host.runtime.add(launchOf(wanted()), behaviour);
    await host.bringUp(wanted());
    const name = nameOf(wanted());
    expect(host.runtime.calls).toEqual([`remove ${name}`, `start ${name}`]);
  });

  test('removes one that dies, and names the reason and its output', async () => {
    await using host = setup(() => ({ death: 'exit code 1', lines: ['no such config'] }));
    await expect(host.bringUp(wanted())).rejects.toThrow(/it died \(exit code 1\); it wrote: no such config/);
    const name = nameOf(wanted());
    expect(host.runtime.calls).toEqual([`start ${name}`, `remove ${name}`]);
  });

  test('removes one that is not healthy by the deadline', async () => {
    await using host = setup(() => ({ statuses: [503] }));
    await expect(host.bringUp(wanted())).rejects.toThrow('it reported itself unhealthy after 1000 ms');
  });

  describe('if each start fails', () => {
    const line = 'https://www.googletagmanager.com/server.js?id=x failed with status 403';
    const failing = { death: 'exit code 1', lines: [line] };
    const GIVEN_UP = [RetryableError, RetryableError, TerminalError, GivenUpError];
    const NOT_GIVEN_UP = [RetryableError, RetryableError, TerminalError, TerminalError];

    test('gives up a spec that was never seen healthy', async () => {
      await using host = setup(() => failing);
      expect(await host.errors()).toEqual(GIVEN_UP);
    });

    test('never gives up a spec that was healthy after its start', async () => {
      await using host = setup((_, start) => (start === 0 ? {} : failing));
      await host.bringUp(wanted());
      const [found] = await host.runtime.list();
      await host.runtime.remove(found?.id ?? '');
      expect(await host.errors()).toEqual(NOT_GIVEN_UP);
    });

    test('never gives up a spec if a healthy container of it, started by an earlier process, was found', async () => {
      await using host = setup(() => failing);
      const found = await host.runtime.add(launchOf(wanted()));
      await host.bringUp(wanted());
      await host.runtime.remove(found);
      expect(await host.errors()).toEqual(NOT_GIVEN_UP);
    });

    test('gives up a spec whose first start was interrupted, although its container exists', async () => {
      const interruption = new AbortController();
      await using host = setup((_, start) => {
        if (start === 0) interruption.abort();
        return failing;
      });
      await expect(host.bringUp(wanted(), interruption.signal)).rejects.toThrow();
      expect(await host.runtime.list()).toHaveLength(1);
      expect(await host.errors()).toEqual(GIVEN_UP);
    });
  });

  test('takes a replacement only if it stays healthy', async () => {
    await using host = setup(() => ({ statuses: [200, 200, 503] }));
    await host.runtime.add(launchOf(wanted('2')));
    await expect(host.bringUp(wanted())).rejects.toThrow(
      /healthy after \d+ ms, it reported itself unhealthy soon after/,
    );
    expect((await host.runtime.list()).map(({ name }) => name)).toEqual([nameOf(wanted('2'))]);
  });

  test('takes a first container as soon as it is healthy', async () => {
    await using host = setup(() => ({ statuses: [200, 503] }));
    await host.bringUp(wanted());
    expect(await host.runtime.list()).toHaveLength(1);
  });
});
