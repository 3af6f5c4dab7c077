import type { Applier, Change, Conflict, Observed, Plan, Resource, Target } from '../appliers/contract.ts';
import type { DesiredState, SiteEntry } from '../desired/desired-state.ts';
import type { DesiredResources } from './desired-resources.ts';
import { type LeftDrift, type SortedChanges, sortDrift } from './drift.ts';
import { type Block, type JudgeInput, judge, type Removal, type Verdict, vanishingLimit } from './guards.ts';
import type { Inventory } from './inventory.ts';

/** What one look at the world says must happen. Nothing has been applied yet. */
export interface PassPlan extends Verdict {
  readonly desired: DesiredState;
  /** When the look began, by `performance.now()`. */
  readonly observedAt: number;
  /** Whom this plan is about; `null`: all sites. */
  readonly scope: ReadonlySet<string> | null;
  readonly changes: readonly Change[];
  readonly conflicts: readonly Conflict[];
  readonly unobserved: ReadonlyMap<Target, Error>;
  /** The same by site; a site that isn't in it has nothing to do and nothing in its way. */
  readonly bySite: ReadonlyMap<string, SitePlan>;
  /** Every resource that the site's manifest asked for when this was planned; it may ask for another edition by now. */
  resources(site: string): readonly Resource[];
  /** Sites that had no certificate for a name of their own when the look began, and why. */
  readonly uncertified: ReadonlyMap<string, string>;
}

export interface SitePlan {
  readonly changes: readonly Change[];
  readonly allowed: readonly Change[];
  readonly conflicts: readonly Conflict[];
  readonly blocks: readonly Block[];
  readonly left: readonly LeftDrift[];
}

export const NOTHING: SitePlan = { changes: [], allowed: [], conflicts: [], blocks: [], left: [] };

/** What the judge is told besides what the look itself shows. */
export type Guards = Pick<JudgeInput, 'policy' | 'frozen' | 'historyRewritten' | 'stateLost' | 'approved'>;

export interface PassInput {
  readonly desired: DesiredState;
  readonly scope: ReadonlySet<string> | null;
  readonly appliers: readonly Applier[];
  readonly cache: DesiredResources;
  readonly inventory: Inventory;
  readonly guards: Guards;
  readonly drift: Parameters<typeof sortDrift>[1];
  /** Keys that these sites wanted of a target before. */
  lastKeys(target: Target, sites: ReadonlySet<string>): readonly string[];
  removals(sites: Iterable<string>): Promise<ReadonlyMap<string, Removal>>;
  uncertified(): ReadonlyMap<string, string>;
}

interface TargetObservation {
  readonly applier: Applier;
  readonly resources: readonly Resource[];
  /** The same by site, as it was asked for at the time of the look. */
  readonly wanted: ReadonlyMap<string, readonly Resource[]>;
  readonly observed: readonly Observed[];
  readonly error: Error | null;
}

/**
 * Observes every target, plans them all and judges the plan, before anything is applied. A target that can't be read
 * has no plan in this pass: "could not read" never means "is not there".
 */
