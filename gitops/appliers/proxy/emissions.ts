import { type EventEmitter, on } from 'node:events';

/** One item each time that `name` is emitted, until the signal ends it. */
export async function* wakes(emitter: EventEmitter, name: string, signal: AbortSignal): AsyncGenerator<void> {
  try {
    for await (const _ of on(emitter, name, { signal })) yield;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
