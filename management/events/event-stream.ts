import type { EventView } from '../records/events.repository.ts';
import { type EventHub, PAGE } from './event-hub.ts';
import type { Subscription } from './subscription.ts';

/** The text of an event, which is the same in all streams. */
const texts = new WeakMap<EventView, string>();

/**
 * Events as server-sent events: first those after `last`, then each new event. Ends with its subscription, also when the
 * token or the membership no longer allows reading. To continue after an event, a client sends its id as
 * `Last-Event-ID`.
 */
export async function* eventStream(
  hub: EventHub,
  subscription: Subscription,
  last: string,
): AsyncGenerator<string> {
  let after = last;
  try {
    yield `retry: 2000\n\n`;
    // Events that arrive during the read wait in the subscription.
    subscription.fallBehind();
    for (;;) {
      const delivery = await subscription.next();
      if (delivery === null) return;
      if (delivery === 'beat') {
        yield ': still here\n\n';
        continue;
      }
      const events = delivery === 'behind' ? await hub.missed(subscription, after) : delivery;
      if (delivery === 'behind' && events.length === PAGE) subscription.fallBehind();
      for (const event of events) {
        if (BigInt(event.id) <= BigInt(after)) continue;
        after = event.id;
        yield written(event);
      }
    }
  } finally {
    subscription.end();
  }
}

function written(event: EventView): string {
  const known = texts.get(event);
  if (known !== undefined) return known;
  const text = `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
  texts.set(event, text);
  return text;
}
