import { z } from 'zod';
import { KINDS, type KubernetesObject, type ObjectAddress } from './kinds.ts';

const leaseSpec = z.object({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  acquireTime: z.string().nullish(),
  renewTime: z.string().nullish(),
  leaseTransitions: z.number().nullish(),
});
type LeaseSpec = z.infer<typeof leaseSpec>;

/** What a Lease says now, and since when it says that, by the reader's own clock. */
export interface ObservedLease {
  readonly object: KubernetesObject;
  readonly spec: LeaseSpec;
  /** Monotonic milliseconds. */
  readonly since: number;
}

/**
 * The observation after reading `object` at `now`. The times in the Lease are of other machines' clocks and are never
 * compared: all that counts is whether the Lease changes. Source: client-go, tools/leaderelection.
 */
export function observeLease(
  object: KubernetesObject,
  { before, now }: { before: ObservedLease | null; now: number },
): ObservedLease {
  const spec = leaseSpec.catch({}).parse(object.spec ?? {});
  const isSame = before !== null && JSON.stringify(before.spec) === JSON.stringify(spec);
  return { object, spec, since: isSame ? before.since : now };
}

/**
 * Whether `identity` may take the Lease: no other process holds it, or its holder hasn't renewed it in its duration.
 */
export function isFree(
  { spec, since }: ObservedLease,
  { identity, now }: { identity: string; now: number },
): boolean {
  const { holderIdentity, leaseDurationSeconds } = spec;
  if (!holderIdentity || holderIdentity === identity) return true;
  return now - since >= (leaseDurationSeconds ?? 0) * 1000;
}

/** The Lease as `identity` writes it at the time `at`; `null` for `observed`: there is none yet. */
export function heldLease(
  address: ObjectAddress,
  observed: ObservedLease | null,
  {
    identity,
    seconds,
    at,
    annotations,
  }: {
    identity: string;
    seconds: number;
    at: Date;
    /** Set in addition to those that the Lease has. */
    annotations: Readonly<Record<string, string>>;
  },
): KubernetesObject {
  const renewTime = microTime(at);
  const before = observed?.spec;
  const isOurs = before?.holderIdentity === identity;
  const lease = leaseObject(address, observed, {
    holderIdentity: identity,
    leaseDurationSeconds: seconds,
    renewTime,
    acquireTime: (isOurs ? before.acquireTime : null) ?? renewTime,
    leaseTransitions: (before?.leaseTransitions ?? 0) + (before === undefined || isOurs ? 0 : 1),
  });
  const { metadata } = lease;
  return { ...lease, metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } } };
}

/** The Lease as its holder gives it up: free for the next one at once. */
export function releasedLease(address: ObjectAddress, observed: ObservedLease, at: Date): KubernetesObject {
  const time = microTime(at);
  return leaseObject(address, observed, {
    holderIdentity: '',
    leaseDurationSeconds: 1,
    renewTime: time,
    acquireTime: time,
    leaseTransitions: observed.spec.leaseTransitions ?? 0,
  });
}

function leaseObject(
  address: ObjectAddress,
  observed: ObservedLease | null,
  spec: LeaseSpec,
): KubernetesObject {
  const { kind, name, namespace } = address;
  return {
    apiVersion: KINDS[kind].apiVersion,
    kind,
    metadata: observed?.object.metadata ?? { name, ...(namespace !== null && { namespace }) },
    spec,
  };
}

/** `metav1.MicroTime`. */
const microTime = (at: Date): string => at.toISOString().replace('Z', '000Z');
