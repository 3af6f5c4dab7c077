import type { Change, Observed, Target } from '../appliers/contract.ts';
import type { DesiredSite } from '../desired/desired-state.ts';
import type { SiteStatus } from '../report/report.ts';

type KeysBySite = Map<string, Set<string>>;

/**
 * What is known of each site's objects: the keys that were observed, the content that was applied, and which sites are
 * converged. It limits what a pass must observe, and shows whether a change is drift or comes from the manifest. It
 * never causes a delete.
 */
export class Inventory {
  readonly #observed = new Map<Target, KeysBySite>();
  /** The resources of each site's status, as its last run or pass reported them. */
  readonly #resources: Map<string, SiteStatus['resources']>;
  readonly #converged = new Map<string, DesiredSite>();

  /** `known`: the statuses of an earlier process. */
  constructor(known: Iterable<Pick<SiteStatus, 'site' | 'resources'>> = []) {
    this.#resources = new Map([...known].map(({ site, resources }) => [site, resources]));
  }

  /** Records an observation of a target. `sites`: the sites that it covered; `null`: all. */
  record(target: Target, observed: readonly Observed[], sites: ReadonlySet<string> | null): void {
    const keys = this.#observedOf(target);
    if (sites === null) keys.clear();
    else for (const site of sites) keys.delete(site);
    for (const { key, owner } of observed) {
      if (owner.kind === 'ours' && (sites === null || sites.has(owner.site)))
        this.add(target, owner.site, key);
    }
  }

  /** Adds a key that was observed, or that a run is about to create or change. */
  add(target: Target, site: string, key: string): void {
    const keys = this.#observedOf(target);
    const known = keys.get(site);
    if (known === undefined) keys.set(site, new Set([key]));
    else known.add(key);
  }

  /** Keys that the sites had when they were last observed, or that their manifests asked for at that time. */
  keys(target: Target, sites: ReadonlySet<string>): Set<string> {
    const observed = this.#observedOf(target);
    const keys = new Set<string>();
    for (const site of sites) {
      for (const key of observed.get(site) ?? []) keys.add(key);
      for (const one of this.#resources.get(site) ?? []) if (one.target === target) keys.add(one.key);
    }
    return keys;
  }

  /** True if the object was the site's own when it was last observed or applied. */
  has({ target, site, key }: Pick<Change, 'target' | 'site' | 'key'>): boolean {
    if (this.#observedOf(target).get(site)?.has(key)) return true;
    const before = this.#resources.get(site)?.find((one) => one.target === target && one.key === key);
    return before?.hash != null;
  }

  count(target: Target): number {
    let sum = 0;
    for (const keys of this.#observedOf(target).values()) sum += keys.size;
    return sum;
  }

  /** True if exactly this content was applied before, and the object isn't `outdated`. */
  wasApplied({ site, target, key, desired, observed }: Change): boolean {
    if (observed?.outdated) return false;
    const before = this.#resources.get(site)?.find((one) => one.target === target && one.key === key);
    return before?.hash != null && before.hash === desired?.hash;
  }

  /** Records a site's status. `desired`: the state that is fully applied; `null`: a part of it is not applied. */
  settle({ site, resources }: Pick<SiteStatus, 'site' | 'resources'>, desired: DesiredSite | null): void {
    this.#resources.set(site, resources);
    if (desired === null) this.#converged.delete(site);
    else this.#converged.set(site, desired);
  }

  /** The desired state that the site has converged to; `null`: it hasn't. */
  convergedTo(site: string): DesiredSite | null {
    return this.#converged.get(site) ?? null;
  }

  /** The site's desired state or its objects are about to change. */
  outdate(site: string): void {
    this.#converged.delete(site);
  }

  forget(site: string): void {
    this.#resources.delete(site);
    this.#converged.delete(site);
  }

  #observedOf(target: Target): KeysBySite {
    let keys = this.#observed.get(target);
    if (keys === undefined) {
      keys = new Map();
      this.#observed.set(target, keys);
    }
    return keys;
  }
}
