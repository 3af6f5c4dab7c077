import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { z } from 'zod';
import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';

/**
 * The pauses between attempts to reach an engine that is down. An attempt costs one call of a local socket, and the
 * containers of all sites may be down until the next pass.
 */
const RETRIES = { firstMs: 200, longestMs: 2_000 };

const event = z.object({ Actor: z.object({ Attributes: z.object({ name: z.string() }) }) });

/**
 * Yields the name of the container or network of each event. The stream ends with the engine and is opened again until
 * `signal` aborts. Each reconnection yields an empty name, because events may have been missed.
 */
export async function* dockerEvents(
  docker: Docker,
  filters: Readonly<Record<string, readonly string[]>>,
  signal: AbortSignal,
  clock: Pick<Clock, 'sleep'> = systemClock,
): AsyncGenerator<string> {
  let connected = false;
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      const stream = await docker.getEvents({ filters: JSON.stringify(filters), abortSignal: signal });
      if (connected) yield '';
      connected = true;
      failures = 1;
      for await (const line of createInterface({ input: new Readable().wrap(stream) })) {
        const read = event.safeParse(parseJson(line));
        if (read.success) yield read.data.Actor.Attributes.name;
      }
    } catch {
      // The next observation reports an engine that is down. Here the loop only waits for it.
    }
    await clock.sleep(backoffMs(failures, Math.random, RETRIES), { signal });
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
