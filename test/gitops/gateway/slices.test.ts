import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { PodEndpoint } from '../../../gitops/gateway/peers.ts';
import { ServiceSlices } from '../../../gitops/gateway/slices.ts';
import { eventually } from '../../support/eventually.ts';
import { openedScripted } from '../../support/kubernetes/scripted-client.ts';

const signal = AbortSignal.timeout(60_000);

/** A slice as the API server writes it; `address`: of its only endpoint, `null`: the slice is cut off. */
function slice(name: string, address: string | null): string {
  const labels = `{"kubernetes.io/service-name":"${name}"}`;
  const metadata = `{"name":"${name}-1","namespace":"a","uid":"${name}","resourceVersion":"6","labels":${labels}}`;
  const rest = address === null ? '"endpoints":[{' : `"endpoints":[{"addresses":["${address}"]}]`;
  return `{"metadata":${metadata},"addressType":"IPv4",${rest},"ports":[{"port":80}]}`;
}

test.for([
  ['listed', []],
  ['watched', [slice('two', null)]],
] as const)(
  'a slice that can’t be read when it is %s holds up no other, and is listed again',
  async ([how, events]) => {
    await using stack = new AsyncDisposableStack();
    const watches: ServerResponse[] = [];
    const listings = [[slice('one', '10.0.0.1'), ...(how === 'listed' ? [slice('two', null)] : [])]];
    const { client } = stack.use(
      await openedScripted(({ url = '' }, response) => {
        if (url.includes('watch=true')) {
          response.writeHead(200).write('\n');
          watches.push(response);
          return;
        }
        const items = listings.shift() ?? [slice('one', '10.0.0.1'), slice('two', '10.0.0.2')];
        response.end(`{"metadata":{"resourceVersion":"5"},"items":[${items.join()}]}`);
      }),
    );
    const listed: Record<string, readonly PodEndpoint[]> = {};
    const warnings: string[] = [];
    const slices = new ServiceSlices(client.watched({ kind: 'EndpointSlice' }));
    expect(slices.endpointsOf('a/one')).toBeNull();
    const followed = slices.follow(
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
      await followed;
    });
    await eventually(() => expect(watches).toHaveLength(1));
    for (const event of events) watches[0]?.write(`{"type":"ADDED","object":${event}}\n`);
    const endpoint = (address: string) => [{ address, port: 80, state: 'ready' }];
    await eventually(() =>
      expect(listed).toEqual({ 'a/one': endpoint('10.0.0.1'), 'a/two': endpoint('10.0.0.2') }),
    );
    expect(slices.endpointsOf('a/two')).toEqual(endpoint('10.0.0.2'));
    expect(warnings).toEqual(['an EndpointSlice can’t be read']);
  },
);
