import { describe, expect, test } from 'vitest';
import { Peers, type PodEndpoint } from '../../../../gitops/kubernetes/gateway/peers.ts';
import { endpointsOf } from '../../../../gitops/kubernetes/gateway/slices.ts';

const PORT = 20_000;
const ready = (...last: number[]): PodEndpoint[] =>
  last.map((number) => ({ address: `10.0.0.${number}`, port: PORT, state: 'ready' }));
const addresses = (peers: Peers, service: string) =>
  [...new Set(peers.addresses(service, PORT, () => 0))].sort();
const connect = (peers: Peers, service: string, accepted: Readonly<Record<number, boolean>>) => {
  for (const [number, accepts] of Object.entries(accepted))
    peers.answered(service, { address: `10.0.0.${number}`, port: PORT }, accepts);
};

describe('the peers of a service', () => {
  test('are its ready endpoints, repeated if they are fewer than nginx’s three attempts', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1), 0);
    expect(peers.addresses('a/b', PORT, () => 0)).toEqual(['10.0.0.1', '10.0.0.1', '10.0.0.1']);
    peers.listed('a/b', ready(1, 2), 0);
    expect(peers.addresses('a/b', PORT, () => 0.5)).toEqual(['10.0.0.2', '10.0.0.1', '10.0.0.2', '10.0.0.1']);
    expect(peers.addresses('a/b', PORT + 1)).toEqual([]);
    expect(peers.addresses('a/other', PORT)).toEqual([]);
  });

  test('are rotated at random in each answer, and are at most 16', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(...Array.from({ length: 40 }, (_, index) => index)), 0);
    expect(peers.addresses('a/b', PORT, () => 0)).toHaveLength(16);
    expect(peers.addresses('a/b', PORT, () => 0.99)[0]).toBe('10.0.0.39');
  });

  test('are left out after two failed connection attempts in a row, until one succeeds', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2), 0);
    connect(peers, 'a/b', { 1: true, 2: false });
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
    connect(peers, 'a/b', { 2: true });
    connect(peers, 'a/b', { 2: false });
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
    connect(peers, 'a/b', { 2: false });
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1']);
    connect(peers, 'a/b', { 2: true });
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
  });

  test('are all listed ones if none accepts connections', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2), 0);
    for (let round = 0; round < 2; round += 1) connect(peers, 'a/b', { 1: false, 2: false });
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
  });

  test('are gone at once when they are no longer listed, if others of the service are', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2, 3, 4, 5), 0);
    peers.listed('a/b', ready(1, 2, 3, 4), 1);
    expect(addresses(peers, 'a/b')).not.toContain('10.0.0.5');
  });
});

