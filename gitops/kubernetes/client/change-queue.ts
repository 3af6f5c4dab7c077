import { keyOfObject } from './address.ts';
import type { ObjectChange } from './contract.ts';

/**
 * The changes that one reader hasn't read yet. Changes of one object become one, so that a slow reader costs at most one
 * entry for each object; the order is that of the first change of each.
 */
export class ChangeQueue implements AsyncIterable<ObjectChange> {
  readonly #waiting = new Map<string, ObjectChange>();
  readonly #onEnd: (queue: ChangeQueue) => void;
  /** Kept here because `signal.aborted` is slow to read if the signal is a combination of others. */
  #isEnded = false;
  #grown = Promise.withResolvers<void>();

  /** The iteration ends without an error when the signal aborts. */
  constructor(signal: AbortSignal, onEnd: (queue: ChangeQueue) => void) {
    this.#onEnd = onEnd;
    const end = () => {
      this.#isEnded = true;
      this.#grown.resolve();
      onEnd(this);
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  }

  push(change: ObjectChange): void {
    const key = keyOfObject(change.object);
    const waiting = this.#waiting.get(key);
    this.#waiting.set(key, waiting === undefined ? change : merge(waiting, change));
    this.#grown.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ObjectChange> {
    try {
      while (!this.#isEnded) {
        for (const [key, change] of this.#waiting) {
          this.#waiting.delete(key);
          yield change;
          if (this.#isEnded) return;
        }
        await this.#grown.promise;
        this.#grown = Promise.withResolvers();
      }
    } finally {
      this.#onEnd(this);
    }
  }
}

/**
 * Two changes of one name as one. A final deletion stays, even of an object not yet read: the reader may wait for it.
 */
function merge(first: ObjectChange, second: ObjectChange): ObjectChange {
  if (first.type === 'added' && second.type !== 'deleted') return { ...second, type: 'added' };
  if (first.type === 'deleted' && second.type === 'added') return { ...second, type: 'changed' };
  return second;
}
