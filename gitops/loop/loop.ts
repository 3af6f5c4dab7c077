import { type Clock, systemClock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { HistoryIndex } from '../../sites/repo/history-index.ts';
import { LeaseHeldError } from '../../sites/repo/host-lease.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { Applier } from '../appliers/contract.ts';
import type { Certificates } from '../certificates/contract.ts';
import type { DesiredState } from '../desired/desired-state.ts';
import type { DesiredStateReader } from '../desired/reader.ts';
import { Inventory } from '../pass/inventory.ts';
import type { PassPlan } from '../pass/pass.ts';
import type { SiteStatus } from '../report/report.ts';
import { Operations } from './operations.ts';
import { Planner, type PlannerDeps } from './planner.ts';
import { Reconciler } from './reconciler.ts';
import { RepairLoops, Retries, Schedule } from './retries.ts';
import { SiteRuns, type SiteRunsDeps } from './site-runs.ts';
import { SiteStatuses } from './site-statuses.ts';
import { Source, type SourceDeps, type SourceProblem } from './source.ts';
import type { State, StateFile } from './state.ts';
import { Triggers } from './triggers.ts';

interface KnownState {
  readonly revision: string | null;
  readonly sites: readonly SiteStatus[];
}

export interface LoopDeps extends Pick<PlannerDeps, 'policy' | 'drift' | 'frozen'> {
  readonly repo: SitesRepo;
  readonly lease?: SourceDeps['lease'];
  readonly reader: DesiredStateReader;
  readonly appliers: readonly Applier[];
  readonly operations: Operations;
  readonly host: string;
  readonly drainSeconds: number;
  /** Seconds between two full passes. */
  readonly intervalSeconds: number;
  readonly runsAtOnce?: SiteRunsDeps['runsAtOnce'];
  readonly certificates?: Pick<Certificates, 'follow' | 'uncertified'>;
  /** The state of an earlier process; `null`: none is saved, or it can't be read. */
  readonly known: KnownState | null;
  readonly onChange: () => void;
  readonly log: Log;
  readonly clock?: Clock;
}

/**
 * Runs one pass at a time: when triggered, after each interval, and when a retry of a run or an observation is due
 * (docs/reconciler.md, rules 1 and 10). `Reconciler` is the pass itself.
 */
export class Loop {
  readonly #deps: Pick<LoopDeps, 'repo' | 'appliers' | 'log'>;
  readonly #stop = new AbortController();
  readonly #triggers: Triggers;
  readonly #retries: Retries;
  readonly #schedule: Schedule;
  readonly #statuses: SiteStatuses;
  readonly #index: HistoryIndex;
  readonly #runs: SiteRuns;
  readonly #source: Source;
  readonly #reconciler: Reconciler;
  #ended: Promise<void> = Promise.resolve();
  #lastError: Error | null = null;
  #passes = 0;
  /** When the last pass that could plan ended, by the monotonic clock, and how long it took; `null`: none has. */
  #passed: { readonly at: number; readonly tookMs: number } | null = null;
  /** When the pass that is running started, by the monotonic clock; `null`: none is. */
  #passSince: number | null = null;
  readonly #clock: Clock;

  constructor({ known, clock = systemClock, ...deps }: LoopDeps) {
    this.#deps = deps;
    this.#clock = clock;
    const { signal } = this.#stop;
    const inventory = new Inventory(known?.sites);
    const repairLoops = new RepairLoops(clock);
    const triggers = new Triggers(clock);
    const retries = new Retries(clock);
    const schedule = new Schedule(clock);
    const index = new HistoryIndex(deps.repo, deps.log);
    const faultOf = (site: string) =>
      deps.appliers.map((applier) => applier.faultOf?.(site) ?? null).find((fault) => fault !== null) ?? null;
    const serving = (site: string) =>
      deps.appliers.flatMap(({ target, serving: keysOf }) =>
        (keysOf?.(site) ?? []).map((key) => ({ target, key })),
      );
    const statuses = new SiteStatuses(deps.host, known?.sites ?? [], { inventory, faultOf, serving });
    const source = new Source({ ...deps, clock, onLateRevision: () => triggers.check() });
    const shared = {
      ...deps,
      source,
      inventory,
      repairLoops,
      triggers,
      retries,
      schedule,
      index,
      statuses,
      clock,
      signal,
    };
    const runs = new SiteRuns({
      ...shared,
      appliers: new Map(deps.appliers.map((applier) => [applier.target, applier])),
      runsAtOnce: deps.runsAtOnce,
      onEnd: (site, again) => (again ? triggers.site(site) : triggers.check()),
    });
    this.#reconciler = new Reconciler({ ...shared, planner: new Planner(shared), runs }, known);
    this.#source = source;
    this.#triggers = triggers;
    this.#retries = retries;
    this.#schedule = schedule;
    this.#statuses = statuses;
    this.#index = index;
    this.#runs = runs;
  }

  start(): void {
    this.#ended = this.#run();
    const { repo, appliers, log } = this.#deps;
    const { signal } = this.#stop;
    const onWatchError = (err: unknown) =>
      log.warn({ err }, 'the sites repository can’t be watched; it is polled instead');
    void triggerOnEach(repo.changes(signal, onWatchError), () => this.#triggers.check());
    for (const applier of appliers) {
      const trigger = (item: unknown) =>
        typeof item === 'string' ? this.#triggers.site(item) : this.#triggers.all();
      if (applier.events) void triggerOnEach(applier.events(signal), trigger);
    }
  }

  /** Starts a pass that covers a new revision and new operations. */
  trigger(): void {
    this.#triggers.check();
  }

  /** Starts a pass over one site, because something that it depends on has changed. */
  checkSite(site: string): void {
    this.#triggers.site(site);
  }

  /** Starts a full pass. */
  sync(): void {
    this.#triggers.all();
  }

  /** Lets the guarded changes of this plan through. */
  approve(plan: PassPlan): void {
    this.#reconciler.approve(plan);
    this.#triggers.all();
  }

  /** Resolves after the current step of each active run. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
    await this.#runs.ended();
    await this.#index.ended();
  }

  get revision(): string | null {
    return this.#reconciler.revision;
  }

  get passes(): number {
    return this.#passes;
  }

  /** For how many milliseconds the present pass has been running; 0: none is running. */
  get passRunsMs(): number {
    return this.#passSince === null ? 0 : this.#clock.now() - this.#passSince;
  }

  /** The last pass that could plan: the age of what it has found, and how long it took; `null`: none has ended. */
  get lastPass(): { readonly ageMs: number; readonly tookMs: number } | null {
    if (this.#passed === null) return null;
    return { ageMs: this.#clock.now() - this.#passed.at, tookMs: this.#passed.tookMs };
  }

  /** Everything was observed at least once, so a site without a status has nothing on this host. */
  get ready(): boolean {
    return this.#schedule.hasSucceeded && this.lastError === null;
  }

  /** Why the last pass could not plan the newest revision; `null`: it could. */
  get lastError(): Error | null {
    return this.#lastError ?? this.#source.problem?.error ?? null;
  }

  /** Why the newest revision can't be read; `null`: it can. Meanwhile passes enforce the last one that could be read. */
  get sourceProblem(): SourceProblem | null {
    return this.#source.problem;
  }

  statuses(): SiteStatus[] {
    return this.#statuses.all();
  }

  status(site: string): SiteStatus | null {
    return this.#statuses.get(site);
  }

  /** The plan of a full pass over `desired`; nothing is applied. */
  async plan(desired: DesiredState, observeTimeoutMs?: number): Promise<PassPlan> {
    return await this.#reconciler.plan(desired, observeTimeoutMs);
  }

  /** The same for a branch that isn't merged: it need not be a descendant of the last revision. */
  async preview(desired: DesiredState): Promise<PassPlan> {
    return await this.#reconciler.preview(desired);
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#triggers.until(this.#nextAt(), this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      const pending = this.#triggers.take();
      this.#passSince = this.#clock.now();
      try {
        await this.#reconciler.pass(pending);
        this.#passes += 1;
        this.#passed = { at: this.#clock.now(), tookMs: this.passRunsMs };
        this.#lastError = null;
      } catch (cause) {
        this.#triggers.restore(pending);
        // Another daemon acts as this host now.
        if (cause instanceof LeaseHeldError) this.#runs.supersedeAll();
        this.#lastError = cause instanceof Error ? cause : new Error(String(cause));
        this.#schedule.failed([this.#lastError]);
        this.#deps.log.warn({ err: this.#lastError }, 'the pass could not plan; nothing was changed');
      } finally {
        this.#passSince = null;
      }
    }
  }

  /** When the next pass is due without a trigger, by the monotonic clock. */
  #nextAt(): number {
    if (this.#lastError !== null) return this.#schedule.at;
    return Math.min(this.#reconciler.nextFullAt, this.#schedule.at, this.#retries.nextAt());
  }
}

async function triggerOnEach<Item>(
  events: AsyncIterable<Item>,
  trigger: (item: Item) => void,
): Promise<void> {
  for await (const item of events) trigger(item);
}

/** A loop and its operations that continue from the saved state, and save each change of it. */
export function savedLoop(
  file: StateFile,
  known: State | null,
  deps: Omit<LoopDeps, 'operations' | 'known' | 'onChange'>,
): { readonly loop: Loop; readonly operations: Operations } {
  const onChange = () =>
    file.save(() => ({
      version: 1,
      revision: loop.revision,
      sites: loop.statuses(),
      operations: operations.all(),
    }));
  const operations = new Operations(known?.operations ?? [], onChange, deps.clock);
  const loop = new Loop({ ...deps, operations, known, onChange });
  return { loop, operations };
}
