import { limit } from '../../../base/limit.ts';

/** How many current days (today, yesterday) are filled at the same time. */
const CURRENT = 2;
/** Older days that may wait or be filled. Callers can ask for any number of days. */
const MOST_OLD = 62;

/** Fills of days: today and yesterday don't wait behind the older days of callers. */
export class DayQueue {
  readonly #current = limit(CURRENT);
  readonly #old = limit(1);
  #waiting = 0;

  /** True if a further older day may wait. */
  get hasRoom(): boolean {
    return this.#waiting < MOST_OLD;
  }

  async run(isCurrent: boolean, work: () => Promise<void>): Promise<void> {
    if (isCurrent) return await this.#current(work);
    this.#waiting += 1;
    try {
      await this.#old(work);
    } finally {
      this.#waiting -= 1;
    }
  }
}
