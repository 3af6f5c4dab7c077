import type { Applier, Target } from '../appliers/contract.ts';
import type { Log } from '../base/log.ts';
import type { Certificates } from '../certificates/contract.ts';
import { changedSites, type DesiredState, type DesiredStateReader } from '../desired/desired-state.ts';
import { DesiredResources } from '../pass/desired-resources.ts';
import type { DriftModes } from '../pass/drift.ts';
import { changeId, type Policy } from '../pass/guards.ts';
import { Inventory } from '../pass/inventory.ts';
import { type PassPlan, planPass } from '../pass/pass.ts';
import { findRemovals } from '../pass/removals.ts';
import type { SiteStatus } from '../report/report.ts';
import { type SitesRepo, SitesRepoError } from '../sites-repo/sites-repo.ts';
import { HistoryIndex } from './history-index.ts';
import type { Operations } from './operations.ts';
import { RepairLoops } from './repair-loops.ts';
import { Retries } from './retries.ts';
import { Schedule } from './schedule.ts';
import { SiteRuns, type SiteRunsDeps } from './site-runs.ts';
import { SiteStatuses } from './site-statuses.ts';
import { type Pending, Triggers } from './triggers.ts';

export interface LoopDeps {
  readonly repo: SitesRepo;
  readonly reader: DesiredStateReader;
  readonly appliers: readonly Applier[];
  readonly operations: Operations;
  readonly host: string;
  readonly drainSeconds: number;
  /** Seconds between two full looks for drift, whatever happens. */
  readonly intervalSeconds: number;
  readonly runsAtOnce?: SiteRunsDeps['runsAtOnce'];
  /** Default: `sync`. */
  readonly policy?: Policy;
  /** By target; default: `enforce`. */
  readonly drift?: DriftModes;
  /** Who sees to certificates, where somebody does. */
  readonly certificates?: Pick<Certificates, 'follow' | 'uncertified'>;
  /** Why nothing may be changed just now; `null`: it may. */
  readonly frozen?: () => Promise<string | null>;
  readonly known: { readonly revision: string | null; readonly sites: readonly SiteStatus[] } | null;
  readonly onChange: () => void;
  readonly log: Log;
}

/**
 * When to reconcile: one pass at a time, one run a site at a time. A pass only plans and starts runs; it doesn't wait
 * for them, so a site whose container takes a minute to come up holds nobody else. It looks at the sites of which
 * something new is asked, and at everything at the start, in an interval, when told to, and before anything that git no
 * longer has is taken down (reconciler rules 1, 2 and 10).
 */
export class Loop {
  readonly #deps: Omit<LoopDeps, 'known'>;
  readonly #stop = new AbortController();
  readonly #triggers = new Triggers();
  readonly #retries = new Retries();
  readonly #schedule = new Schedule();
  readonly #repairLoops = new RepairLoops();
  readonly #inventory = new Inventory();
  readonly #cache = new DesiredResources();
  readonly #statuses: SiteStatuses;
  readonly #index: HistoryIndex;
  readonly #runs: SiteRuns;
  #approved: ReadonlySet<string> = new Set();
  #revision: string | null;
  #stateLost: boolean;
  /** What the last pass read; `null` before the first full one. */
  #desired: DesiredState | null = null;
  /** The last plan held something back for approval: only a full look can say whether it still must. */
  #guarded = false;
  /** When the interval is over, in milliseconds on the process's own clock, which nobody sets. */
  #nextFullAt = 0;
  #done: Promise<void> = Promise.resolve();
  #lastError: Error | null = null;
  #passes = 0;

