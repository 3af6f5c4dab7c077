import type { Clock } from '../../base/clock.ts';
import { limit } from '../../base/limit.ts';
import type { Log } from '../../base/log.ts';
import type { Applier, Change, Target } from '../appliers/contract.ts';
import { type DesiredState, desiredFor } from '../desired/desired-state.ts';
import type { Inventory } from '../pass/inventory.ts';
import { EMPTY_SITE_PLAN, type PassPlan } from '../pass/pass.ts';
import { isHostFault } from './conditions.ts';
import { executeSite, isOptional, type SiteOutcome } from './execute.ts';
import type { Operations } from './operations.ts';
import type { RepairLoops, Retries } from './retries.ts';
import type { SiteStatuses } from './site-statuses.ts';

export interface SiteRunsDeps {
  readonly appliers: ReadonlyMap<Target, Applier>;
  readonly operations: Operations;
  readonly drainSeconds: number;
  /** Active runs at most; default: 2,000. */
  readonly runsAtOnce: number | undefined;
  readonly statuses: SiteStatuses;
  readonly retries: Retries;
  readonly repairLoops: RepairLoops;
  readonly inventory: Inventory;
  readonly onChange: () => void;
  /** A run has ended, or a plan was outdated; `again`: the site needs another pass. */
  readonly onEnd: (site: string, again: boolean) => void;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** A failing operation is reported as failed after this many attempts; retries of the site continue. */
const ATTEMPTS_PER_OPERATION = 3;

/**
 * Active runs batch their calls to Cloudflare together, so fewer active runs mean more calls. Ten thousand active runs
 * took a quarter of the daemon's memory.
 */
const RUNS_AT_ONCE = 2_000;

/** One site of a plan, with the ids of its unfinished operations. */
interface SiteTask {
  readonly site: string;
  readonly plan: PassPlan;
  readonly operations: readonly string[];
}

interface ActiveRun {
  /** What the run applies. */
  readonly desired: ReturnType<typeof desiredFor>;
  readonly superseded: AbortController;
  /** A pass over the site was asked for during the run. */
  rerun: boolean;
  ended: Promise<void>;
}

/** The active runs, at most one per site. A run applies the changes that a plan allows and reports the result. */
export class SiteRuns {
  readonly #deps: SiteRunsDeps;
  readonly #active = new Map<string, ActiveRun>();
  readonly #limit: ReturnType<typeof limit>;
  /** When each site's last run ended, by the monotonic clock. A plan whose observation is older is outdated. */
  readonly #endedAt = new Map<string, number>();

  constructor(deps: SiteRunsDeps) {
    this.#deps = deps;
    this.#limit = limit(deps.runsAtOnce ?? RUNS_AT_ONCE);
  }

