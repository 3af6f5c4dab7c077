import { Readable } from 'node:stream';
import type { EventView } from '../records/events.repository.ts';
import { type EventHub, PAGE } from './event-hub.ts';
import type { Subscription } from './subscription.ts';

/** What all streams send of an event, encoded once. */
interface Encoded {
  readonly position: bigint;
  readonly bytes: Buffer;
}
const encodings = new WeakMap<EventView, Encoded>();
const FIRST = Buffer.from('retry: 2000\n\n');
const BEAT = Buffer.from(': still here\n\n');

/**
 * Events as server-sent events: first those after `last`, then each new event. Ends with its subscription, also when
 * the token or the membership no longer allows reading. To continue after an event, a client sends its id as
 * `Last-Event-ID`. The stream reads from the subscription only when its consumer has taken what was sent before. It
 * creates no promise per event, so that ten thousand streams get an event within one second.
 */
export class EventStream extends Readable {
  readonly #hub: EventHub;
  readonly #subscription: Subscription;
  #after: bigint;
  #hasBegun = false;
  /** The consumer waits for more. */
  #isAsked = false;
  #isReading = false;

  constructor(hub: EventHub, subscription: Subscription, last: string) {
    super({ highWaterMark: 1 });
    this.#hub = hub;
    this.#subscription = subscription;
    this.#after = BigInt(last);
    // The subscription keeps events that arrive while the missed ones are read.
    if (!hub.isAt(last)) subscription.fallBehind();
    subscription.onArrival = () => this.#continue();
  }

  override _read(): void {
    this.#isAsked = true;
    if (this.#hasBegun) this.#continue();
    else {
      this.#hasBegun = true;
      this.#send(FIRST);
    }
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#subscription.end();
    done(error);
  }

  #continue(): void {
    while (this.#isAsked && !this.#isReading && !this.destroyed) {
      const delivery = this.#subscription.take();
      if (delivery === 'nothing') return;
      if (delivery === 'end') this.#send(null);
      else if (delivery === 'beat') this.#send(BEAT);
      else if (delivery === 'behind') this.#readMissed();
      else this.#sendEvents(delivery);
    }
  }

  #readMissed(): void {
    this.#isReading = true;
    this.#hub.missed(this.#subscription, String(this.#after)).then(
      (events) => {
        // Before the events are sent, so that the stream takes no newer ones first; it reads on only after them.
        if (events.length === PAGE) this.#subscription.fallBehind();
        this.#isReading = false;
        this.#sendEvents(events);
        this.#continue();
      },
      (error: Error) => this.destroy(error),
    );
  }

  #sendEvents(events: readonly EventView[]): void {
    const fresh: Buffer[] = [];
    // Each one is checked: after a lost connection, the hub can hand out an event twice before the stream takes it.
    for (const { position, bytes } of events.map(encoded)) {
      if (position <= this.#after) continue;
      this.#after = position;
      fresh.push(bytes);
    }
    const [first] = fresh;
    if (first !== undefined) this.#send(fresh.length === 1 ? first : Buffer.concat(fresh));
  }

  #send(bytes: Buffer | null): void {
    this.#isAsked = false;
    this.push(bytes);
  }
}

/** An event as a stream sends it. */
export function eventText(event: EventView): string {
  return `id: ${event.id}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}

function encoded(event: EventView): Encoded {
  const known = encodings.get(event);
  if (known !== undefined) return known;
  const bytes = Buffer.from(eventText(event));
  const encoding = { position: BigInt(event.id), bytes };
  encodings.set(event, encoding);
  return encoding;
}
