import type { Observed, Target } from '../appliers/contract.ts';

type Keys = Map<string, Set<string>>;

/**
 * Which keys of ours each site was last seen to have, so that a look at a few sites knows where to look. Filled by
 * the first full look of a process and kept up by what comes after; never a reason to delete anything.
 */
export class Inventory {
  readonly #keys = new Map<Target, Keys>();

  /** Takes a look at a target in. `sites` are those that were looked at; `null`: all. */
  record(target: Target, observed: readonly Observed[], sites: ReadonlySet<string> | null): void {
    const keys = this.#of(target);
    if (sites === null) keys.clear();
    else for (const site of sites) keys.delete(site);
    for (const { key, owner } of observed) {
      if (owner.kind === 'ours' && (sites === null || sites.has(owner.site)))
        this.add(target, owner.site, key);
    }
  }

  add(target: Target, site: string, key: string): void {
    const keys = this.#of(target);
    const known = keys.get(site);
    if (known === undefined) keys.set(site, new Set([key]));
    else known.add(key);
  }

  keys(target: Target, sites: ReadonlySet<string>): Set<string> {
    const keys = this.#of(target);
    return new Set([...sites].flatMap((site) => [...(keys.get(site) ?? [])]));
  }

  count(target: Target): number {
    let sum = 0;
    for (const keys of this.#of(target).values()) sum += keys.size;
    return sum;
  }

  #of(target: Target): Keys {
    const keys = this.#keys.get(target);
    if (keys !== undefined) return keys;
    const none: Keys = new Map();
    this.#keys.set(target, none);
    return none;
  }
}
