import type { ObjectChange } from './contract.ts';

interface ChangeQueueOptions {
  readonly onEnd: () => void;
  /** Resolves when changes that belong together have arrived. */
  readonly gather?: (() => Promise<unknown>) | null;
}

/**
 * The changes that one reader hasn't read yet. Changes of one object become one, so that a slow reader costs at most one
 * entry for each object; the order is that of the first change of each.
 */
export class ChangeQueue implements AsyncIterable<ObjectChange> {
  readonly #waiting = new Map<string, ObjectChange>();
  readonly #signal: AbortSignal;
  readonly #onEnd: () => void;
  readonly #gather: (() => Promise<unknown>) | null;
  #grown = Promise.withResolvers<void>();

  /**
   * Ends without an error when `signal` aborts. After a first change, `gather` is awaited, so that more of them are
   * one.
   */
  constructor(signal: AbortSignal, { onEnd, gather = null }: ChangeQueueOptions) {
    this.#signal = signal;
    this.#onEnd = onEnd;
    this.#gather = gather;
    const end = () => {
      this.#grown.resolve();
      onEnd();
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  }

  push(change: ObjectChange): void {
    const { key } = change.object;
    const waiting = this.#waiting.get(key);
    this.#waiting.set(key, waiting === undefined ? change : merge(waiting, change));
    this.#grown.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ObjectChange> {
    try {
      while (!this.#signal.aborted) {
        for (const [key, change] of this.#waiting) {
          this.#waiting.delete(key);
          yield change;
          if (this.#signal.aborted) return;
        }
        await this.#grown.promise;
        await this.#gather?.();
        this.#grown = Promise.withResolvers();
      }
    } finally {
      this.#onEnd();
    }
  }
}

/**
 * Two changes of one name as one. A deletion stays, even if the reader hasn't seen the object: it may wait for that.
 */
function merge(first: ObjectChange, second: ObjectChange): ObjectChange {
  if (first.type === 'added' && second.type !== 'deleted') return { ...second, type: 'added' };
  if (first.type === 'deleted' && second.type === 'added') return { ...second, type: 'changed' };
  return second;
}
