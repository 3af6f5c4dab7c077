import { randomUUID } from 'node:crypto';
import type { Operation, Step } from '../report/report.ts';

/** Finished operations that are remembered; older ones are answered with 404. */
const KEPT = 500;

/** The requests in flight and what became of the last ones. Pure bookkeeping: the loop says what happened. */
export class Operations {
  readonly #all: Map<string, Operation>;
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #onChange: () => void;

  /** `known` is what an earlier process knew; its unfinished ones are queued again, since their work is level-triggered. */
  constructor(known: readonly Operation[], onChange: () => void) {
    this.#all = new Map(
      known.map((operation) => [
        operation.id,
        operation.status === 'running' ? { ...operation, status: 'queued' } : operation,
      ]),
    );
    this.#onChange = onChange;
  }

  create(site: string, kind: Operation['kind'], revision: string): Operation {
    const operation: Operation = {
      id: randomUUID(),
      site,
      kind,
      status: 'queued',
      revision,
      steps: [],
      startedAt: new Date().toISOString(),
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

  /** True where an unfinished operation of the site has taken part in no run yet. */
  isQueued(site: string): boolean {
    return this.open(site).some((id) => this.#all.get(id)?.status === 'queued');
  }

  step(ids: readonly string[], step: Step): void {
    for (const id of ids) {
      const operation = this.#all.get(id);
      if (operation === undefined || operation.finishedAt !== null) continue;
      const others = operation.steps.filter(
        ({ target, key, op }) => target !== step.target || key !== step.key || op !== step.op,
      );
      this.#put({ ...operation, status: 'running', steps: [...others, step] });
    }
  }

  finish(ids: readonly string[], status: 'succeeded' | 'failed', reason?: string): void {
    for (const id of ids) {
      const operation = this.#all.get(id);
      if (operation === undefined || operation.finishedAt !== null) continue;
      const finishedAt = new Date().toISOString();
      this.#put({ ...operation, status, finishedAt, ...(reason === undefined ? {} : { reason }) });
      for (const resolve of this.#waiting.get(id) ?? []) resolve();
      this.#waiting.delete(id);
    }
  }

  /** Resolves when the operation is finished or `ms` have passed, whichever comes first. */
  async finished(id: string, ms: number): Promise<void> {
    if (this.#all.get(id)?.finishedAt !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(id, [...(this.#waiting.get(id) ?? []), resolve]);
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
  }

  all(): Operation[] {
    return [...this.#all.values()];
  }

  #put(operation: Operation): void {
    this.#all.delete(operation.id);
    this.#all.set(operation.id, operation);
    if (operation.finishedAt !== null) this.#forgetOld();
    this.#onChange();
  }

  #forgetOld(): void {
    const finished = [...this.#all.values()].filter(({ finishedAt }) => finishedAt !== null);
    for (const { id } of finished.slice(0, Math.max(0, finished.length - KEPT))) this.#all.delete(id);
  }
}
