import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { PodEndpoint } from '../../../../gitops/kubernetes/gateway/peers.ts';
import { ServiceSlices } from '../../../../gitops/kubernetes/gateway/slices.ts';
import { eventually } from '../../../support/eventually.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';

const signal = AbortSignal.timeout(60_000);

/** A slice with one endpoint at `address`. */
function slice(name: string, address: string, service = name): string {
  const labels = `{"kubernetes.io/service-name":"${service}"}`;
  const metadata = `{"name":"${name}-1","namespace":"a","uid":"${name}","resourceVersion":"6","labels":${labels}}`;
  const endpoints = `[{"addresses":["${address}"]}]`;
  return `{"metadata":${metadata},"addressType":"IPv4","endpoints":${endpoints},"ports":[{"port":80}]}`;
}

/** What a gateway with service `one` gets from this listing and these events of a watch. */
async function followed(items: readonly string[], events: readonly string[], stack: AsyncDisposableStack) {
  const watches: ServerResponse[] = [];
  const { client } = stack.use(
    await openedScripted(({ url = '' }, response) => {
      if (url.includes('watch=true')) {
        response.writeHead(200).write('\n');
        watches.push(response);
        return;
      }
      response.end(`{"metadata":{"resourceVersion":"5"},"items":[${items.join()}]}`);
    }),
  );
  const listed: Record<string, readonly PodEndpoint[]> = {};
  const slices = new ServiceSlices(client.watched({ kind: 'EndpointSlice' }));
  expect(slices.endpointsOf('a/one')).toBeNull();
  const following = slices.follow(
    {
      services: ['a/one'],
      list(service, endpoints) {
        listed[service] = endpoints;
      },
    },
    signal,
  );
  stack.defer(async () => {
    await slices.close();
    await following;
  });
  await eventually(() => expect(watches).toHaveLength(1));
  for (const event of events) watches[0]?.write(`${event}\n`);
  return { listed, slices };
}

const event = (type: string, object: string) => `{"type":"${type}","object":${object}}`;
const endpoint = (address: string) => [{ address, port: 80, state: 'ready' }];
const ONE = slice('one', '10.0.0.1');
const TWO = slice('two', '10.0.0.2');

test.for([
  ['is deleted', [event('DELETED', TWO)], {}],
  [
    'belongs to another service now',
    [event('MODIFIED', slice('two', '10.0.0.2', 'three'))],
    { 'a/three': endpoint('10.0.0.2') },
  ],
] as const)('a service has no endpoints of a slice that %s', async ([, events, more]) => {
  await using stack = new AsyncDisposableStack();
  const { listed, slices } = await followed([ONE, TWO], events, stack);
  await eventually(() => expect(listed).toEqual({ 'a/one': endpoint('10.0.0.1'), 'a/two': [], ...more }));
  expect(slices.endpointsOf('a/two')).toEqual([]);
});
