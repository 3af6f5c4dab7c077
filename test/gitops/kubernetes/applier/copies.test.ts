import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { Copies } from '../../../../gitops/kubernetes/applier/state/copies.ts';
import { eventually } from '../../../support/eventually.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';

const signal = AbortSignal.timeout(60_000);

test('a listener that fails is called again at the next change, and doesn’t affect other listeners', async () => {
  await using stack = new AsyncDisposableStack();
  const watches: ServerResponse[] = [];
  const { client } = stack.use(
    await openedScripted(({ url = '' }, response) => {
      if (url.includes('watch=true')) {
        response.writeHead(200).write('\n');
        watches.push(response);
      } else response.end('{"metadata":{"resourceVersion":"5"},"items":[]}');
    }),
  );
  const warnings: string[] = [];
  const copies = new Copies({
    client,
    identity: { instance: 'test', host: 'tag-1' },
    namespace: 'sites',
    selection: { kinds: ['Service'], labels: '' },
    log: { info() {}, warn: (_, message) => warnings.push(message) },
  });
  stack.defer(() => copies.close());
  const names: (string | undefined)[] = [];
  const lastName = () => [...copies.of('Service')].at(-1)?.metadata.name;
  copies.onChange(
    'Service',
    () => {
      if (lastName() !== 'three') throw new Error('it fails');
    },
    signal,
  );
  copies.onChange('Service', () => names.push(lastName()), signal);
  const put = (name: string, rest: string) => {
    const metadata = `{"name":"${name}","namespace":"sites","uid":"${name}","resourceVersion":"6"}`;
    watches.at(-1)?.write(`{"type":"ADDED","object":{"metadata":${metadata},${rest}}}\n`);
  };
  await eventually(() => expect(watches).toHaveLength(1));
  for (const name of ['one', 'two', 'three']) {
    put(name, '"spec":{}');
    await eventually(() => expect(names.at(-1)).toBe(name));
  }
  expect(warnings).toEqual(['a change of the Services can’t be noted: it fails']);

  put('broken', '"spec":{"a":}');
  await eventually(() => expect(watches).toHaveLength(2));
  put('four', '"spec":{}');
  await eventually(() => expect(names.at(-1)).toBe('four'));
});
