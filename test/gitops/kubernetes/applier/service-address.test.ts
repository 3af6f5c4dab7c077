import { beforeEach, describe, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import { destinationsOf, serviceAddress } from '../../../../gitops/kubernetes/applier/service-address.ts';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';

const KEY = 'tagyard/gateway';
const { signal } = new AbortController();

function service(...ingress: object[]): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'gateway', namespace: 'tagyard' },
    status: { loadBalancer: { ingress } },
  };
}

describe('what the status of a Service states', () => {
  test.each([
    ['an address', service({ ip: '9.9.9.9' }), ['9.9.9.9']],
    ['a name', service({ hostname: 'lb-1.cloud.example' }), ['lb-1.cloud.example']],
    ['several addresses, sorted', service({ ip: '9.9.9.10' }, { ip: '1.1.1.1' }), ['1.1.1.1', '9.9.9.10']],
    ['only the public one of two addresses', service({ ip: '10.0.0.4' }, { ip: '9.9.9.9' }), ['9.9.9.9']],
    [
      'a name of a balancer that also has an address',
      service({ ip: '10.0.0.4', hostname: 'lb.example' }),
      ['lb.example'],
    ],
  ])('is %s', (_what, object, stated) => {
    expect(destinationsOf(object, KEY)).toEqual(stated);
  });

  test.each([
    [
      'there is no Service',
      undefined,
      RetryableError,
      'there is no Service tagyard/gateway: create it, or correct KUBERNETES_GATEWAY_SERVICE',
    ],
    ['it is empty', service(), RetryableError, 'has no address yet'],
    ['it has no status', { ...service(), status: {} }, RetryableError, 'has no address yet'],
    [
      'it has private addresses only',
      service({ ip: '10.0.0.4' }),
      TerminalError,
      'set KUBERNETES_GATEWAY_ADDRESS',
    ],
  ] as const)('is refused where %s', (_what, object, kind, message) => {
    const destinations = () => destinationsOf(object, KEY);
    expect(destinations).toThrow(kind);
    expect(destinations).toThrow(message);
  });
});

describe('the address that names point to', () => {
  const objects = new Map<string, KubernetesObject>();
  const answering = new Set<string>();
  const services = { ready: async () => undefined, objects, async *changes() {} };
  const follow = () =>
    serviceAddress({
      service: { namespace: 'tagyard', name: 'gateway' },
      services,
      answers: async (destination) => answering.has(destination),
    });
  beforeEach(() => {
    objects.clear();
    answering.clear();
  });

  test('is taken once something answers there', async () => {
    objects.set(KEY, service({ ip: '9.9.9.9' }));
    const address = follow();
    await expect(address.check(signal)).rejects.toThrow('nothing answers at 9.9.9.9');
    expect(address.current()).toBeNull();
    answering.add('9.9.9.9');
    await address.check(signal);
    expect(address.current()).toBe('9.9.9.9');
  });

  test('stays until another one answers and the Service no longer has it', async () => {
    objects.set(KEY, service({ ip: '9.9.9.9' }));
    answering.add('9.9.9.9');
    const address = follow();
    await address.check(signal);
    objects.set(KEY, service({ ip: '1.1.1.1' }));
    await address.check(signal);
    expect(address.current()).toBe('9.9.9.9');
    objects.set(KEY, service({ ip: '1.1.1.1' }, { ip: '9.9.9.9' }));
    answering.add('1.1.1.1');
    await address.check(signal);
    expect(address.current()).toBe('9.9.9.9');
    objects.set(KEY, service({ ip: '1.1.1.1' }));
    await address.check(signal);
    expect(address.current()).toBe('1.1.1.1');
  });

  test('is not given up where the status is empty for a while', async () => {
    objects.set(KEY, service({ ip: '9.9.9.9' }));
    answering.add('9.9.9.9');
    const address = follow();
    await address.check(signal);
    objects.set(KEY, service());
    await expect(address.check(signal)).rejects.toThrow('has no address yet');
    expect(address.current()).toBe('9.9.9.9');
  });
});
