import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { OnDemand } from '../../../../gitops/appliers/containers/on-demand.ts';
import type { ContainerInstance } from '../../../../gitops/appliers/containers/runtime.ts';
import { RetryableError } from '../../../../gitops/base/errors.ts';
import { containerSpecs } from '../../../../gitops/manifest/containers.ts';
import { eventually } from '../../../support/eventually.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const NAME = 'tagyard-test-acme-shop-preview-0-00000000';

test('does not put one to rest that has visitors when it is tried again', async () => {
  await using server = createServer((_, response) => response.end('ok')).listen(0, '127.99.6.6');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const [template] = containerSpecs(loadedManifest(), { loopbackSubnet: '127.99', originPort: 443 });
  if (template === undefined) throw new Error('a site has containers');
  const spec = { ...template, address: '127.99.6.7', boundAddress: '127.99.6.6', port };
  const endpoint = { address: spec.boundAddress, port };
  const found: ContainerInstance = {
    id: '1',
    name: NAME,
    mark: null,
    running: true,
    stopped: false,
    endpoint,
  };

  const refusal = Promise.withResolvers<void>();
  let stops = 0;
  const onDemand = new OnDemand({
    runtime: {
      list: async () => [found],
      resume: async () => undefined,
      async stop() {
        stops += 1;
        await refusal.promise;
      },
    },
    idleMs: 50,
    againMs: 50,
    startupDeadlineMs: 30_000,
    whileBusy: (_, work) => work(),
  });
  await onDemand.tend(NAME, spec);
  await eventually(() => expect(stops).toBe(1));

  // Comes while it is being stopped, and stays.
  const visitor = connect(port, spec.address);
  visitor.write('GET / HTTP/1.1\r\nhost: preview\r\n\r\n');
  await eventually(() => expect(onDemand.isResting(found)).toBe(true));
  refusal.reject(new RetryableError('the engine is busy'));
  await once(visitor, 'data');
  // Another one has had the time to be put to rest, and again, meanwhile.
  let others = 0;
  const other = new OnDemand({
    runtime: {
      list: async () => [found],
      resume: async () => undefined,
      async stop() {
        others += 1;
        throw new RetryableError('the engine is busy');
      },
    },
    idleMs: 50,
    againMs: 50,
    startupDeadlineMs: 30_000,
    whileBusy: (_, work) => work(),
  });
  await other.tend(NAME, { ...spec, address: '127.99.6.8' });
  await eventually(() => expect(others).toBeGreaterThan(3));
  expect(stops).toBe(1);

  visitor.destroy();
  await eventually(() => expect(stops).toBeGreaterThan(1));
  await onDemand.close();
  await other.close();
});
