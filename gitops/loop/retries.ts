import { backoffMs } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { GivenUpError, QuotaReachedError, RetryableError } from '../../base/errors.ts';
import type { Change } from '../appliers/contract.ts';
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

/**
 * The time of the next full pass after a failed observation. Only a full pass without a failure clears it: a
 * successful pass over some sites says nothing about the others. Times are by the monotonic clock.
 */
export class Schedule {
  readonly #clock: Clock;
  readonly #random: () => number;
  #failures = 0;
  #at = Number.POSITIVE_INFINITY;
  #hasSucceeded = false;

  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** At least one full pass since the start observed everything. */
  get hasSucceeded(): boolean {
    return this.#hasSucceeded;
  }

  get at(): number {
    return this.#at;
  }

  isDue(): boolean {
    return this.#clock.now() >= this.#at;
  }

  /**
   * Failures of passes that run before the scheduled time neither delay it nor increase the backoff. Only a longer
   * `retryAfter` of the other side delays it.
   */
  failed(errors: Iterable<Error>): void {
    const now = this.#clock.now();
    const retryAfterMs = [...errors].map((error) =>
      error instanceof RetryableError ? (error.retryAfter ?? 0) * 1000 : 0,
    );
    const isWaiting = now < this.#at && this.#at !== Number.POSITIVE_INFINITY;
    if (!isWaiting) {
      this.#failures += 1;
      this.#at = now + backoffMs(this.#failures, this.#random);
    }
    this.#at = Math.max(this.#at, now + Math.max(0, ...retryAfterMs));
  }

  succeeded(): void {
    this.#hasSucceeded = true;
    this.#failures = 0;
    this.#at = Number.POSITIVE_INFINITY;
  }
}

const MAX_REPAIRS = 3;
const WINDOW_MS = 10 * 60_000;

/**
 * Counts repairs by target and key. Three repairs within ten minutes mean that something keeps changing the object:
 * it is left alone until the oldest of these repairs is ten minutes old (docs/reconciler.md, rule 11).
 */
export class RepairLoops {
  readonly #clock: Clock;
  /** Times of repairs within ten minutes, by object; the object repaired last comes last. */
  readonly #repairs = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  repaired(change: Change): void {
    const times = [...this.#recent(change), this.#clock.now()];
    this.#repairs.delete(idOf(change));
    this.#repairs.set(idOf(change), times);
    this.#forgetOld();
  }

  isRepairLoop(change: Change): boolean {
    return this.#recent(change).length >= MAX_REPAIRS;
  }

  #forgetOld(): void {
    const since = this.#clock.now() - WINDOW_MS;
    for (const [id, times] of this.#repairs) {
      if (times.some((at) => at > since)) return;
      this.#repairs.delete(id);
    }
  }

  #recent(change: Change): number[] {
    const since = this.#clock.now() - WINDOW_MS;
    const recent = (this.#repairs.get(idOf(change)) ?? []).filter((at) => at > since);
    if (recent.length === 0) this.#repairs.delete(idOf(change));
    return recent;
  }
}

function idOf({ target, key }: Change): string {
  return `${target} ${key}`;
}