export async function planPass(input: PassInput, signal: AbortSignal): Promise<PassPlan> {
  const observedAt = performance.now();
  const { desired, scope, cache, appliers, inventory, guards } = input;
  // Before the proxy is looked at: what comes in between is seen there, and not yet counted here.
  const uncertified = input.uncertified();
  const observations = await Promise.all(appliers.map((applier) => observeTarget(applier, input, signal)));
  const seen = observations.filter(({ error }) => error === null);
  const sorted = seen.map(({ applier, resources, observed }) => {
    const plan = withinScope(applier.plan(resources, observed), scope);
    const planned = plan.changes.map((change) => withEnd(change, desired));
    return { conflicts: plan.conflicts, ...sortDrift(planned, input.drift) };
  });
  const changes = sorted.flatMap((one) => one.changes);
  const gone = new Set(changes.flatMap(({ site }) => (desired.entries.has(site) ? [] : [site])));
  const verdict = judge({
    ...guards,
    sites: [...desired.entries.values()].map(judgedSite),
    plans: sorted,
    targets: appliers.map(({ target, isShared = false, countedAs }) => ({
      target,
      isShared,
      ...(countedAs === undefined ? {} : { countedAs }),
      owned: inventory.count(target),
    })),
    // More than may vanish at once are held anyway, unless somebody has approved some; who has them now is known without git.
    removals: await input.removals(
      gone.size <= vanishingLimit(desired.entries.size + gone.size) || guards.approved.size > 0
        ? gone
        : [...gone].filter((site) => desired.elsewhere.has(site)),
    ),
  });
  const conflicts = sorted.flatMap((one) => one.conflicts);
  return {
    ...verdict,
    desired,
    observedAt: observedAt,
    scope,
    changes,
    conflicts,
    unobserved: new Map(
      observations.flatMap(({ applier, error }) =>
        error === null ? [] : [[applier.target, error] as const],
      ),
    ),
    bySite: bySite(changes, conflicts, sorted, verdict),
    uncertified,
    resources: (site) => {
      const manifest = desired.entries.get(site)?.manifest;
      if (manifest?.state !== 'present') return [];
      return observations.flatMap(({ applier, wanted }) => wanted.get(site) ?? cache.of(applier, manifest));
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
  const wanted = new Map<string, readonly Resource[]>();
  for (const { site, manifest } of entriesOf(desired, scope)) {
    if (manifest?.state === 'present' && (scope === null || scope.has(site))) {
      wanted.set(site, cache.of(applier, manifest));
    }
  }
  const resources = [...wanted.values()].flat();
  try {
    if (scope === null) {
      const observed = await applier.observe(resources, signal);
      inventory.record(target, observed, null);
      return { applier, resources, wanted, observed, error: null };
    }
    const keys = inventory.keys(target, scope);
    for (const key of input.lastKeys(target, scope)) keys.add(key);
    const found = await applier.observe(resources, signal, { sites: scope, keys });
    const asked = new Set(resources.map(({ key }) => key));
    const own = found.filter(
      ({ key, owner }) => !asked.has(key) && owner.kind === 'ours' && scope.has(owner.site),
    );
    const others = wantedByOthers(own, applier, input, scope);
    const observed = [
      ...found.filter(({ key }) => asked.has(key)),
      // What another site has come to want is that site's to take over, not this one's to remove.
      ...own.filter(({ key }) => !others.has(key)),
    ];
    inventory.record(target, observed, scope);
    return { applier, resources, wanted, observed, error: null };
  } catch (cause) {
    const error = cause instanceof Error ? cause : new Error(String(cause));
    return { applier, resources, wanted, observed: [], error };
  }
}

/** Which of these a site outside the scope has come to want. */
function wantedByOthers(
  observed: readonly Observed[],
  applier: Applier,
  { desired, cache }: PassInput,
  scope: ReadonlySet<string>,
): ReadonlySet<string> {
  const asked = new Set(observed.map(({ key }) => key));
  const wanted = new Set<string>();
  if (asked.size === 0) return wanted;
  for (const { site, manifest } of desired.entries.values()) {
    if (manifest?.state !== 'present' || scope.has(site)) continue;
    for (const { key } of cache.of(applier, manifest)) if (asked.has(key)) wanted.add(key);
  }
  return wanted;
}

function entriesOf(desired: DesiredState, scope: ReadonlySet<string> | null): Iterable<SiteEntry> {
  if (scope === null) return desired.entries.values();
  return [...scope].flatMap((site) => desired.entries.get(site) ?? []);
}

function withinScope(plan: Plan, scope: ReadonlySet<string> | null): Plan {
  if (scope === null) return plan;
  const { changes, conflicts } = plan;
  return {
    changes: changes.filter(({ site }) => scope.has(site)),
    conflicts: conflicts.filter(({ site }) => scope.has(site)),
  };
}

/** A file that names another host asks for the site there, and one that can't be read asks for nothing. */
function withEnd(change: Change, { entries, elsewhere }: DesiredState): Change {
  if (change.op !== 'delete') return change;
  const entry = entries.get(change.site);
  const state = entry === undefined ? (elsewhere.get(change.site)?.state ?? 'absent') : entry.manifest?.state;
  return state === 'absent' ? { ...change, ended: true } : change;
}

function judgedSite({ site, manifest }: SiteEntry) {
  return {
    site,
    state: manifest?.state ?? ('present' as const),
    protect: manifest?.protect ?? false,
    suspend: manifest?.suspend ?? false,
    held: manifest === null,
  };
}

function bySite(
  changes: readonly Change[],
  conflicts: readonly Conflict[],
  sorted: readonly SortedChanges[],
  verdict: Verdict,
): Map<string, SitePlan> {
  const sites = new Map<string, { [Member in keyof SitePlan]: SitePlan[Member][number][] }>();
  const of = (site: string) => {
    let plan = sites.get(site);
    if (plan === undefined) {
      plan = { changes: [], allowed: [], conflicts: [], blocks: [], left: [] };
      sites.set(site, plan);
    }
    return plan;
  };
  for (const change of changes) of(change.site).changes.push(change);
  for (const change of verdict.allowed) of(change.site).allowed.push(change);
  for (const conflict of conflicts) of(conflict.site).conflicts.push(conflict);
  for (const { left } of sorted) for (const one of left) of(one.change.site).left.push(one);
  for (const block of verdict.blocked) for (const site of block.sites) of(site).blocks.push(block);
  return sites;
}
