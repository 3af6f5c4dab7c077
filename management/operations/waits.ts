import type { Clock } from '../../base/clock.ts';

/** The longest pause before another read: a notice may be lost while the connection to the database is replaced. */
const LONGEST_MS = 5_000;

/** The requests that wait until an operation ends. */
export class OperationWaits {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<AbortController>>();
  #isStopping = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Announces that an operation has ended. */
  announce(id: string): void {
    for (const one of this.#waiting.get(id) ?? []) one.abort();
  }

  /** The process stops: each wait, also one that begins later, ends with its next read. */
  end(): void {
    this.#isStopping = true;
    for (const id of this.#waiting.keys()) this.announce(id);
  }

  /**
   * Reads until the operation has ended, the time is over or the process stops. Each read begins after its wait is
   * registered, so that an end during the read is noticed.
   */
  async until<Read>(id: string, ms: number, read: () => Promise<{ row: Read; hasEnded: boolean }>) {
    const deadline = this.#clock.now() + ms;
    for (;;) {
      const ended = new AbortController();
      const all = this.#waiting.get(id) ?? new Set();
      this.#waiting.set(id, all.add(ended));
      try {
        const { row, hasEnded } = await read();
        const leftMs = deadline - this.#clock.now();
        if (hasEnded || leftMs <= 0 || this.#isStopping) return row;
        await this.#clock.sleep(Math.min(leftMs, LONGEST_MS), { signal: ended.signal });
      } finally {
        all.delete(ended);
        if (all.size === 0) this.#waiting.delete(id);
      }
    }
  }
}
