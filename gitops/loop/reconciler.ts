import type { Clock } from '../../base/clock.ts';
import type { HistoryIndex } from '../../sites/repo/history-index.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { Certificates } from '../certificates/contract.ts';
import { changedSites, type DesiredState } from '../desired/desired-state.ts';
import { changeId } from '../pass/guards.ts';
import type { Inventory } from '../pass/inventory.ts';
import type { PassPlan } from '../pass/pass.ts';
import type { Operations } from './operations.ts';
import { passScope } from './pass-scope.ts';
import type { PassFacts, Planner } from './planner.ts';
import type { Retries } from './retries.ts';
import type { Schedule } from './schedule.ts';
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

/** What one pass has read, and what it covers. */
interface PassInput {
  readonly desired: DesiredState;
  /** Sites that differ from the last pass. */
  readonly changed: readonly string[];
  /** Ids of the unfinished operations by site. */
  readonly open: ReadonlyMap<string, readonly string[]>;
  readonly historyRewritten: boolean;
  /** `null`: all sites. */
  readonly scope: ReadonlySet<string> | null;
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

  constructor(
    deps: ReconcilerDeps,
    known: { readonly revision: string | null; readonly isLost?: boolean } | null,
  ) {
    this.#deps = deps;
    this.#revision = known?.revision ?? null;
    this.#stateLost = known === null || known.isLost === true;
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

  /** Throws where the desired state can't be read; nothing has changed then. */
  async pass(pending: PendingChecks): Promise<void> {
    const input = await this.#read(pending);
    if (input === null) {
      this.#nextFullAt = this.#intervalEnd();
      this.#deps.schedule.succeeded();
      return;
    }
    const { desired, changed, scope } = input;
    const { revision } = desired;
    const isFull = scope === null;
    const isEmpty = scope?.size === 0;
    const plan = isEmpty
      ? null
      : await this.#plan(desired, scope, { historyRewritten: input.historyRewritten });
    this.#deps.statuses.setRevision(revision);
    for (const site of changed) this.#deps.inventory.outdate(site);
    if (plan !== null) this.#apply(plan, input.open);
    this.#desired = desired;
    if (isFull) this.#nextFullAt = this.#intervalEnd();
    if (isFull) this.#deps.index.update(desired.sites.size);
    if (this.#revision !== revision || !isEmpty) this.#deps.onChange();
    // The old revision stays the reference until the guarded changes are approved or gone (docs/reconciler.md, rule 4).
    // A target that wasn't observed may hide guarded changes.
    const isUndecided = this.#hasGuardedChanges || (plan !== null && plan.unobserved.size > 0);
    if (!(input.historyRewritten && isUndecided)) this.#revision = revision;
  }

  /** `null`: the repository has no branch and never had one, so there is nothing to apply. */
  async #read(pending: PendingChecks): Promise<PassInput | null> {
    const { source, operations, certificates, runs, retries, schedule, clock } = this.#deps;
    // Read before the branch head: this pass then covers the commits of all these operations.
    const unfinished = operations.openBySite();
    const isObservationDue = schedule.isDue();
    const reading = await source.read({ desired: this.#desired, revision: this.#revision });
    if (reading === null) return null;
    const { desired, isComplete } = reading;
    const open: PassInput['open'] = isComplete ? unfinished : new Map();
    const historyRewritten = await this.#isRewritten(desired.revision);
    certificates?.follow(desired);
    runs.supersede(desired);
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
        sites: new Set([...pending.sites, ...changed, ...queued, ...retries.due()]),
      },
      desired,
    );
    return { desired, changed, open, historyRewritten, scope };
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
