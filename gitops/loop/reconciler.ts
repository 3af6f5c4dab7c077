import type { Clock } from '../../base/clock.ts';
import type { HistoryIndex } from '../../sites/repo/history-index.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { Certificates } from '../certificates/contract.ts';
import { changedSites, type DesiredState } from '../desired/desired-state.ts';
import { changeId } from '../pass/guards.ts';
import type { Inventory } from '../pass/inventory.ts';
import type { PassPlan } from '../pass/pass.ts';
import type { Operations } from './operations.ts';
import type { PassFacts, Planner } from './planner.ts';
import type { Retries, Schedule } from './retries.ts';
import type { SiteRuns } from './site-runs.ts';
import type { SiteStatuses } from './site-statuses.ts';
import type { Source } from './source.ts';
import type { PendingChecks, Triggers } from './triggers.ts';

interface ReconcilerDeps {
  readonly repo: Pick<SitesRepo, 'isAncestor'>;
  readonly source: Source;
  readonly operations: Operations;
  readonly intervalSeconds: number;
  readonly certificates?: Pick<Certificates, 'follow'> | undefined;
  readonly planner: Planner;
  readonly runs: SiteRuns;
  readonly statuses: SiteStatuses;
  readonly inventory: Inventory;
  readonly retries: Retries;
  readonly schedule: Schedule;
  readonly triggers: Triggers;
  readonly index: HistoryIndex;
  readonly onChange: () => void;
  readonly clock: Clock;
}

/** One pass: reads the desired state, plans the sites that are due, and starts their runs without waiting for them. */
export class Reconciler {
  readonly #deps: ReconcilerDeps;
  #approved: ReadonlySet<string> = new Set();
  #revision: string | null;
  #stateLost: boolean;
  /** What the last pass read; `null` before the first pass. */
  #desired: DesiredState | null = null;
  /** The last plan has changes that wait for an approval. */
  #hasGuardedChanges = false;
  /** When the interval is over, by the monotonic clock. */
  #nextFullAt = 0;

  constructor(deps: ReconcilerDeps, known: { readonly revision: string | null } | null) {
    this.#deps = deps;
    this.#revision = known?.revision ?? null;
    this.#stateLost = known === null;
  }

  /** The last revision that was read; while a rewritten history is undecided, the one from before the rewrite. */
  get revision(): string | null {
    return this.#revision;
  }

  get nextFullAt(): number {
    return this.#nextFullAt;
  }

  /** Lets the guarded changes of this plan through, in as many passes as they take. */
  approve(plan: PassPlan): void {
    this.#approved = new Set(plan.guarded.map(changeId));
  }

  /** The plan of a full pass over `desired`. A target that takes longer than the timeout counts as unobserved. */
  async plan(desired: DesiredState, observeTimeoutMs?: number): Promise<PassPlan> {
    const historyRewritten = await this.#isRewritten(desired.revision);
    return await this.#plan(desired, null, { historyRewritten, observeTimeoutMs });
  }

  /** The same for a branch that isn't merged: it need not be a descendant of the last revision. */
  async preview(desired: DesiredState): Promise<PassPlan> {
    return await this.#plan(desired, null, { historyRewritten: false, isPreview: true });
  }

