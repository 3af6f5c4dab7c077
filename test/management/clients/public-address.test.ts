import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import {
  AddressError,
  checkedLookup,
  isCallable,
  refuseAddress,
} from '../../../management/clients/public-address.ts';
import { WebhookClient } from '../../../management/clients/webhook-client.ts';
import { Receiver } from '../../support/management/receiver.ts';

const PUBLIC = ['8.8.8.8', '1.1.1.1', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001::1'];
const LOOPBACK = ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1'];
const REFUSED = [
  ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '169.254.169.254', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  ...['192.0.0.192', '168.63.129.16', '198.18.0.1', '203.0.113.9', '224.0.0.1', '255.255.255.255'],
  ...['::', 'fe80::1', 'fc00::1', 'fd00:ec2::254', '::ffff:10.0.0.1', '64:ff9b::a00:1'],
  ...['2002:a00:1::', '2001::1', '2001:db8::1', 'ff02::1', 'no address'],
];

test.each(PUBLIC)('%s may be called', (address) => {
  expect(isCallable(address, { allowLoopback: false })).toBe(true);
});
test.each(REFUSED)('%s is refused, also where loopback is allowed', (address) => {
  expect([true, false].map((allowLoopback) => isCallable(address, { allowLoopback }))).toEqual([
    false,
    false,
  ]);
});
test.each(LOOPBACK)('%s may be called only where loopback is allowed', (address) => {
  expect([true, false].map((allowLoopback) => isCallable(address, { allowLoopback }))).toEqual([true, false]);
});

const rules = (allowLoopback = false) => ({
  allowLoopback,
  ownZones: ['edge.example.net', 'platform.example'],
});

test.each<[string, boolean, boolean]>([
  ['https://hooks.acme.example/x', true, true],
  ['http://hooks.acme.example/x', false, false],
  ['https://user:password@hooks.acme.example/', false, false],
  ['https://10.0.0.1/', false, false],
  ['https://0x7f.1/', false, true],
  ['https://2130706433/', false, true],
  ['https://[::ffff:169.254.169.254]/', false, false],
  ['http://127.0.0.1:8080/', false, true],
  ['http://[::1]:8080/', false, true],
  ['http://localhost/', false, true],
  ['https://api.localhost./', false, true],
  ['https://edge.example.net/', false, false],
  ['https://any.example.net/', false, false],
  ['https://PLATFORM.example./', false, false],
  ['ftp://hooks.acme.example/', false, false],
])('%s: accepted: %s; where loopback is allowed: %s', (url, strict, local) => {
  const isAccepted = (allowLoopback: boolean) => {
    try {
      refuseAddress(url, rules(allowLoopback));
      return true;
    } catch (error) {
      expect(error).toBeInstanceOf(AddressError);
      return false;
    }
  };
  expect([isAccepted(false), isAccepted(true)]).toEqual([strict, local]);
});

const answering =
  (...answers: string[][]) =>
  async () =>
    (answers.shift() ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

test('a name is refused if any of its addresses is, at each resolution', async () => {
  const lookup = promisify(
    checkedLookup(
      rules(),
      answering(['8.8.8.8', '2606:4700::1'], ['127.0.0.1'], ['8.8.8.8', '10.0.0.1'], []),
    ),
  );
  expect(await lookup('rebinds.example', { all: true })).toEqual([
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ]);
  for (let count = 0; count < 3; count += 1) {
    await expect(lookup('rebinds.example', {})).rejects.toThrow(AddressError);
  }
});

test('a message to a name that resolves to loopback makes no connection', async () => {
  const receiver = new Receiver();
  await receiver.start();
  const client = new WebhookClient(rules());
  const message = { id: 'msg_1', at: new Date(), body: '{"data":{}}', secrets: ['whsec_MDEyMzQ1Njc4OWFi'] };
  const url = `https://localhost:${new URL(receiver.url).port}/`;
  await expect(client.send(url, message, AbortSignal.timeout(5_000))).rejects.toThrow(AddressError);
  expect(receiver.received).toEqual([]);
  // A client that may call loopback reaches the receiver.
  const local = new WebhookClient(rules(true));
  expect(await local.send(receiver.url, message, AbortSignal.timeout(5_000))).toBe(204);
  await Promise.all([client.close(), local.close()]);
  await receiver.stop();
});

test('a receiver that hangs is given up after the time limit', async () => {
  const receiver = new Receiver();
  receiver.answer = () => null;
  await receiver.start();
  const client = new WebhookClient(rules(true), 100);
  const message = { id: 'msg_1', at: new Date(), body: '{"data":{}}', secrets: ['whsec_MDEyMzQ1Njc4OWFi'] };
  await expect(client.send(receiver.url, message, new AbortController().signal)).rejects.toThrow(/timeout/i);
  expect(receiver.received).toHaveLength(1);
  await client.close();
  await receiver.stop();
});
