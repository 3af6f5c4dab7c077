import { type EventEmitter, on } from 'node:events';

/** One item for each time that the emitter emits `name`; ends when the signal aborts. */
export async function* emissions(
  emitter: EventEmitter,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<void> {
  try {
    for await (const _ of on(emitter, name, { signal })) yield;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
