import type { Observed, Resource, Scope, Target } from '../../appliers/contract.ts';
import { addressOf } from '../client/address.ts';
import type { Kind, KubernetesObject, ObjectAddress } from '../client/kinds.ts';
import type { Cluster } from './cluster.ts';
import { foreignFields, objectDrift } from './state/drift.ts';
import { markOf, NO_SITE } from './state/mark.ts';
import { type ObjectRef, type ObjectSpec, resourceKey } from './state/object-spec.ts';
import { strangersAt } from './state/strangers.ts';

interface Watching {
  readonly target: Target;
  readonly kinds: readonly Kind[];
  /** Whether the object belongs to the target. Default: all objects of its kinds. */
  isOf?(found: KubernetesObject): boolean;
  /** What is wrong, in words, with an object whose fields are as applied. `outdated`: not changed from outside. */
  problemOf?(
    resource: Resource<ObjectSpec>,
    found: KubernetesObject,
  ): { readonly found: string; readonly outdated?: true } | null;
}

/**
 * What the copies have of one target: everything that is ours, and everything under a desired key. The API server is only
 * called for desired objects that the copies don't have, because objects of others may be there.
 */
export async function observeObjects(
  { copies, client, identity, namespace, log, reported }: Cluster,
  { target, kinds, isOf = () => true, problemOf }: Watching,
  {
    desired,
    scope,
    signal,
  }: { desired: readonly Resource<ObjectSpec>[]; scope: Scope | undefined; signal: AbortSignal },
): Promise<Observed<ObjectRef>[]> {
  const described = (found: KubernetesObject) => {
    const { owner, hash } = markOf(identity, found);
    const address = addressOf(found);
    const { uid = '', labels = {} } = found.metadata;
    const ref: ObjectRef = { address, uid, client: labels['tagyard/client'] ?? null };
    return { target, key: resourceKey(address), owner, hash, ref } as const;
  };
  /** Logs, once, the fields that others have added to an object and that stay. */
  const reportKept = (found: KubernetesObject) => {
    const kept = foreignFields(found).filter(({ isRemoved }) => !isRemoved);
    const fields = kept.map(({ path, manager }) => `${path} (by ${manager})`).join(', ');
    const address = addressOf(found);
    const key = resourceKey(address);
    if (fields === '') return void reported.delete(key);
    if (fields !== reported.get(key)?.fields) {
      log.info({ object: key, fields }, 'others have added fields to one of our objects; they stay');
    }
    reported.set(key, { address, fields });
  };
  if (scope === undefined) {
    for (const [key, { address }] of reported) {
      if (kinds.includes(address.kind) && copies.find(address) === undefined) reported.delete(key);
    }
  }
  const wanted = new Set(desired.map(({ key }) => key));
  const present = desired.flatMap((resource): Observed<ObjectRef>[] => {
    const found = copies.find(resource.spec.address);
    if (found === undefined) return [];
    const observed = described(found);
    const isApplied = observed.owner.kind === 'ours' && observed.hash !== null;
    if (!isApplied || !resource.hash.startsWith(observed.hash ?? '')) return [observed];
    reportKept(found);
    const drift = objectDrift(resource.spec.reveal(), found);
    const problem = drift === null ? (problemOf?.(resource, found) ?? null) : { found: drift };
    return [problem === null ? observed : { ...observed, hash: null, ...problem }];
  });
  const missing = desired
    .map(({ spec }) => spec.address)
    .filter((address) => copies.find(address) === undefined && isPlaced(address));
  const strangers = await strangersAt(client, missing, signal);
  const others = [...copies.all(kinds)]
    .filter((found) => !wanted.has(resourceKey(addressOf(found))) && isOf(found))
    .map(described)
    .filter(({ owner }) => {
      if (owner.kind !== 'ours' || owner.site === NO_SITE) return false;
      return scope === undefined || scope.sites.has(owner.site);
    });
  const hidden = [...strangers.values()].map((found) => asHidden(described(found)));
  return [...present, ...hidden, ...others];

  /** False if the object's namespace doesn't exist: nothing can be in it. */
  function isPlaced({ namespace: own }: ObjectAddress): boolean {
    if (namespace !== null || own === null) return true;
    return copies.find({ kind: 'Namespace', namespace: null, name: own }) !== undefined;
  }
}

/** An object that the copies don't have. If it is ours, others changed the labels by which the copies select it. */
function asHidden(hidden: Observed<ObjectRef>): Observed<ObjectRef> {
  if (hidden.owner.kind === 'foreign') return hidden;
  return { ...hidden, hash: null, found: 'our labels changed from outside' };
}