describe('the last known peers', () => {
  test('stay if a service has no endpoints any more, until they have accepted no connection for ten seconds', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2), 0);
    connect(peers, 'a/b', { 1: true, 2: true });
    peers.listed('a/b', [], 1_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
    for (const now of [2_000, 3_000, 60_000]) {
      expect(peers.toConnect(now)).toHaveLength(2);
      connect(peers, 'a/b', { 1: true });
    }
    connect(peers, 'a/b', { 2: false });
    connect(peers, 'a/b', { 2: false });
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1']);
    // The network or this machine may be slow for both of them, and no better ones are known.
    connect(peers, 'a/b', { 1: false });
    connect(peers, 'a/b', { 1: false });
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
    expect(peers.toConnect(61_000)).toHaveLength(2);
    connect(peers, 'a/b', { 1: true });
    expect(peers.toConnect(70_999)).toHaveLength(2);
    expect(peers.toConnect(71_000)).toEqual([{ service: 'a/b', address: '10.0.0.1', port: PORT }]);
    for (let round = 0; round < 2; round += 1) connect(peers, 'a/b', { 1: false });
    expect(peers.toConnect(72_000)).toHaveLength(1);
    expect(peers.toConnect(82_000)).toEqual([]);
    expect(addresses(peers, 'a/b')).toEqual([]);
  });

  test('are not those whose address another service lists', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2), 0);
    peers.listed('a/b', [], 1_000);
    peers.listed('other/c', ready(2), 2_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1']);
    expect(addresses(peers, 'other/c')).toEqual(['10.0.0.2']);
  });

  test('are gone after two failed connection attempts if they have ended on purpose', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1), 0);
    peers.listed(
      'a/b',
      ready(1).map((one) => ({ ...one, state: 'ending' as const })),
      500,
    );
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1']);
    for (let round = 0; round < 2; round += 1) connect(peers, 'a/b', { 1: false });
    expect(addresses(peers, 'a/b')).toEqual([]);
  });

  test('of a service stay even if it is the only one whose endpoints vanish', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1), 0);
    peers.listed('other/c', ready(11, 12, 13, 14, 15), 0);
    peers.listed('a/b', [], 1_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1']);
  });

  test('come back if half of all endpoints vanish within ten seconds', () => {
    const peers = new Peers();
    const services = ['s/1', 's/2', 's/3', 's/4'];
    for (const [index, service] of services.entries())
      peers.listed(service, ready(2 * index, 2 * index + 1), 0);
    peers.listed('s/1', ready(0), 1_000);
    peers.listed('s/2', ready(2), 4_000);
    peers.listed('s/3', ready(4), 8_000);
    expect(addresses(peers, 's/1')).toEqual(['10.0.0.0']);
    peers.listed('s/4', ready(6), 10_500);
    expect(addresses(peers, 's/1')).toEqual(['10.0.0.0', '10.0.0.1']);
    expect(addresses(peers, 's/4')).toEqual(['10.0.0.6', '10.0.0.7']);
  });

  test('do not come back if half of all endpoints vanish within a longer time', () => {
    const peers = new Peers();
    for (const index of [0, 1, 2]) peers.listed(`s/${index}`, ready(2 * index, 2 * index + 1), 0);
    peers.listed('s/0', ready(0), 1_000);
    peers.listed('s/1', ready(2), 6_000);
    peers.listed('s/2', ready(4), 11_001);
    expect([0, 1, 2].flatMap((index) => addresses(peers, `s/${index}`))).toEqual([
      '10.0.0.0',
      '10.0.0.2',
      '10.0.0.4',
    ]);
  });

  test('are not those that end on purpose, as in a rollout of all sites', () => {
    const peers = new Peers();
    peers.listed('s/0', ready(0, 1), 0);
    peers.listed(
      's/0',
      [...ready(2, 3), ...ready(0, 1).map((one) => ({ ...one, state: 'ending' as const }))],
      500,
    );
    expect(addresses(peers, 's/0')).toEqual(['10.0.0.2', '10.0.0.3']);
  });

  test('are not those that end on purpose while others vanish', () => {
    const peers = new Peers();
    peers.listed('s/0', ready(0, 1), 0);
    peers.listed('s/1', ready(2, 3, 4), 0);
    const [ending] = ready(0);
    peers.listed('s/0', [...ready(1), ...(ending ? [{ ...ending, state: 'ending' as const }] : [])], 500);
    peers.listed('s/1', ready(2), 600);
    expect(addresses(peers, 's/1')).toEqual(['10.0.0.2', '10.0.0.3', '10.0.0.4']);
    expect(addresses(peers, 's/0')).toEqual(['10.0.0.1']);
  });

  test('count like any other endpoints when the API server lists them again', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2), 0);
    peers.listed('a/b', [], 1_000);
    peers.listed('a/b', ready(1, 2, 3, 4, 5), 2_000);
    peers.listed('a/b', ready(2, 3, 4, 5), 20_000);
    expect(addresses(peers, 'a/b')).not.toContain('10.0.0.1');
  });

  test('survive a restart while the API server is away, but not the end of their service', () => {
    const before = new Peers();
    before.listed('a/b', ready(1, 2), 0);
    const peers = new Peers();
    peers.restore(before.save(), 0);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
    expect(peers.toConnect(60_000)).toHaveLength(2);
    peers.retain(new Set());
    expect(addresses(peers, 'a/b')).toEqual([]);
  });

  const accepting = (peers: Peers, ...numbers: number[]) =>
    connect(peers, 'a/b', Object.fromEntries(numbers.map((number) => [number, true])));
  const restored = (...numbers: number[]) => {
    const peers = new Peers();
    peers.restore({ 'a/b': numbers.map((number) => ({ address: `10.0.0.${number}`, port: PORT })) }, 0);
    return peers;
  };

  test('from before a restart are gone when the API server lists others in their place', () => {
    const peers = restored(1);
    accepting(peers, 1);
    peers.listed('a/b', ready(2), 1_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.2']);
    accepting(peers, 1, 2);
    expect(peers.toConnect(60_000)).toEqual([{ service: 'a/b', address: '10.0.0.2', port: PORT }]);
  });

  test('from before a restart stay if the API server lists only half of them', () => {
    const peers = restored(1, 2);
    accepting(peers, 1, 2);
    peers.listed('a/b', ready(2), 1_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
  });

  test('from before a restart are gone unless listed, if the API server lists most of them', () => {
    const peers = restored(1, 2, 3);
    accepting(peers, 1, 2, 3);
    peers.listed('a/b', ready(2, 3), 1_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.2', '10.0.0.3']);
  });

  test('are gone once their service has an endpoint again, unless half of all endpoints vanished', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2), 0);
    peers.listed('other/c', ready(11, 12, 13, 14, 15), 0);
    accepting(peers, 1, 2);
    peers.listed('a/b', [], 1_000);
    accepting(peers, 1, 2);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2']);
    peers.listed('a/b', ready(3), 20_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.3']);
  });

  test('stay if half of all endpoints vanished, until their service has as many as before', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1, 2, 3), 0);
    peers.listed('a/b', [], 1_000);
    accepting(peers, 1, 2, 3);
    peers.listed('a/b', ready(3), 120_000);
    peers.listed('a/b', ready(3, 4), 121_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4']);
    peers.listed('a/b', ready(3, 4, 5), 122_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.3', '10.0.0.4', '10.0.0.5']);
    accepting(peers, 1, 2);
    // The count from before the loss no longer matters: an endpoint that vanishes alone is gone.
    peers.listed('a/b', ready(3, 4, 5, 6, 7), 140_000);
    peers.toConnect(151_000);
    peers.listed('a/b', ready(3, 4, 5, 6), 160_000);
    expect(addresses(peers, 'a/b')).toEqual(['10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6']);
  });

  test('count as a service’s pods only while they are listed or accept connections', () => {
    const peers = restored(1);
    peers.listed('a/b', [], 10);
    expect(peers.hasLasting('a/b')).toBe(false);
    accepting(peers, 1);
    expect(peers.hasLasting('a/b')).toBe(true);
    connect(peers, 'a/b', { 1: false });
    expect(peers.hasLasting('a/b')).toBe(false);
    peers.listed('a/b', ready(2), 20);
    expect(peers.hasLasting('a/b')).toBe(true);
  });

  test('show whether one of them accepts connections', () => {
    const peers = new Peers();
    expect(peers.proof('a/b')).toBeNull();
    peers.listed('a/b', ready(1, 2), 0);
    connect(peers, 'a/b', { 1: false, 2: false });
    expect(peers.proof('a/b')).toBe('unknown');
    connect(peers, 'a/b', { 1: false, 2: false });
    expect(peers.proof('a/b')).toBe('fails');
    connect(peers, 'a/b', { 2: true });
    expect(peers.proof('a/b')).toBe('accepts');
    peers.listed('a/b', [], 0);
    expect(peers.proof('a/b')).toBeNull();
  });

  test('count as accepting only if a pod that gets requests accepts, not one that ends', () => {
    const peers = new Peers();
    peers.listed('a/b', ready(1), 0);
    accepting(peers, 1);
    peers.listed('a/b', [...ready(2), ...ready(1).map((pod) => ({ ...pod, state: 'ending' as const }))], 10);
    accepting(peers, 1);
    expect(peers.proof('a/b')).toBe('unknown');
    connect(peers, 'a/b', { 2: false });
    connect(peers, 'a/b', { 2: false });
    expect(peers.proof('a/b')).toBe('fails');
  });
});

test('the endpoints of slices are ready or end on purpose; others are left out', () => {
  const slice = (endpoints: object[], addressType = 'IPv4') => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice' as const,
    metadata: { name: 'x' },
    addressType,
    ports: [{ port: PORT }],
    endpoints,
  });
  expect(
    endpointsOf([
      slice([
        { addresses: ['10.0.0.1'], conditions: { ready: true } },
        { addresses: ['10.0.0.2'], conditions: { ready: false, serving: true, terminating: true } },
        { addresses: ['10.0.0.3'], conditions: { ready: false } },
        { addresses: ['10.0.0.4'] },
      ]),
      slice([{ addresses: ['10.0.0.2'], conditions: { ready: true } }]),
      slice([{ addresses: ['fd00::1'], conditions: { ready: true } }], 'IPv6'),
    ]),
  ).toEqual([...ready(1, 2, 4)]);
});
