import type { Applier, Target } from '../appliers/contract.ts';
import { limit } from '../base/limit.ts';
import type { Log } from '../base/log.ts';
import { type DesiredState, desiredFor } from '../desired/desired-state.ts';
import type { Inventory } from '../pass/inventory.ts';
import { NOTHING, type PassPlan } from '../pass/pass.ts';
import { executeSite, isForgiven, type SiteOutcome } from './execute.ts';
import type { Operations } from './operations.ts';
import type { RepairLoops } from './repair-loops.ts';
import type { Retries } from './retries.ts';
import type { SiteStatuses } from './site-statuses.ts';

export interface SiteRunsDeps {
  readonly appliers: ReadonlyMap<Target, Applier>;
  readonly operations: Operations;
  readonly drainSeconds: number;
  /** So many sites are brought about at a time, 2,000 by default; the others wait their turn. */
  readonly runsAtOnce: number | undefined;
  readonly statuses: SiteStatuses;
  readonly retries: Retries;
  readonly repairLoops: RepairLoops;
  readonly inventory: Inventory;
  readonly onChange: () => void;
  /** A run has ended; `lookAgain`: something new is asked of its site already. */
  readonly onEnd: (site: string, again: boolean) => void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** A failing operation is given up after this many attempts; the site itself is tried on. */
const ATTEMPTS_PER_OPERATION = 3;

/**
 * Sites share their calls to Cloudflare, so a smaller number would make more of them; and of ten thousand at once, what
 * each holds until its end was a quarter of the daemon's memory.
 */
const RUNS_AT_ONCE = 2_000;

interface Running {
  /** What the run brings about. */
  readonly desired: ReturnType<typeof desiredFor>;
  readonly superseded: AbortController;
  /** A look at the site was asked for meanwhile. */
  rerun: boolean;
  ended: Promise<void>;
}

/** The runs under way, one a site; each brings a plan's changes of its site into the world and says how that went. */
export class SiteRuns {
  readonly #deps: SiteRunsDeps;
  readonly #running = new Map<string, Running>();
  readonly #limit: ReturnType<typeof limit>;
  /** By `performance.now()`: a plan from before a run's end speaks of a world that the run has changed since. */
  readonly #endedAt = new Map<string, number>();

  constructor(deps: SiteRunsDeps) {
    this.#deps = deps;
    this.#limit = limit(deps.runsAtOnce ?? RUNS_AT_ONCE);
  }

  async ended(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  /** A run of a site of which this revision asks something else, of another host even, ends after its current step. */
  supersede(state: DesiredState): void {
    for (const [site, { desired, superseded }] of this.#running) {
      if (desired !== desiredFor(state, site)) superseded.abort();
    }
  }

  /** Starts the site's run where there is something to do now; otherwise says where it stands. */
  consider(site: string, plan: PassPlan, operations: readonly string[]): void {
    const { statuses, retries } = this.#deps;
    const running = this.#running.get(site);
    if (running !== undefined) {
      // Somebody asked for a look at this very site, and the run may be past what has changed.
      running.rerun ||= plan.scope?.has(site) ?? false;
      return;
    }
    if ((this.#endedAt.get(site) ?? 0) >= plan.observedAt) {
      this.#deps.onEnd(site, true);
      return;
    }
    if (operations.length === 0 && statuses.isConverged(plan, site)) return;
    const entry = plan.desired.entries.get(site);
    const { allowed } = plan.bySite.get(site) ?? NOTHING;
    if (allowed.length === 0) {
      retries.clear(site);
      const before = statuses.get(site);
      const over = entry === undefined && before?.reason === 'Removed' && !plan.bySite.has(site);
      if (!over) this.#settle(site, plan, operations, null);
      // One revision later there is nothing to say any more of a site that git doesn't know.
      else if (before.desired !== plan.desired.revision) statuses.forget(site);
    } else if (retries.mayRun(site, entry) || this.#deps.operations.isQueued(site)) {
      retries.started(site, entry);
      const superseded = new AbortController();
      const desired = desiredFor(plan.desired, site);
      const started: Running = { desired: desired, superseded, rerun: false, ended: Promise.resolve() };
      this.#running.set(site, started);
      const run = async () => {
        // What it was to bring about may be past when its turn comes.
        if (!superseded.signal.aborted && !this.#deps.signal.aborted) {
          await this.#run(site, plan, operations, superseded.signal);
        }
      };
      started.ended = this.#limit(run).finally(() => {
        this.#running.delete(site);
        this.#endedAt.set(site, performance.now());
        retries.ended(site);
        const again = started.rerun || superseded.signal.aborted || this.#deps.operations.isQueued(site);
        this.#deps.onEnd(site, again);
      });
    }
  }

  async #run(
    site: string,
    plan: PassPlan,
    operations: readonly string[],
    superseded: AbortSignal,
  ): Promise<void> {
    const { statuses, retries, repairLoops, inventory, log, signal } = this.#deps;
    const entry = plan.desired.entries.get(site);
    const removal = entry === undefined || entry.manifest?.state === 'absent';
    const { allowed: changes } = plan.bySite.get(site) ?? NOTHING;
    for (const change of changes) {
      if (statuses.wasApplied(change)) repairLoops.repaired(change);
      inventory.add(change.target, site, change.key);
    }
    statuses.started(plan, site, changes.length);
    log.info({ site, revision: plan.desired.revision, changes: changes.length }, 'applying');
    const withdrawnAt = statuses.withdrawnAt(site);
    const run = { changes, unobserved: plan.unobserved, removal, withdrawnAt, superseded };
    const outcome = await executeSite(
      run,
      {
        appliers: this.#deps.appliers,
        drainSeconds: this.#deps.drainSeconds,
        onWithdrawn: (at) => {
          statuses.withdrawn(site, at);
          this.#deps.onChange();
        },
        onStep: (step) => this.#deps.operations.step(operations, step),
      },
      signal,
    );
    if (signal.aborted) return;
    const unfinished = changes.length - outcome.done.length - outcome.failures.length;
    if (superseded.aborted && outcome.failures.length === 0 && unfinished > 0) return;
    const errors = outcome.failures.map(({ error }) => error);
    if (outcome.unobserved !== null) errors.push(outcome.unobserved);
    if (errors.length > 0) retries.failed(site, entry, errors);
    else retries.clear(site);
    const counts =
      outcome.failures.every(({ change }) => isForgiven(run, change, this.#deps.appliers)) &&
      outcome.unobserved === null;
    this.#settle(site, plan, operations, outcome, counts);
    if (superseded.aborted) statuses.outdated(site);
  }

  #settle(
    site: string,
    plan: PassPlan,
    operations: readonly string[],
    outcome: SiteOutcome | null,
    counts = outcome === null,
  ): void {
    const { statuses, retries, log, onChange } = this.#deps;
    const settled = statuses.settle(plan, site, outcome, { counts, nextRetry: retries.next(site) });
    const { reason, message, ready } = settled.status;
    if (settled.changed) log[ready ? 'info' : 'warn']({ site, reason, detail: message }, 'condition changed');
    const hopeless = settled.obstacle !== null && settled.obstacle.passing !== true;
    const gaveUp = outcome?.terminal || hopeless || retries.failures(site) >= ATTEMPTS_PER_OPERATION;
    if (counts && settled.obstacle === null) this.#deps.operations.finish(operations, 'succeeded');
    else if (gaveUp) this.#deps.operations.finish(operations, 'failed', `${reason}: ${message}`);
    onChange();
  }
}
