import { backoffMs } from '../base/backoff.ts';
import { RetryableError } from '../base/errors.ts';

/**
 * When everything is looked at again because something could not be read. Only a look at everything that goes well
 * settles it: that one site could be read since says nothing of the others. All times are by `performance.now()`.
 */
export class Schedule {
  #failures = 0;
  #at = Number.POSITIVE_INFINITY;
  #everWell = false;

  /** A look at everything has gone well since the start. */
  get hasSucceeded(): boolean {
    return this.#everWell;
  }

  get at(): number {
    return this.#at;
  }

  isDue(): boolean {
    return performance.now() >= this.#at;
  }

  /**
   * What comes in between because something else woke the loop neither puts the next look off nor makes the pauses
   * grow; only what the other side asks for does (`retryAfter`).
   */
  failed(errors: Iterable<Error>): void {
    const now = performance.now();
    const asked = [...errors].map((error) =>
      error instanceof RetryableError ? (error.retryAfter ?? 0) * 1000 : 0,
    );
    const isWaiting = now < this.#at && this.#at !== Number.POSITIVE_INFINITY;
    if (!isWaiting) {
      this.#failures += 1;
      this.#at = now + backoffMs(this.#failures, Math.random);
    }
    this.#at = Math.max(this.#at, now + Math.max(0, ...asked));
  }

  succeeded(): void {
    this.#everWell = true;
    this.#failures = 0;
    this.#at = Number.POSITIVE_INFINITY;
  }
}
