import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type Docker from 'dockerode';
import { z } from 'zod';

/** Milliseconds between attempts to reach an engine that is down. */
const RECONNECT_MS = 5_000;

const event = z.object({ Actor: z.object({ Attributes: z.object({ name: z.string() }) }) });

/**
 * Yields the name of the container or network of each event. The stream ends with the engine and is opened again until
 * `signal` aborts. Each reconnection yields an empty name, because events may have been missed.
 */
export async function* dockerEvents(
  docker: Docker,
  filters: Readonly<Record<string, readonly string[]>>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for (let connected = false; !signal.aborted; ) {
    try {
      const stream = await docker.getEvents({ filters: JSON.stringify(filters), abortSignal: signal });
      if (connected) yield '';
      connected = true;
      for await (const line of createInterface({ input: new Readable().wrap(stream) })) {
        const read = event.safeParse(parseJson(line));
        if (read.success) yield read.data.Actor.Attributes.name;
      }
    } catch {
      // The next observation reports an engine that is down. Here the loop only waits for it.
    }
    await wait(RECONNECT_MS, undefined, { signal }).catch(() => undefined);
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