  /**
   * 1 reads git, 2 chooses the sites, 3 observes and plans them, 4 judges the plan (by its guards), 5 starts the runs, and
   * 6 advances the revision. Throws where the desired state can't be read; nothing has changed then.
   */
  async pass(pending: PendingChecks): Promise<void> {
    const { source, operations, certificates, runs, schedule, statuses, inventory, clock } = this.#deps;
    // Read before git: this pass then covers the commits of all these operations.
    const unfinished = operations.openBySite();
    const isObservationDue = schedule.isDue();

    // 1. Without a branch that has ever been there, there is nothing to apply.
    const reading = await source.read({ desired: this.#desired, revision: this.#revision });
    if (reading === null) {
      this.#nextFullAt = this.#intervalEnd();
      schedule.succeeded();
      return;
    }
    const { desired } = reading;
    const open: typeof unfinished = reading.isComplete ? unfinished : new Map();
    const historyRewritten = await this.#isRewritten(desired.revision);
    certificates?.follow(desired);
    runs.supersede(desired);

    // 2.
    const changed = this.#desired === null ? [] : changedSites(this.#desired, desired);
    const queued = [...open.keys()].filter((site) => operations.isQueued(site));
    const scope = passScope(
      {
        isFirstPass: this.#desired === null,
        isRequested: pending.all,
        isIntervalOver: clock.now() >= this.#nextFullAt,
        isObservationDue,
        isHistoryRewritten: historyRewritten,
        isStateLost: this.#stateLost,
        hasGuardedChanges: this.#hasGuardedChanges,
        sites: new Set([...pending.sites, ...changed, ...queued, ...this.#deps.retries.due()]),
      },
      desired,
    );
    const isFull = scope === null;
    const isEmpty = scope?.size === 0;

    // 3 and 4.
    const plan = isEmpty ? null : await this.#plan(desired, scope, { historyRewritten });
    statuses.setRevision(desired.revision);
    for (const site of changed) inventory.outdate(site);

    // 5.
    if (plan !== null) this.#apply(plan, open);
    if (isFull) this.#nextFullAt = this.#intervalEnd();
    if (isFull) this.#deps.index.update(desired.sites.size);
    if (this.#revision !== desired.revision || !isEmpty) this.#deps.onChange();

    // 6. The old revision stays the reference until the guarded changes are approved or gone (docs/reconciler.md, rule
    // 4). A target that wasn't observed may hide guarded changes.
    this.#desired = desired;
    const isUndecided = this.#hasGuardedChanges || (plan !== null && plan.unobserved.size > 0);
    if (!(historyRewritten && isUndecided)) this.#revision = desired.revision;
  }

  async #plan(
    desired: DesiredState,
    scope: ReadonlySet<string> | null,
    facts: Pick<PassFacts, 'historyRewritten' | 'observeTimeoutMs' | 'isPreview'>,
  ) {
    const known = { stateLost: this.#stateLost, approved: this.#approved };
    return await this.#deps.planner.plan(desired, scope, { ...facts, ...known });
  }

  /** Starts the runs of a plan, and writes the status of the sites without changes. */
  #apply(plan: PassPlan, open: ReadonlyMap<string, readonly string[]>): void {
    const { runs, statuses, schedule, triggers } = this.#deps;
    const isFull = plan.scope === null;
    const sites = new Set(plan.scope ?? [...plan.desired.sites.keys(), ...statuses.sites()]);
    for (const site of [...plan.bySite.keys(), ...(isFull ? open.keys() : [])]) sites.add(site);
    for (const site of sites) runs.reconcile({ site, plan, operations: open.get(site) ?? [] });
    this.#hasGuardedChanges = plan.guarded.length > 0;
    if (!this.#hasGuardedChanges && isFull) this.#approved = new Set();
    if (plan.unobserved.size > 0) schedule.failed(plan.unobserved.values());
    else if (isFull) schedule.succeeded();
    // A second pass with the state restored decides about these deletes (docs/reconciler.md, rule 12).
    if (plan.blocked.some(({ reason }) => reason === 'state_lost')) triggers.all();
    this.#stateLost = false;
  }

  async #isRewritten(revision: string): Promise<boolean> {
    if (this.#revision === null || this.#revision === revision) return false;
    return !(await this.#deps.repo.isAncestor(this.#revision, revision));
  }

  #intervalEnd(): number {
    return this.#deps.clock.now() + this.#deps.intervalSeconds * 1000;
  }
}

/** Reasons for a full pass (docs/reconciler.md, rule 1), and the sites that need a pass in any case. */
export interface ScopeReasons {
  readonly isFirstPass: boolean;
  /** A trigger asked for everything. */
  readonly isRequested: boolean;
  readonly isIntervalOver: boolean;
  /** A failed observation is due again. */
  readonly isObservationDue: boolean;
  readonly isHistoryRewritten: boolean;
  readonly isStateLost: boolean;
  /** Changes wait for an approval: only a full pass can say whether they still do. */
  readonly hasGuardedChanges: boolean;
  /** Sites that changed, have a queued operation or a due retry, or were named by a trigger. */
  readonly sites: ReadonlySet<string>;
}

/** The sites that the next pass covers; `null`: all. */
export function passScope(
  { sites, ...full }: ScopeReasons,
  desired: Pick<DesiredState, 'sites'>,
): ReadonlySet<string> | null {
  const removesSite = [...sites].some((site) => !desired.sites.has(site));
  return removesSite || Object.values(full).some(Boolean) ? null : sites;
}
