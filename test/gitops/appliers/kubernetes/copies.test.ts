import { expect, test } from 'vitest';
import { Copies } from '../../../../gitops/appliers/kubernetes/state/copies.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';
import type { Answerer } from '../../../support/kubernetes/scripted-server.ts';

const ADDRESS = { kind: 'Service', namespace: 'sites', name: 'one' } as const;
const signal = AbortSignal.timeout(60_000);

/** A server with one object, which its first listing has in part. */
function cutOnce(): Answerer {
  const parts = ['"spec":{"a":'];
  return ({ url = '' }, response) => {
    if (url.includes('watch=true')) {
      response.writeHead(200).write('\n');
      return;
    }
    const metadata = '"metadata":{"name":"one","namespace":"sites","uid":"u","resourceVersion":"1"}';
    const rest = parts.pop() ?? '"spec":{"a":1}';
    response.end(`{"metadata":{"resourceVersion":"5"},"items":[{${metadata},${rest}}]}`);
  };
}

test.for([
  ['the objects of its kind', (copies: Copies) => [...copies.of('Service')]],
  ['it', (copies: Copies) => copies.find(ADDRESS)],
] as const)('an object that is no JSON is listed again once %s is read', async ([, read]) => {
  await using opened = await openedScripted(cutOnce());
  const { client } = opened;
  const selection = { kinds: ['Service'], labels: '' } as const;
  const identity = { instance: 'test', host: 'tag-1' };
  const copies = new Copies({ client, identity, namespace: 'sites', selection });
  await copies.ready(signal);
  expect(() => read(copies)).toThrow('Kubernetes: Service: the answer is no object');
  await copies.ready(signal);
  expect(copies.find(ADDRESS)?.spec).toEqual({ a: 1 });
  await copies.close();
});
