import { once } from 'node:events';
import { createServer, get } from 'node:https';
import { expect, test } from 'vitest';
import { openPolicyAuthority } from '../../../sites/local/policy-authority.ts';

const HOST = 'tag-acme-policy';

test('the authority of policy scripts is the same at every start, and differs for another secret', async () => {
  const [first, second, other] = await Promise.all(['one', 'one', 'two'].map(openPolicyAuthority));
  expect(second?.ca).toBe(first?.ca);
  expect(await second?.pairFor(HOST)).toEqual(await first?.pairFor(HOST));
  expect(other?.ca).not.toBe(first?.ca);
});

test('a certificate is issued once, as long as its name is retained, and is the same if it is issued again', async () => {
  const authority = await openPolicyAuthority('one');
  const pair = await authority.pairFor(HOST);
  authority.retain(new Set([HOST]));
  expect(await authority.pairFor(HOST)).toBe(pair);
  authority.retain(new Set(['tag-other-policy']));
  const again = await authority.pairFor(HOST);
  expect(again).not.toBe(pair);
  expect(again).toEqual(pair);
});

test('a client that trusts the authority reaches a server under its certificate’s name only', async () => {
  const [authority, other] = await Promise.all(['one', 'two'].map(openPolicyAuthority));
  await using server = createServer((await authority?.pairFor(HOST)) ?? {}, (_, response) => response.end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  const ask = async (servername: string, ca = '') => {
    const request = get({ host: '127.0.0.1', port: address.port, servername, ca, agent: false });
    const [response] = await once(request, 'response');
    return response.resume().statusCode;
  };
  expect(await ask(HOST, authority?.ca)).toBe(200);
  await expect(ask('tag-other-policy', authority?.ca)).rejects.toThrow('altnames');
  await expect(ask(HOST, other?.ca)).rejects.toThrow('certificate');
});
