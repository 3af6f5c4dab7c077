import { backoffMs } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { GivenUpError, QuotaReachedError, RetryableError } from '../../base/errors.ts';
import type { DesiredSite } from '../desired/desired-state.ts';

/** Limits concurrent runs of failing sites, so that healthy sites don't wait for them (docs/reconciler.md, rule 10). */
const MAX_FAILING_RUNS = 8;

interface Retry {
  readonly failures: number;
  /** When the retry is due, by the monotonic clock. Infinity: never. */
  readonly at: number;
  /** The desired state that failed: another one resets the site's retries. */
  readonly desired: DesiredSite | undefined;
}

/** The sites whose last run failed, and when each is tried again. */
export class Retries {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #bySite = new Map<string, Retry>();
  readonly #running = new Set<string>();

  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = clock;
    this.#random = random;
  }

  failed(site: string, desired: DesiredSite | undefined, errors: readonly Error[]): void {
    const before = this.#bySite.get(site);
    const failures = (before?.desired === desired ? (before?.failures ?? 0) : 0) + 1;
    const retryAfter = errors.map((error) =>
      error instanceof RetryableError || error instanceof QuotaReachedError ? (error.retryAfter ?? 0) : 0,
    );
    const isGivenUp = errors.some((error) => error instanceof GivenUpError);
    const pause = isGivenUp
      ? Number.POSITIVE_INFINITY
      : Math.max(backoffMs(failures, this.#random), ...retryAfter.map((seconds) => seconds * 1000));
    this.#bySite.set(site, { failures, desired, at: this.#clock.now() + pause });
  }

  clear(site: string): void {
    this.#bySite.delete(site);
  }

  failures(site: string): number {
    return this.#bySite.get(site)?.failures ?? 0;
  }

  /** ISO 8601; `null`: nothing failed, or the site was given up. */
  next(site: string): string | null {
    const retry = this.#bySite.get(site);
    if (retry === undefined || !Number.isFinite(retry.at)) return null;
    return new Date(this.#clock.date().getTime() + retry.at - this.#clock.now()).toISOString();
  }

  /** True if the last failure was not of this desired state, or its retry is due and the limit is not reached. */
  mayRun(site: string, desired: DesiredSite | undefined): boolean {
    const retry = this.#bySite.get(site);
    if (retry === undefined || retry.desired !== desired) return true;
    return retry.at <= this.#clock.now() && this.#running.size < MAX_FAILING_RUNS;
  }

  started(site: string, desired: DesiredSite | undefined): void {
    const retry = this.#bySite.get(site);
    if (retry === undefined) return;
    if (retry.desired === desired) this.#running.add(site);
    else this.#bySite.delete(site);
  }

  ended(site: string): void {
    this.#running.delete(site);
  }

  /** Sites whose retry is due, the oldest first, as many as may run now. */
  due(): string[] {
    const now = this.#clock.now();
    const free = MAX_FAILING_RUNS - this.#running.size;
    return [...this.#bySite]
      .filter(([site, { at }]) => at <= now && !this.#running.has(site))
      .sort(([, a], [, b]) => a.at - b.at)
      .slice(0, free)
      .map(([site]) => site);
  }

  /**
   * When the next retry is due, by the monotonic clock. Infinity while the limit is reached: the end of a run
   * is then the trigger.
   */
  nextAt(): number {
    if (this.#running.size >= MAX_FAILING_RUNS) return Number.POSITIVE_INFINITY;
    const waiting = [...this.#bySite].filter(([site]) => !this.#running.has(site));
    return Math.min(...waiting.map(([, { at }]) => at));
  }
}
