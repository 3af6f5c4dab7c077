import { RetryableError } from '../base/errors.ts';
import { formatMark, type Identity, readMark } from '../base/ownership.ts';
import type { Applier, Change, Resource, Traits } from './contract.ts';
import { mayTake, planResources } from './plan.ts';

/** Where a memory applier's things live: by key, each with the mark inside it. */
export type MemoryWorld = Map<string, { readonly mark: string | null; readonly hash: string }>;

/**
 * An applier whose world is a map: the smallest thing that keeps the contract. It is what the loop is tested with,
 * and the measure that the conformance suite is itself checked against.
 */
export function memoryApplier<Spec>(options: {
  /** A target without any trait, or with some. */
  readonly target: string | Traits;
  readonly identity: Identity;
  readonly world: MemoryWorld;
  readonly desired: Applier<Spec, string>['desired'];
  /** Answers an error that this `observe` or this change shall fail with, or nothing. */
  readonly fault?: (at: 'observe' | Change<Spec, string>) => Error | undefined;
}): Applier<Spec, string> {
  const { identity, world, desired } = options;
  const traits = typeof options.target === 'string' ? { target: options.target } : options.target;
  const { target } = traits;
  const failWhereAsked = (at: 'observe' | Change<Spec, string>): void => {
    const error = options.fault?.(at);
    if (error !== undefined) throw error;
  };
  return {
    ...traits,
    desired,
    async observe(_desired: readonly Resource<Spec>[], signal) {
      signal.throwIfAborted();
      failWhereAsked('observe');
      return [...world].map(([key, thing]) => {
        const { owner, hash } = readMark(identity, thing.mark);
        return { target, key, owner, ref: key, hash: hash && thing.hash.startsWith(hash) ? hash : null };
      });
    },
    plan: (wanted, observed) => planResources(wanted, observed, traits),
    async apply(change, signal) {
      const { key, site, desired: wanted } = change;
      signal.throwIfAborted();
      failWhereAsked(change);
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
