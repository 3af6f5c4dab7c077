import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acquireLock, LockHeldError } from '../../../base/lock.ts';

/** At most this many clusters at once on a machine. */
const MOST = 32;

/** The locks that this process holds: a second attempt at one would drop it (`acquireLock`). */
const held = new Set<string>();

/** A number that no other cluster on this machine has until the stack is disposed of. `folder`: that of the locks. */
export function takeNumber(stack: AsyncDisposableStack, folder = tmpdir()): number {
  for (let number = 0; number < MOST; number += 1) {
    const path = join(folder, `tagyard-cluster-${number}.lock`);
    if (held.has(path)) continue;
    try {
      const lock = acquireLock(path);
      held.add(path);
      stack.defer(() => {
        lock.release();
        held.delete(path);
      });
      return number;
    } catch (error) {
      if (!(error instanceof LockHeldError)) throw error;
    }
  }
  throw new Error(`${MOST} clusters run on this machine already`);
}
