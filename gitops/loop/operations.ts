import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Operation, Step } from '../report/report.ts';

/** Finished operations that are kept; requests for older ones are answered with 404. */
const MAX_FINISHED = 500;

/** Milliseconds after a run's end in which a new operation of its site still shows the run's steps. */
const RECENT_MS = 60_000;
/** Sites whose last run is kept for that. */
const MAX_RECENT = 500;

/** What the last run of a site has done. */
interface RecentRun {
  readonly isRemoval: boolean;
  readonly steps: readonly Step[];
  /** By the monotonic clock; `null`: it hasn't ended. */
  readonly endedAt: number | null;
}

/** The operations of requests: those in progress and the last finished ones. The loop reports their steps and results. */
export class Operations {
  readonly #all: Map<string, Operation>;
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #recent = new LRUCache<string, RecentRun>({ max: MAX_RECENT });
  readonly #onChange: () => void;
  readonly #clock: Clock;

  /** `known`: the operations of an earlier process. The running ones are queued again (docs/reconciler.md, rule 12). */
  constructor(known: readonly Operation[], onChange: () => void, clock: Clock = systemClock) {
    this.#all = new Map(
      known.map((operation) => [
        operation.id,
        operation.status === 'running' ? { ...operation, status: 'queued' } : operation,
      ]),
    );
    this.#onChange = onChange;
    this.#clock = clock;
  }

  /**
   * A `provision` or `deprovision` may be recorded after its commit, which may already have started a run. Then the
   * operation also shows that run's steps.
   */
  create(site: string, kind: Operation['kind'], revision: string): Operation {
    const operation: Operation = {
      id: randomUUID(),
      site,
      kind,
      status: 'queued',
      revision,
      steps: [...this.#startedBefore(site, kind)],
      startedAt: this.#clock.date().toISOString(),
      finishedAt: null,
    };
    this.#put(operation);
    return operation;
  }

  get(id: string): Operation | null {
    return this.#all.get(id) ?? null;
  }

  /** Ids of a site's unfinished operations. */
  open(site: string): string[] {
    return [...this.#all.values()]
      .filter((one) => one.site === site && one.finishedAt === null)
      .map(({ id }) => id);
  }

  /** Ids of all unfinished operations by site. */
  openBySite(): Map<string, string[]> {
    const sites = new Map<string, string[]>();
    for (const { id, site, finishedAt } of this.#all.values()) {
      if (finishedAt === null) sites.set(site, [...(sites.get(site) ?? []), id]);
    }
    return sites;
  }

  /** True if the site has an operation that no run has begun to carry out. */
  isQueued(site: string): boolean {
    return this.open(site).some((id) => this.#all.get(id)?.status === 'queued');
  }

  /** Begins a run of a site. */
  begin(site: string, isRemoval: boolean): void {
    this.#recent.set(site, { isRemoval, steps: [], endedAt: null });
  }

  /** Ends the site's run. */
  end(site: string): void {
    const run = this.#recent.get(site);
    if (run !== undefined) this.#recent.set(site, { ...run, endedAt: this.#clock.now() });
  }

  /**
   * Records a step of the site's run. Operations that were recorded after the run's start also show the step, but a
   * later run carries them out.
   */
  step(site: string, ids: readonly string[], step: Step): void {
    const run = this.#recent.get(site);
    if (run !== undefined) this.#recent.set(site, { ...run, steps: withStep(run.steps, step) });
    for (const id of new Set([...ids, ...this.open(site)])) {
      const operation = this.#all.get(id);
      if (operation === undefined || operation.finishedAt !== null) continue;
      const status = ids.includes(id) ? 'running' : operation.status;
      this.#put({ ...operation, status, steps: withStep(operation.steps, step) });
    }
  }

  /** `failure`: why it failed. */
  finish(
    ids: readonly string[],
    status: 'succeeded' | 'failed',
    failure: Pick<Operation, 'reason' | 'fault'> = {},
  ): void {
    for (const id of ids) {
      const operation = this.#all.get(id);
      if (operation === undefined || operation.finishedAt !== null) continue;
      const finishedAt = this.#clock.date().toISOString();
      this.#put({ ...operation, status, finishedAt, ...failure });
      for (const resolve of this.#waiting.get(id) ?? []) resolve();
      this.#waiting.delete(id);
    }
  }

  /** Resolves when the operation is finished, `ms` have passed or the signal aborts, whichever comes first. */
  async finished(id: string, ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#all.get(id)?.finishedAt !== null) return;
    const finished = new AbortController();
    this.#waiting.set(id, [...(this.#waiting.get(id) ?? []), () => finished.abort()]);
    await this.#clock.sleep(ms, {
      signal: AbortSignal.any([finished.signal, ...(signal === undefined ? [] : [signal])]),
    });
  }

  /**
   * The steps of a run that began before the operation was recorded, if it may be the operation's own: a removal doesn't
   * take the steps of an earlier creation.
   */
  #startedBefore(site: string, kind: Operation['kind']): readonly Step[] {
    const run = this.#recent.get(site);
    if (run === undefined || kind !== (run.isRemoval ? 'deprovision' : 'provision')) return [];
    return run.endedAt === null || this.#clock.now() - run.endedAt <= RECENT_MS ? run.steps : [];
  }

  all(): Operation[] {
    return [...this.#all.values()];
  }

  #put(operation: Operation): void {
    this.#all.delete(operation.id);
    this.#all.set(operation.id, operation);
    if (operation.finishedAt !== null) this.#dropOldest();
    this.#onChange();
  }

  #dropOldest(): void {
    const finished = [...this.#all.values()].filter(({ finishedAt }) => finishedAt !== null);
    for (const { id } of finished.slice(0, Math.max(0, finished.length - MAX_FINISHED))) this.#all.delete(id);
  }
}

function withStep(steps: readonly Step[], step: Step): Step[] {
  const others = steps.filter(
    ({ target, key, op }) => target !== step.target || key !== step.key || op !== step.op,
  );
  return [...others, step];
}
