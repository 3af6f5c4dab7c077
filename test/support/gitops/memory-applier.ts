import { RetryableError } from '../../../base/errors.ts';
import { formatMark, type Identity, readMark } from '../../../base/ownership.ts';
import type { Applier, Change, Resource, Traits } from '../../../gitops/appliers/contract.ts';
import { mayTake, planResources } from '../../../gitops/appliers/plan.ts';

/** The objects of a memory applier by key, each with its mark and hash. */
export type MemoryWorld = Map<string, { readonly mark: string | null; readonly hash: string }>;

/**
 * An applier whose target is a map: the smallest implementation of the contract. The tests of the loop use it, and a
 * run of the conformance suite on it checks the suite itself.
 */
export function memoryApplier<Spec>(options: {
  /** The name of a target without further traits, or all traits. */
  readonly target: string | Traits;
  readonly identity: Identity;
  readonly world: MemoryWorld;
  readonly desired: Applier<Spec, string>['desired'];
  /** Returns the error with which this `observe` or this change fails, or `undefined`. */
  readonly fault?: (at: 'observe' | Change<Spec, string>) => Error | undefined;
}): Applier<Spec, string> {
  const { identity, world, desired } = options;
  const traits = typeof options.target === 'string' ? { target: options.target } : options.target;
  const { target } = traits;
  const failIfAsked = (at: 'observe' | Change<Spec, string>): void => {
    const error = options.fault?.(at);
    if (error !== undefined) throw error;
  };
  return {
    ...traits,
    desired,
    async observe(_desired: readonly Resource<Spec>[], signal) {
      signal.throwIfAborted();
      failIfAsked('observe');
      return [...world].map(([key, thing]) => {
        const { owner, hash } = readMark(identity, thing.mark);
        return { target, key, owner, ref: key, hash: hash && thing.hash.startsWith(hash) ? hash : null };
      });
    },
    plan: (wanted, observed) => planResources(wanted, observed, traits),
    async apply(change, signal) {
      const { key, site, desired: wanted } = change;
      signal.throwIfAborted();
      failIfAsked(change);
      if (wanted === undefined) {
        world.delete(key);
        return;
      }
      const owner = readMark(identity, world.get(key)?.mark).owner;
      if (world.has(key) && owner.kind === 'foreign' && !mayTake(owner, wanted, traits)) {
        throw new RetryableError(`${key} was taken by ${owner.by} since it was observed`);
      }
      world.set(key, { mark: formatMark(identity, site, wanted.hash), hash: wanted.hash });
    },
  };
}
