import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type Docker from 'dockerode';
import { z } from 'zod';
import { MARK_LABEL } from './docker-spec.ts';

/** Milliseconds between attempts to reach an engine that is down. */
const RECONNECT_MS = 5_000;

const event = z.object({ Actor: z.object({ Attributes: z.object({ name: z.string() }) }) });

/**
 * Names of marked containers that died, vanished or became unhealthy. The stream ends with the engine and is opened
 * again until `signal` aborts. Each reconnection yields an empty name, because events may have been missed.
 */
export async function* dockerLosses(docker: Docker, signal: AbortSignal): AsyncGenerator<string> {
  const filters = {
    type: ['container'],
    label: [MARK_LABEL],
    // `health_status` comes from the image's own health check.
    event: ['die', 'oom', 'destroy', 'pause', 'rename', 'health_status: unhealthy'],
  };
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
