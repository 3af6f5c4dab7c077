import { backoffMs } from '../base/backoff.ts';
import { GivenUpError, RetryableError } from '../base/errors.ts';
import type { SiteEntry } from '../desired/desired-state.ts';

/** Failing sites that run at once: the others wait, and no healthy site waits for any of them (reconciler rule 10). */
const MAX_FAILING_RUNS = 8;

interface Retry {
  readonly failures: number;
  /** By `performance.now()`: a wall clock that jumps must neither hold retries back nor let them all loose. Infinity: never. */
  readonly at: number;
  /** What failed: another wish starts afresh. */
  readonly entry: SiteEntry | undefined;
}

/** The sites whose last run failed, and when each is tried again. */
export class Retries {
  readonly #bySite = new Map<string, Retry>();
  readonly #running = new Set<string>();

  failed(site: string, entry: SiteEntry | undefined, errors: readonly Error[]): void {
    const before = this.#bySite.get(site);
    const failures = (before?.entry === entry ? (before?.failures ?? 0) : 0) + 1;
    const asked = errors.map((error) => (error instanceof RetryableError ? (error.retryAfter ?? 0) : 0));
    const givenUp = errors.some((error) => error instanceof GivenUpError);
    const pause = givenUp
      ? Number.POSITIVE_INFINITY
      : Math.max(backoffMs(failures, Math.random), ...asked.map((seconds) => seconds * 1000));
    this.#bySite.set(site, { failures, entry, at: performance.now() + pause });
  }

  clear(site: string): void {
    this.#bySite.delete(site);
  }

  failures(site: string): number {
    return this.#bySite.get(site)?.failures ?? 0;
  }

  /** ISO 8601; `null`: nothing failed, or it has been given up. */
  next(site: string): string | null {
    const retry = this.#bySite.get(site);
    return retry === undefined || !Number.isFinite(retry.at)
      ? null
      : new Date(Date.now() + retry.at - performance.now()).toISOString();
  }

  /** Whether the site may run now: it never failed with this wish, or its time has come and the slow lane has room. */
  mayRun(site: string, entry: SiteEntry | undefined): boolean {
    const retry = this.#bySite.get(site);
    if (retry === undefined || retry.entry !== entry) return true;
    return retry.at <= performance.now() && this.#running.size < MAX_FAILING_RUNS;
  }

  started(site: string, entry: SiteEntry | undefined): void {
    const retry = this.#bySite.get(site);
    if (retry === undefined) return;
    if (retry.entry === entry) this.#running.add(site);
    else this.#bySite.delete(site);
  }

  ended(site: string): void {
    this.#running.delete(site);
  }

  /** Sites whose time has come; none while the slow lane is full. */
  due(): string[] {
    const now = performance.now();
    const room = MAX_FAILING_RUNS - this.#running.size;
    return [...this.#bySite]
      .filter(([site, { at }]) => at <= now && !this.#running.has(site))
      .sort(([, a], [, b]) => a.at - b.at)
      .slice(0, room)
      .map(([site]) => site);
  }

  /** When the next one is due, by `performance.now()`; while the lane is full a run's end wakes us instead. */
  nextAt(): number {
    if (this.#running.size >= MAX_FAILING_RUNS) return Number.POSITIVE_INFINITY;
    const waiting = [...this.#bySite].filter(([site]) => !this.#running.has(site));
    return Math.min(...waiting.map(([, { at }]) => at));
  }
}
