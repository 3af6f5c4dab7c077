import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '../context/context.ts';
import { ProblemError } from '../http/errors.ts';
import { demandRole } from '../access/roles.ts';
import type { ContainerRow } from '../records/containers.repository.ts';
import { eventsAfter } from '../records/events.repository.ts';

/** Proxies give a connection up that is silent for a minute. */
const HEARTBEAT_MS = 15_000;
const PAGE = 500;

/** Who listens, by the headers of the request. */
interface Listener {
  readonly authorization: string | undefined;
  /** Id of the last event that it has. */
  readonly last: string;
}

/**
 * A container's events as server-sent events, the ones after `last` first and then each as it comes: until the signal,
 * or until the listener might not ask for them any more. Read from the database, so that it doesn't matter which process
 * made them. An event's id is what `Last-Event-ID` goes on after.
 */
export async function* eventStream(
  context: Pick<Context, 'authenticate' | 'db' | 'settings' | 'log'>,
  { id, client_id: client }: Pick<ContainerRow, 'id' | 'client_id'>,
  { authorization, last }: Listener,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { db, settings, log } = context;
  let after = last;
  let spoken = performance.now();
  yield `retry: 2000\n\n`;
  while (!signal.aborted && (await mayListen(context, client, authorization))) {
    const events = await eventsAfter(db, id, after, PAGE);
    for (const event of events) {
      after = event.id;
      yield `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
    }
    if (events.length > 0) spoken = performance.now();
    else if (performance.now() - spoken > HEARTBEAT_MS) {
      yield ': still here\n\n';
      spoken = performance.now();
    }
    if (events.length < PAGE) {
      await pause(settings.followMs, undefined, { signal }).catch(() => log.debug('an event stream ended'));
    }
  }
}

/** Asked at each look: a token expires, and a membership is taken away, while a stream is open. */
async function mayListen(
  { authenticate, db }: Pick<Context, 'authenticate' | 'db'>,
  client: string,
  authorization: string | undefined,
): Promise<boolean> {
  try {
    const { subject } = await authenticate(authorization);
    await demandRole(db, client, subject, 'read');
    return true;
  } catch (error) {
    if (error instanceof ProblemError) return false;
    throw error;
  }
}
