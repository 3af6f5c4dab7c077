import { bisect } from '../../../base/bisect.ts';
import { coalesce } from '../../../base/coalesce.ts';
import { withSharedSignal } from '../../../base/shared-signal.ts';
import type { RecordChange } from './provider.ts';

/** How long the first change of a batch waits for others. */
const WINDOW_MS = 20;

type Send = (changes: readonly RecordChange[], signal: AbortSignal) => Promise<void>;

interface BatchOptions {
  /** Called once for all changes of one window. Returns a function that sends several of them as one transaction. */
  sender(): Send;
  /** How much of a transaction's `room` a change takes. */
  cost(change: RecordChange): number;
  readonly room: number;
  /** True if a single record may have caused the error: the batch is then split. */
  mayBeOneRecord(error: unknown): boolean;
}

/**
 * Batches concurrent changes; a batch larger than `room` is several transactions. A refused one is bisected down to
 * the bad record, so that it fails only its own site.
 */
export function inBatches({ sender, cost, room, mayBeOneRecord }: BatchOptions) {
  const flush = (items: readonly { change: RecordChange; signal: AbortSignal }[]) =>
    withSharedSignal(
      items.map(({ signal }) => signal),
      async (signal) => {
        const outcomes = [];
        const send = sender();
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
