import { eventually } from '../support/eventually.ts';

/** Half of RATE_LIMIT_PER_SUBJECT: a step may call management, too. */
const PER_MINUTE = 600;
const MINUTE_MS = 60_000;

/** Keeps calls below a limit per minute. */
export class Budget {
  #calls: number[] = [];

  /** Waits until one more call is within the limit. */
  async spend(): Promise<void> {
    await eventually(
      () => {
        const now = Date.now();
        this.#calls = this.#calls.filter((at) => at > now - MINUTE_MS);
        if (this.#calls.length >= PER_MINUTE) throw new Error('the calls of this minute are spent');
        this.#calls.push(now);
      },
      { timeoutMs: 2 * MINUTE_MS, intervalMs: 500 },
    );
  }
}
