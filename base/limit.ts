import pLimit from 'p-limit';

/**
 * `limit(width)` returns a function that runs at most `width` pieces of work in parallel, and starts them in the order
 * of the calls. A failure of one doesn't affect the others. `limit(1)` is a mutex.
 */
export const limit = pLimit;

/** Runs at most one piece of work of a key at a time, in the order of the calls. A failure of one doesn't affect the others. */
export class KeyedMutex {
  /** The last call's work, by each key for which work runs or waits. */
  readonly #last = new Map<string, Promise<unknown>>();

  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const own = before.catch(() => undefined).then(work);
    this.#last.set(key, own);
    try {
      return await own;
    } finally {
      if (this.#last.get(key) === own) this.#last.delete(key);
    }
  }
}
