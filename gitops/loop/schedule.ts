import { backoffMs } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { RetryableError } from '../../base/errors.ts';

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
