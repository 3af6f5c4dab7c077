import { setTimeout as pause } from 'node:timers/promises';
import type { Context } from '../context.ts';
import { eventsAfter } from './events.repository.ts';

/** Proxies give a connection up that is silent for a minute. */
const HEARTBEAT_MS = 15_000;
const PAGE = 500;

/**
 * A container's events as server-sent events, the ones after `last` first and then each as it comes, until the signal.
 * Read from the database, so that it doesn't matter which process made them. An event's id is what `Last-Event-ID`
 * goes on after.
 */
export async function* eventStream(
  { db, settings, log }: Pick<Context, 'db' | 'settings' | 'log'>,
  container: string,
  last: string,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let after = last;
  let spoken = performance.now();
  yield `retry: 2000\n\n`;
  while (!signal.aborted) {
    const events = await eventsAfter(db, container, after, PAGE);
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
