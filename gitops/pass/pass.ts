import type { Clock } from '../../base/clock.ts';
import { withinTime } from '../../base/time-limit.ts';
import type {
  Applier,
  Change,
  Conflict,
  Observed,
  Plan,
  Resource,
  Shortfall,
  Target,
} from '../appliers/contract.ts';
import type { DesiredSite, DesiredState } from '../desired/desired-state.ts';
import type { DesiredResources } from './desired-resources.ts';
import { type DriftSplit, splitDrift, type UnrepairedDrift } from './drift.ts';
import { type Block, type Guards, judge, maxVanishedSites, type Removal, type Verdict } from './guards.ts';
import type { Inventory } from './inventory.ts';

/** The result of one observation: what must change, and what of it is allowed. Nothing is applied yet. */
export interface PassPlan extends Verdict {
  readonly desired: DesiredState;
  /** When the observation started, by the monotonic clock. */
  readonly observedAt: number;
  /** The sites that the plan covers; `null`: all. */
  readonly scope: ReadonlySet<string> | null;
  readonly changes: readonly Change[];
  readonly conflicts: readonly Conflict[];
  /** Those of `changes` that repair drift. */
  readonly drifted: ReadonlySet<Change>;
  readonly unobserved: ReadonlyMap<Target, Error>;
  /** Changes, conflicts, blocks and drift by site; a site that has none of them isn't in it. */
  readonly bySite: ReadonlyMap<string, SitePlan>;
  /**
   * Every resource that the site's manifest asked for at the time of the observation. Later, the same manifest may ask
   * for another edition.
   */
  resources(site: string): readonly Resource[];
  /** Sites that lacked a certificate when the observation started, and why. */
  readonly uncertified: ReadonlyMap<string, string>;
  /** What the host lacks for the site, as of this call; `null`: nothing. */
  shortfall(site: string): Shortfall | null;
}

export interface SitePlan {
  readonly changes: readonly Change[];
  readonly allowed: readonly Change[];
  readonly conflicts: readonly Conflict[];
  readonly blocks: readonly Block[];
  readonly unrepaired: readonly UnrepairedDrift[];
}

export const EMPTY_SITE_PLAN: SitePlan = {
  changes: [],
  allowed: [],
  conflicts: [],
  blocks: [],
  unrepaired: [],
};

interface PassInput {
  readonly desired: DesiredState;
  readonly scope: ReadonlySet<string> | null;
  readonly appliers: readonly Applier[];
  readonly cache: DesiredResources;
  readonly inventory: Inventory;
  readonly guards: Guards;
  readonly drift: Parameters<typeof splitDrift>[1];
  removals(sites: Iterable<string>): Promise<ReadonlyMap<string, Removal>>;
  uncertified(): ReadonlyMap<string, string>;
  /** Milliseconds after which a target counts as unobserved. Unset: only the limits of the clients apply. */
  readonly observeTimeoutMs?: number | undefined;
  readonly clock: Clock;
}

interface TargetObservation {
  readonly applier: Applier;
  readonly resources: readonly Resource[];
  /** `resources` by site. */
  readonly bySite: ReadonlyMap<string, readonly Resource[]>;
  readonly observed: readonly Observed[];
  readonly error: Error | null;
}

/**
 * Observes all targets, plans them, and judges the whole plan. Applies nothing. A target that can't be observed has no
 * plan in this pass: "could not read" never means "is not there" (docs/reconciler.md, rule 2).
 */
