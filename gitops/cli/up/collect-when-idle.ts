import { setTimeout as wait } from 'node:timers/promises';

/** A process is idle that worked for less than this part of a window, milliseconds. */
const WINDOW_MS = 3_000;
const IDLE = 0.2;

/**
 * Frees once what only the start of this process needed, as soon as it is idle: garbage, and the compiled code of functions
 * that ran long ago, which V8 compiles again if they are called. V8 itself collects when a process allocates, and an idle
 * one hardly does. Does nothing without `--expose-gc`. That must be an option of the process: V8 refuses the cache of compiled
 * code if an option has changed since the start.
 */
export async function collectWhenIdle(): Promise<void> {
  const { gc } = globalThis;
  if (gc === undefined) return;
  let before: ReturnType<typeof performance.eventLoopUtilization>;
  do {
    before = performance.eventLoopUtilization();
    await wait(WINDOW_MS, undefined, { ref: false });
  } while (performance.eventLoopUtilization(before).utilization >= IDLE);
  await gc({ type: 'major', execution: 'async', flavor: 'last-resort' });
}
