import { expect, test } from 'vitest';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';
import {
  heldLease,
  isFree,
  type ObservedLease,
  observeLease,
  releasedLease,
} from '../../../../gitops/kubernetes/client/lease.ts';

const ADDRESS = { kind: 'Lease', namespace: 'a', name: 'l' } as const;
const AT = new Date('2026-01-01T00:00:00Z');
const held = (by: string, observed: ObservedLease | null, at = AT, annotations = {}) =>
  heldLease(ADDRESS, observed, { identity: by, seconds: 15, at, annotations });
const observe = (object: KubernetesObject, before: ObservedLease | null, now: number) =>
  observeLease(object, { before, now });

test('a Lease is free after it has not changed for its duration by the reader’s clock, whatever its times say', () => {
  // The holder's clock is a year ahead.
  const lease = held('other', null, new Date('2027-01-01T00:00:00Z'));
  const first = observe(lease, null, 1_000);
  expect(isFree(first, { identity: 'us', now: 15_999 })).toBe(false);
  expect(isFree(observe(lease, first, 9_000), { identity: 'us', now: 16_000 })).toBe(true);
  const renewed = observe(held('other', first, new Date('2027-01-01T00:00:01Z')), first, 9_000);
  expect(isFree(renewed, { identity: 'us', now: 23_999 })).toBe(false);
  expect(isFree(renewed, { identity: 'us', now: 24_000 })).toBe(true);
});

test('a Lease is free for its own holder, and for all once it is released', () => {
  const ours = observe(held('us', null), null, 0);
  expect(isFree(ours, { identity: 'us', now: 0 })).toBe(true);
  expect(isFree(ours, { identity: 'other', now: 0 })).toBe(false);
  const released = observe(releasedLease(ADDRESS, ours, AT), ours, 1);
  expect(isFree(released, { identity: 'other', now: 1 })).toBe(true);
});

test('a new holder is counted, a renewal keeps the time of the acquisition', () => {
  const first = observe(held('a', null), null, 0);
  expect(first.object.spec).toEqual({
    holderIdentity: 'a',
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:00.000000Z',
    leaseTransitions: 0,
  });
  const renewed = observe(held('a', first, new Date('2026-01-01T00:00:02Z')), first, 2);
  expect(renewed.object.spec).toMatchObject({
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:02.000000Z',
    leaseTransitions: 0,
  });
  const taken = observe(held('b', renewed, new Date('2026-01-01T00:01:00Z')), renewed, 60);
  expect(taken.object.spec).toMatchObject({
    holderIdentity: 'b',
    acquireTime: '2026-01-01T00:01:00.000000Z',
    leaseTransitions: 1,
  });
});

test('annotations are added to those of the Lease, and stay when its holder changes or gives it up', () => {
  const first = observe(held('a', null, AT, { one: '1', two: '2' }), null, 0);
  const second = observe(held('b', first, AT, { two: '3' }), first, 0);
  expect(second.object.metadata.annotations).toEqual({ one: '1', two: '3' });
  expect(releasedLease(ADDRESS, second, AT).metadata.annotations).toEqual({ one: '1', two: '3' });
});
