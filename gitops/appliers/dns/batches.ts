import { bisect } from '../../base/bisect.ts';
import { coalesce } from '../../base/coalesce.ts';
import { withSharedSignal } from '../../base/shared-signal.ts';
import type { RecordChange } from './applier.ts';

/** How long the first change of a batch waits for company. */
const WINDOW_MS = 20;

interface BatchOptions {
  /** Sends several changes as one transaction. */
  send(changes: readonly RecordChange[], signal: AbortSignal): Promise<void>;
  /** What a change takes of the `room` that one transaction has. */
  cost(change: RecordChange): number;
  readonly room: number;
  /** Whether an error can be one record's fault, so that the batch is worth halving. */
  mayBeOneRecord(error: unknown): boolean;
}

/**
 * Changes made at the same time share batches, each one transaction; a refused batch is halved down to the record that
 * poisons it, so that one bad record harms its own site only.
 */
export function inBatches({ send, cost, room, mayBeOneRecord }: BatchOptions) {
  const flush = (items: readonly { change: RecordChange; signal: AbortSignal }[]) =>
    withSharedSignal(
      items.map(({ signal }) => signal),
      async (signal) => {
        const outcomes = [];
        for (const chunk of chunks(
          items.map(({ change }) => change),
          cost,
          room,
        )) {
          outcomes.push(...(await bisect(chunk, (changes) => send(changes, signal), mayBeOneRecord)));
        }
        return outcomes;
      },
    );
  const enqueue = coalesce(flush, { windowMs: WINDOW_MS });
  return (change: RecordChange, signal: AbortSignal): Promise<void> => enqueue({ change, signal });
}

function chunks(
  changes: readonly RecordChange[],
  cost: BatchOptions['cost'],
  room: number,
): RecordChange[][] {
  const result: RecordChange[][] = [];
  let left = 0;
  for (const change of changes) {
    const needed = cost(change);
    if (needed > left) {
      result.push([]);
      left = room;
    }
    result.at(-1)?.push(change);
    left -= needed;
  }
  return result;
}
