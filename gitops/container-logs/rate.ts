/**
 * Limits how many lines of one container are kept, by the lines' own times: output that is read late counts for the
 * time when it was printed.
 */
export class LineRate {
  readonly #perSecond: number;
  readonly #burst: number;
  #left: number;
  #at = 0;

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#left = burst;
  }

  /** True if one more line of this time (milliseconds since 1970) is kept. */
  admits(at: number): boolean {
    if (at > this.#at) {
      this.#left = Math.min(this.#burst, this.#left + ((at - this.#at) / 1_000) * this.#perSecond);
      this.#at = at;
    }
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