export async function planPass(input: PassInput, signal: AbortSignal): Promise<PassPlan> {
  const observedAt = input.clock.now();
  const { desired, scope, cache, appliers, inventory, guards } = input;
  // Read before the proxy is observed: a certificate that arrives in between then counts in the next pass.
  const uncertified = input.uncertified();
  const observations = await Promise.all(appliers.map((applier) => observeTarget(applier, input, signal)));
  const seen = observations.filter(({ error }) => error === null);
  const splits = seen.map(({ applier, resources, observed }) => {
    const plan = withinScope(applier.plan(resources, observed), scope);
    const planned = plan.changes
      // Without a usable manifest nothing is desired, so everything that exists would be deleted.
      .filter(({ site }) => desired.sites.get(site)?.manifest !== null)
      .map((change) => markEnded(change, desired));
    return { conflicts: plan.conflicts, ...splitDrift(planned, input.drift) };
  });
  const changes = splits.flatMap((one) => one.changes);
  const gone = new Set(changes.flatMap(({ site }) => (desired.sites.has(site) ? [] : [site])));
  const verdict = judge({
    ...guards,
    sites: [...desired.sites.values()].map(toJudgedSite),
    plans: splits,
    unobservedNames: observations.flatMap((one) => unobservedNames(one, inventory)),
    targets: appliers.map(({ target, isShared = false, countedAs }) => ({
      target,
      isShared,
      ...(countedAs === undefined ? {} : { countedAs }),
      owned: inventory.count(target),
    })),
    // Reading git for each removed site is slow. If a guard blocks their removal because they are too many, only sites
    // that moved to another host are examined, which needs no git.
    removals: await input.removals(
      gone.size <= maxVanishedSites(desired.sites.size + gone.size) || guards.approved.size > 0
        ? gone
        : [...gone].filter((site) => desired.onOtherHosts.has(site)),
    ),
  });
  const conflicts = splits.flatMap((one) => one.conflicts);
  return {
    ...verdict,
    desired,
    observedAt,
    scope,
    changes,
    conflicts,
    drifted: new Set(splits.flatMap((one) => one.drifted)),
    unobserved: new Map(
      observations.flatMap(({ applier, error }) =>
        error === null ? [] : [[applier.target, error] as const],
      ),
    ),
    bySite: bySite(changes, conflicts, splits, verdict),
    uncertified,
    shortfall: (site) => {
      const found = observations.map(({ applier, bySite: resources }) =>
        (resources.get(site)?.length ?? 0) > 0 ? applier.shortfall?.() : null,
      );
      return found.find((one) => one != null) ?? null;
    },
    resources: (site) => {
      const manifest = desired.sites.get(site)?.manifest;
      if (manifest?.state !== 'present') return [];
      return observations.flatMap(
        ({ applier, bySite: resources }) => resources.get(site) ?? cache.of(applier, manifest),
      );
    },
  };
}

async function observeTarget(
  applier: Applier,
  input: PassInput,
  signal: AbortSignal,
): Promise<TargetObservation> {
  const { desired, scope, cache, inventory } = input;
  const { target } = applier;
  const bySite = new Map<string, readonly Resource[]>();
  for (const { site, manifest } of sitesOf(desired, scope)) {
    if (manifest?.state === 'present') bySite.set(site, cache.of(applier, manifest));
  }
  const resources = [...bySite.values()].flat();
  try {
    const observe = (limited: AbortSignal) =>
      scope === null
        ? applier.observe(resources, limited)
        : observeScope({ applier, resources, scope }, input, limited);
    const { observeTimeoutMs: ms, clock } = input;
    const observed = await (ms === undefined ? observe(signal) : withinTime(ms, observe, { signal, clock }));
    inventory.record(target, observed, scope);
    return { applier, resources, bySite, observed, error: null };
  } catch (cause) {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    return { applier, resources, bySite, observed: [], error };
  }
}

/** The sites with a name that couldn't be observed and wasn't the site's own before. */
function unobservedNames({ applier, bySite, error }: TargetObservation, inventory: Inventory) {
  if (error === null || !applier.givesNames) return [];
  const { target } = applier;
  return [...bySite].flatMap(([site, resources]) =>
    resources.every((one) => one.adopt || inventory.has(one)) ? [] : [{ site, target }],
  );
}

