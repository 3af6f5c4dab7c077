import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type Docker from 'dockerode';
import { z } from 'zod';
import { MARK_LABEL } from './docker-spec.ts';

/** Between two tries to listen to an engine that isn't there. */
const RECONNECT_MS = 5_000;

const event = z.object({ Actor: z.object({ Attributes: z.object({ name: z.string() }) }) });

/**
 * Names of marked containers that died or vanished. The engine's stream ends when the engine does; it is opened again
 * until `signal` aborts, with an empty name, because nobody knows what was missed meanwhile.
 */
export async function* dockerLosses(docker: Docker, signal: AbortSignal): AsyncGenerator<string> {
  const filters = {
    type: ['container'],
    label: [MARK_LABEL],
    // The image has a health check of its own.
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
      // An engine that is gone is told by the next observation; here it is only waited for.
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