  async ended(): Promise<void> {
    await Promise.all([...this.#active.values()].map(({ ended }) => ended));
  }

  /** Ends the runs of the sites that this revision changes or gives to another host, after their current step. */
  supersede(state: DesiredState): void {
    for (const [site, { desired, superseded }] of this.#active) {
      if (desired !== desiredFor(state, site)) superseded.abort();
    }
  }

  /** Ends all runs after their current step. */
  supersedeAll(): void {
    for (const { superseded } of this.#active.values()) superseded.abort();
  }

  /** Starts the site's run if the plan allows changes and the site may run now; without changes, writes its status. */
  reconcile(task: SiteTask): void {
    const { site, plan, operations } = task;
    const active = this.#active.get(site);
    if (active !== undefined) {
      // The run may already be past what this pass found, so another follows. A pass without scope covers all sites.
      active.rerun ||= plan.scope?.has(site) ?? true;
      return;
    }
    if ((this.#endedAt.get(site) ?? 0) >= plan.observedAt) {
      this.#deps.onEnd(site, true);
      return;
    }
    if (operations.length === 0 && this.#isConverged(task)) return;
    const { allowed } = plan.bySite.get(site) ?? EMPTY_SITE_PLAN;
    if (allowed.length === 0) this.#settleWithoutRun(task);
    else if (
      this.#deps.retries.mayRun(site, plan.desired.sites.get(site)) ||
      (operations.length > 0 && this.#deps.operations.isQueued(site))
    )
      this.#start(task);
  }

  /** Nothing has changed since the site converged, according to this plan. */
  #isConverged({ site, plan }: SiteTask): boolean {
    const desired = plan.desired.sites.get(site);
    return (
      desired !== undefined &&
      this.#deps.inventory.convergedTo(site) === desired &&
      !plan.bySite.has(site) &&
      plan.unobserved.size === 0 &&
      !plan.uncertified.has(site) &&
      plan.shortfall(site) === null
    );
  }

  #settleWithoutRun(task: SiteTask): void {
    const { statuses, retries, inventory } = this.#deps;
    const { site, plan } = task;
    retries.clear(site);
    const before = statuses.get(site);
    const isGone = !plan.desired.sites.has(site) && before?.reason === 'Removed' && !plan.bySite.has(site);
    if (!isGone) this.#settle(task, null, true);
    // The status of a removed site is kept for one revision.
    else if (before.desired !== plan.desired.revision) {
      statuses.forget(site);
      inventory.forget(site);
      this.#endedAt.delete(site);
    }
  }

  #start(task: SiteTask): void {
    const { site, plan } = task;
    const { retries } = this.#deps;
    retries.started(site, plan.desired.sites.get(site));
    const superseded = new AbortController();
    const active: ActiveRun = {
      desired: desiredFor(plan.desired, site),
      superseded,
      rerun: false,
      ended: Promise.resolve(),
    };
    this.#active.set(site, active);
    const run = async () => {
      // The run may be superseded, or the daemon stopped, before the limit lets it start.
      if (superseded.signal.aborted || this.#deps.signal.aborted) return;
      await this.#run(task, superseded.signal);
    };
    active.ended = this.#limit(run).finally(() => {
      this.#active.delete(site);
      this.#endedAt.set(site, this.#deps.clock.now());
      retries.ended(site);
      const again = active.rerun || superseded.signal.aborted || this.#deps.operations.isQueued(site);
      this.#deps.onEnd(site, again);
    });
  }

  async #run(task: SiteTask, superseded: AbortSignal): Promise<void> {
    const { statuses, retries, repairLoops, inventory, log, clock, signal } = this.#deps;
    const { site, plan, operations } = task;
    const desired = plan.desired.sites.get(site);
    const removal = desired === undefined || desired.manifest?.state === 'absent';
    const { allowed: changes } = plan.bySite.get(site) ?? EMPTY_SITE_PLAN;
    for (const change of changes) {
      if (inventory.wasApplied(change)) repairLoops.repaired(change);
      inventory.add(change.target, site, change.key);
    }
    inventory.outdate(site);
    statuses.started(plan, site, changes.length);
    log.info({ site, revision: plan.desired.revision, changes: changes.length }, 'applying');
    const dnsRemovedAt = statuses.dnsRemovedAt(site);
    const run = { changes, unobserved: plan.unobserved, removal, dnsRemovedAt, superseded };
    const waits = new Map<Change, string>();
    this.#deps.operations.begin(site, removal);
    const outcome = await executeSite(
      run,
      {
        appliers: this.#deps.appliers,
        drainSeconds: this.#deps.drainSeconds,
        onDnsRemoved: (at) => {
          statuses.dnsRemoved(site, at);
          this.#deps.onChange();
        },
        onProgress: (change, message) => {
          waits.set(change, message);
          statuses.progress(site, changes.length, [...waits.values()]);
          this.#deps.onChange();
        },
        onStep: (step) => this.#deps.operations.step(site, operations, step),
        clock,
      },
      signal,
    );
    this.#deps.operations.end(site);
    if (signal.aborted) return;
    const skipped = changes.length - outcome.done.length - outcome.failures.length;
    if (superseded.aborted && outcome.failures.length === 0 && skipped > 0) return;
    const errors = outcome.failures.map(({ error }) => error);
    if (outcome.unobserved !== null) errors.push(outcome.unobserved);
    if (errors.length > 0) retries.failed(site, desired, errors);
    else retries.clear(site);
    const isApplied =
      outcome.failures.every(({ change }) => isOptional(run, change, this.#deps.appliers)) &&
      outcome.unobserved === null;
    this.#settle(task, outcome, isApplied);
    if (superseded.aborted) inventory.outdate(site);
  }

  #settle({ site, plan, operations }: SiteTask, outcome: SiteOutcome | null, isApplied: boolean): void {
    const { statuses, retries, inventory, log, onChange } = this.#deps;
    const nextRetry = retries.next(site);
    const settled = statuses.settle(plan, site, outcome, { isApplied, nextRetry });
    const desired = plan.desired.sites.get(site) ?? null;
    inventory.settle(settled.status, settled.isConverged ? desired : null);
    const { reason, message, ready } = settled.status;
    if (settled.changed) log[ready ? 'info' : 'warn']({ site, reason, detail: message }, 'condition changed');
    // While an allowed change isn't applied, its failures decide whether the operations fail, not the obstacle.
    const needsAction = isApplied && settled.obstacle !== null && settled.obstacle.transient !== true;
    const hasFailed = outcome?.terminal || needsAction || retries.failures(site) >= ATTEMPTS_PER_OPERATION;
    if (isApplied && settled.obstacle === null) this.#deps.operations.finish(operations, 'succeeded');
    else if (hasFailed) {
      const fault = isHostFault(settled.obstacle, outcome?.failures ?? [])
        ? ({ fault: 'host' } as const)
        : {};
      this.#deps.operations.finish(operations, 'failed', { reason: `${reason}: ${message}`, ...fault });
    }
    onChange();
  }
}