  constructor({ known, ...deps }: LoopDeps) {
    this.#deps = deps;
    this.#index = new HistoryIndex(deps.repo, deps.log);
    this.#statuses = new SiteStatuses(deps.host, known?.sites ?? []);
    this.#revision = known?.revision ?? null;
    this.#stateLost = known === null;
    this.#runs = new SiteRuns({
      appliers: new Map(deps.appliers.map((applier) => [applier.target, applier])),
      operations: deps.operations,
      drainSeconds: deps.drainSeconds,
      runsAtOnce: deps.runsAtOnce,
      statuses: this.#statuses,
      retries: this.#retries,
      repairLoops: this.#repairLoops,
      inventory: this.#inventory,
      onChange: deps.onChange,
      onEnd: (site, lookAgain) => (lookAgain ? this.#triggers.site(site) : this.#triggers.check()),
      log: deps.log,
      signal: this.#stop.signal,
    });
  }

  start(): void {
    this.#done = this.#run();
    const unwatched = (err: unknown) =>
      this.#deps.log.warn({ err }, 'the sites repository can’t be watched, only asked now and then');
    void this.#follow(this.#deps.repo.changes(this.#stop.signal, unwatched), () => this.#triggers.check());
    for (const applier of this.#deps.appliers) {
      if (applier.events) void this.#follow(applier.events(this.#stop.signal), () => this.#triggers.all());
    }
  }

  /** Looks at once whether there is a new revision or a new operation. */
  trigger(): void {
    this.#triggers.check();
  }

  /** Looks at one site at once: something that it depends on has changed. */
  checkSite(site: string): void {
    this.#triggers.site(site);
  }

  /** Looks at everything at once. */
  sync(): void {
    this.#triggers.all();
  }

  /** Lets what this plan guards through, also where it takes several passes. */
  approve(plan: PassPlan): void {
    this.#approved = new Set(plan.guarded.map(changeId));
    this.#triggers.all();
  }

  /** Ends after the steps that are under way. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
    await this.#runs.ended();
    await this.#index.ended();
  }

  get revision(): string | null {
    return this.#revision;
  }

  get passes(): number {
    return this.#passes;
  }

  /** Everything was read at least once: a site that isn't known since has nothing here. */
  get ready(): boolean {
    return this.#schedule.hasSucceeded && this.#lastError === null;
  }

  /** Why the last pass couldn't even plan; `null`: it could. */
  get lastError(): Error | null {
    return this.#lastError;
  }

  statuses(): SiteStatus[] {
    return this.#statuses.all();
  }

  status(site: string): SiteStatus | null {
    return this.#statuses.get(site);
  }

  /** What a full pass over `desired` would do, without doing it. */
  async plan(desired: DesiredState): Promise<PassPlan> {
    return await this.#plan(desired, null, await this.#rewritten(desired.revision));
  }

  /** The same for a branch that may be merged one day: that it isn't a descendant says nothing. */
  async preview(desired: DesiredState): Promise<PassPlan> {
    return await this.#plan(desired, null, false);
  }

  async #plan(
    desired: DesiredState,
    scope: ReadonlySet<string> | null,
    historyRewritten: boolean,
  ): Promise<PassPlan> {
    const { appliers, policy = 'sync', drift = {}, frozen, repo, certificates } = this.#deps;
    const guards = {
      policy,
      frozen: (await frozen?.()) ?? null,
      historyRewritten,
      stateLost: this.#stateLost,
      approved: this.#approved,
    };
    const input = {
      desired,
      scope,
      appliers,
      guards,
      cache: this.#cache,
      inventory: this.#inventory,
      lastKeys: (target: Target, sites: ReadonlySet<string>) => this.#statuses.keys(target, sites),
      drift: {
        modes: drift,
        isDrift: this.#statuses.wasApplied.bind(this.#statuses),
        isRepairLoop: this.#repairLoops.isRepairLoop.bind(this.#repairLoops),
      },
      removals: (sites: Iterable<string>) => findRemovals(sites, desired, repo),
      uncertified: () => certificates?.uncertified() ?? new Map(),
    };
    return await planPass(input, this.#stop.signal);
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#triggers.until(this.#nextAt(), this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      const asked = this.#triggers.take();
      try {
        await this.#pass(asked);
        this.#lastError = null;
      } catch (cause) {
        this.#triggers.restore(asked);
        this.#lastError = cause instanceof Error ? cause : new Error(String(cause));
        this.#schedule.failed([this.#lastError]);
        this.#deps.log.warn({ err: this.#lastError }, 'the pass could not plan; nothing was changed');
      }
    }
  }

  async #pass(asked: Pending): Promise<void> {
    const { reader, repo, operations, certificates } = this.#deps;
    // Operations that exist by now are of commits that this pass reads.
    const open = operations.openBySite();
    const again = this.#schedule.isDue();
    const revision = await repo.head();
    if (revision === null && this.#revision !== null) {
      throw new SitesRepoError(
        'the branch of the sites repository is gone; all stays as it is until it is back',
      );
    }
    if (revision === null) {
      // Nothing was ever asked for: there is nothing to do, and nothing to take away.
      this.#passes += 1;
      this.#nextFullAt = performance.now() + this.#deps.intervalSeconds * 1000;
      this.#schedule.succeeded();
      return;
    }
    const [desired, rewritten] = await Promise.all([reader.read(revision), this.#rewritten(revision)]);
    certificates?.follow(desired);
    const before = this.#desired;
    const changed = before === null ? [] : changedSites(before, desired);
    this.#runs.supersede(desired);
    const queued = [...open.keys()].filter((site) => operations.isQueued(site));
    const sites = new Set([...asked.sites, ...changed, ...queued, ...this.#retries.due()]);
    const full =
      asked.all ||
      again ||
      before === null ||
      rewritten ||
      this.#stateLost ||
      this.#guarded ||
      performance.now() >= this.#nextFullAt ||
      // What git no longer has is taken down after a look at everything only.
      [...sites].some((site) => !desired.entries.has(site));
    if (full || sites.size > 0) {
      const plan = await this.#plan(desired, full ? null : sites, rewritten);
      this.#statuses.planned(revision, changed);
      this.#act(plan, open);
    } else this.#statuses.planned(revision, []);
    this.#desired = desired;
    if (full) this.#nextFullAt = performance.now() + this.#deps.intervalSeconds * 1000;
    if (full) this.#index.renew(desired.entries.size);
    this.#passes += 1;
    if (this.#revision !== revision || full || sites.size > 0) this.#deps.onChange();
    // A rewritten branch stays the odd one out until its deletions are approved or there are none.
    if (!(rewritten && this.#guarded)) this.#revision = revision;
  }

  /** Starts the runs of a plan and says of the other sites where they stand. */
  #act(plan: PassPlan, open: ReadonlyMap<string, readonly string[]>): void {
    const all = plan.scope === null;
    const sites = new Set(plan.scope ?? [...plan.desired.entries.keys(), ...this.#statuses.sites()]);
    for (const site of [...plan.bySite.keys(), ...(all ? open.keys() : [])]) sites.add(site);
    for (const site of sites) this.#runs.consider(site, plan, open.get(site) ?? []);
    this.#guarded = plan.guarded.length > 0;
    if (!this.#guarded && all) this.#approved = new Set();
    // What could not be read now may be read in a moment.
    if (plan.unobserved.size > 0) this.#schedule.failed(plan.unobserved.values());
    else if (all) this.#schedule.succeeded();
    // What only the loss of our own state held back is for the next look to decide.
    if (plan.blocked.some(({ reason }) => reason === 'state_lost')) this.#triggers.all();
    this.#stateLost = false;
  }

  async #rewritten(revision: string): Promise<boolean> {
    if (this.#revision === null || this.#revision === revision) return false;
    return !(await this.#deps.repo.isAncestor(this.#revision, revision));
  }

  /** When to look even if nothing wakes us, by `performance.now()`. */
  #nextAt(): number {
    if (this.#lastError !== null) return this.#schedule.at;
    return Math.min(this.#nextFullAt, this.#schedule.at, this.#retries.nextAt());
  }

  async #follow(wakes: AsyncIterable<unknown>, trigger: () => void): Promise<void> {
    for await (const _ of wakes) trigger();
  }
}
