import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { PodEndpoint } from '../../../../gitops/kubernetes/gateway/peers.ts';
import { ServiceSlices } from '../../../../gitops/kubernetes/gateway/slices.ts';
import { eventually } from '../../../support/eventually.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';

const signal = AbortSignal.timeout(60_000);

/** A slice as the API server writes it, with one endpoint at `address`; `null`: the JSON is cut off. */
function slice(name: string, address: string | null, service = name): string {
  const labels = `{"kubernetes.io/service-name":"${service}"}`;
  const metadata = `{"name":"${name}-1","namespace":"a","uid":"${name}","resourceVersion":"6","labels":${labels}}`;
  const rest = address === null ? '"endpoints":[{' : `"endpoints":[{"addresses":["${address}"]}]`;
  return `{"metadata":${metadata},"addressType":"IPv4",${rest},"ports":[{"port":80}]}`;
}

interface Scene {
  /** What each listing has; the last one is repeated. */
  readonly listings: readonly (readonly string[])[];
  /** What the first watch sends. */
  readonly events?: readonly string[];
}

/** What a gateway with service `one` gets from these listings and these events of a watch. */
async function followed({ listings, events = [] }: Scene, stack: AsyncDisposableStack) {
  const watches: ServerResponse[] = [];
  const left = [...listings];
  const { client } = stack.use(
    await openedScripted(({ url = '' }, response) => {
      if (url.includes('watch=true')) {
        response.writeHead(200).write('\n');
        watches.push(response);
        return;
      }
      const items = left.length > 1 ? left.shift() : left[0];
      response.end(`{"metadata":{"resourceVersion":"5"},"items":[${items?.join()}]}`);
    }),
  );
  const listed: Record<string, readonly PodEndpoint[]> = {};
  const warnings: string[] = [];
  const slices = new ServiceSlices(client.watched({ kind: 'EndpointSlice' }));
  expect(slices.endpointsOf('a/one')).toBeNull();
  const following = slices.follow(
    {
      services: ['a/one'],
      list(service, endpoints) {
        listed[service] = endpoints;
      },
    },
    { log: { info() {}, warn: (_, message) => warnings.push(message) }, signal },
  );
  stack.defer(async () => {
    await slices.close();
    await following;
  });
  await eventually(() => expect(watches).toHaveLength(1));
  for (const event of events) watches[0]?.write(`${event}\n`);
  return { listed, slices, warnings };
}

const event = (type: string, object: string) => `{"type":"${type}","object":${object}}`;
const endpoint = (address: string) => [{ address, port: 80, state: 'ready' }];
const ONE = slice('one', '10.0.0.1');
const TWO = slice('two', '10.0.0.2');

test.for([
  [
    'listed',
    {
      listings: [
        [ONE, slice('two', null)],
        [ONE, TWO],
      ],
    },
  ],
  ['watched', { listings: [[ONE], [ONE, TWO]], events: [event('ADDED', slice('two', null))] }],
] as const)(
  'a slice that can’t be read when it is %s holds up no other, and is listed again',
  async ([, scene]) => {
    await using stack = new AsyncDisposableStack();
    const { listed, slices, warnings } = await followed(scene, stack);
    await eventually(() =>
      expect(listed).toEqual({ 'a/one': endpoint('10.0.0.1'), 'a/two': endpoint('10.0.0.2') }),
    );
    expect(slices.endpointsOf('a/two')).toEqual(endpoint('10.0.0.2'));
    expect(warnings).toEqual(['an EndpointSlice can’t be read']);
  },
);

test.for([
  ['is deleted', [event('DELETED', TWO)], {}],
  ['is deleted by an event that can’t be read', [event('DELETED', slice('two', null))], {}],
  ['can’t be read and is not listed any more', [event('MODIFIED', slice('two', null))], {}],
  [
    'belongs to another service now',
    [event('MODIFIED', slice('two', '10.0.0.2', 'three'))],
    { 'a/three': endpoint('10.0.0.2') },
  ],
] as const)('a service has no endpoints of a slice that %s', async ([, events, more]) => {
  await using stack = new AsyncDisposableStack();
  const { listed, slices } = await followed({ listings: [[ONE, TWO], [ONE]], events }, stack);
  await eventually(() => expect(listed).toEqual({ 'a/one': endpoint('10.0.0.1'), 'a/two': [], ...more }));
  expect(slices.endpointsOf('a/two')).toEqual([]);
});
