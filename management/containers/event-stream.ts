import { setTimeout as pause } from 'node:timers/promises';
import { demandRole } from '../access/roles.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { ContainerRow } from '../records/containers.repository.ts';
import { eventsAfter } from '../records/events.repository.ts';

/** Proxies close a connection that is silent for a minute. */
const HEARTBEAT_MS = 15_000;
const PAGE = 500;

/** The client of a stream, by the headers of its request. */
interface Listener {
  readonly authorization: string | undefined;
  /** Id of the last event that it has received. */
  readonly last: string;
}

/**
 * A container's events as server-sent events: first those after `last`, then each new one. Ends at the signal, or when
 * the listener's token or membership no longer allows reading. Events are polled from the database, so it doesn't
 * matter which process wrote them. An event's id is the `Last-Event-ID` to continue after.
 */
export async function* eventStream(
  context: Pick<Context, 'authenticate' | 'db' | 'settings' | 'clock' | 'log'>,
  { id, client_id: client }: Pick<ContainerRow, 'id' | 'client_id'>,
  { authorization, last }: Listener,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { db, settings, clock, log } = context;
  let after = last;
  let sentAt = clock.now();
  yield `retry: 2000\n\n`;
  while (!signal.aborted && (await mayListen(context, client, authorization))) {
    const events = await eventsAfter(db, id, after, PAGE);
    for (const event of events) {
      after = event.id;
      yield `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
    }
    if (events.length > 0) sentAt = clock.now();
    else if (clock.now() - sentAt > HEARTBEAT_MS) {
      yield ': still here\n\n';
      sentAt = clock.now();
    }
    if (events.length < PAGE) {
      await pause(settings.followMs, undefined, { signal }).catch(() => log.debug('an event stream ended'));
    }
  }
}

/** Checked at each poll: a token can expire, and a membership can be removed, while a stream is open. */
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
    if (error instanceof ManagementProblem) return false;
    throw error;
  }
}