async function observeScope(
  {
    applier,
    resources,
    scope,
  }: { applier: Applier; resources: readonly Resource[]; scope: ReadonlySet<string> },
  input: PassInput,
  signal: AbortSignal,
): Promise<Observed[]> {
  const keys = input.inventory.keys(applier.target, scope);
  const found = await applier.observe(resources, signal, { sites: scope, keys });
  const desiredKeys = new Set(resources.map(({ key }) => key));
  const own = found.filter(
    ({ key, owner }) => !desiredKeys.has(key) && owner.kind === 'ours' && scope.has(owner.site),
  );
  const others = desiredByOthers(own, applier, input, scope);
  return [
    ...found.filter(({ key }) => desiredKeys.has(key)),
    // An object that another site asks for now is updated by that site. It must not be deleted for this one.
    ...own.filter(({ key }) => !others.has(key)),
  ];
}

/** Returns those observed keys that a site outside the scope asks for. */
function desiredByOthers(
  observed: readonly Observed[],
  applier: Applier,
  { desired, cache }: PassInput,
  scope: ReadonlySet<string>,
): ReadonlySet<string> {
  const observedKeys = new Set(observed.map(({ key }) => key));
  const keys = new Set<string>();
  if (observedKeys.size === 0) return keys;
  for (const { site, manifest } of desired.sites.values()) {
    if (manifest?.state !== 'present' || scope.has(site)) continue;
    for (const { key } of cache.of(applier, manifest)) if (observedKeys.has(key)) keys.add(key);
  }
  return keys;
}

function sitesOf(desired: DesiredState, scope: ReadonlySet<string> | null): Iterable<DesiredSite> {
  if (scope === null) return desired.sites.values();
  return [...scope].flatMap((site) => desired.sites.get(site) ?? []);
}

function withinScope(plan: Plan, scope: ReadonlySet<string> | null): Plan {
  if (scope === null) return plan;
  const { changes, conflicts } = plan;
  return {
    changes: changes.filter(({ site }) => scope.has(site)),
    conflicts: conflicts.filter(({ site }) => scope.has(site)),
  };
}

/**
 * Marks the deletes of a site that no host runs any more, because its file is a tombstone or missing. If the file names
 * another host, the site only moves, so its deletes aren't marked.
 */
function markEnded(change: Change, { sites, onOtherHosts }: DesiredState): Change {
  if (change.op !== 'delete') return change;
  const desired = sites.get(change.site);
  const state =
    desired === undefined ? (onOtherHosts.get(change.site)?.state ?? 'absent') : desired.manifest?.state;
  return state === 'absent' ? { ...change, ended: true } : change;
}

function toJudgedSite({ site, manifest }: DesiredSite) {
  return {
    site,
    state: manifest?.state ?? ('present' as const),
    protect: manifest?.protect ?? false,
    suspend: manifest?.suspend ?? false,
    unusable: manifest === null,
  };
}

function bySite(
  changes: readonly Change[],
  conflicts: readonly Conflict[],
  splits: readonly DriftSplit[],
  verdict: Verdict,
): Map<string, SitePlan> {
  const sites = new Map<string, { [Member in keyof SitePlan]: SitePlan[Member][number][] }>();
  const of = (site: string) => {
    let plan = sites.get(site);
    if (plan === undefined) {
      plan = { changes: [], allowed: [], conflicts: [], blocks: [], unrepaired: [] };
      sites.set(site, plan);
    }
    return plan;
  };
  for (const change of changes) of(change.site).changes.push(change);
  for (const change of verdict.allowed) of(change.site).allowed.push(change);
  for (const conflict of conflicts) of(conflict.site).conflicts.push(conflict);
  for (const { unrepaired } of splits) for (const one of unrepaired) of(one.change.site).unrepaired.push(one);
  for (const block of verdict.blocked) for (const site of block.sites) of(site).blocks.push(block);
  return sites;
}
