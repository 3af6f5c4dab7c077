import type { Actor } from '../db/database.ts';
import type { EventFilter, EventView } from '../records/events.repository.ts';

/** Shorter than the minute of silence after which proxies close a connection. */
const HEARTBEAT_MS = 15_000;
/** The most events that wait for a slow client. Beyond that the stream drops them and reads from the database. */
const MOST_WAITING = 500;

/** What a stream reports, and to whom. */
export interface Subscriber {
  readonly caller: Actor;
  readonly authorization: string | undefined;
  readonly filter: Omit<EventFilter, 'caller'>;
  /**
   * The stream ends when the caller may no longer read this client; `null`: it reports what the caller may still read.
   */
  readonly client: string | null;
}

/** `behind`: the stream must read from the database. `beat`: it must show that it is open. `end`: it has ended. */
type Delivery = readonly EventView[] | 'behind' | 'beat' | 'end' | 'nothing';

/** The hub's side of one stream: what waits to be sent. */
export class Subscription {
  readonly of: Subscriber;
  /** Called when there may be something to take. */
  onArrival: () => void = () => undefined;
  readonly #onEnd: () => void;
  #waiting: EventView[] = [];
  #isBehind = false;
  #isBeating = false;
  #hasEnded = false;
  /** The time by `clock.now()` of the last heartbeat, or when `beat` last found something waiting. */
  #activeAt: number | null = null;

  constructor(of: Subscriber, onEnd: () => void) {
    this.of = of;
    this.#onEnd = onEnd;
  }

  /** Whether the stream reports an event of this container and client; `kind` may be unknown yet. */
  wants(container: string, client: string, kind?: EventView['kind']): boolean {
    const { filter } = this.of;
    if (filter.container !== undefined && filter.container !== container) return false;
    if (filter.client !== undefined && filter.client !== client) return false;
    return kind === undefined || filter.kinds === undefined || filter.kinds.includes(kind);
  }

  push(events: readonly EventView[]): void {
    if (events.length === 0 || this.#isBehind) return;
    this.#waiting.push(...events);
    if (this.#waiting.length > MOST_WAITING) this.fallBehind();
    this.onArrival();
  }

  /** Drops waiting events of clients that aren't among these. */
  keep(clients: ReadonlySet<string>): void {
    this.#waiting = this.#waiting.filter(({ clientId }) => clients.has(clientId));
  }

  fallBehind(): void {
    this.#waiting = [];
    this.#isBehind = true;
    this.onArrival();
  }

  /** Makes the stream send a heartbeat if it was silent for long. */
  beat(nowMs: number): void {
    const isActive = this.#waiting.length > 0 || this.#isBehind;
    if (this.#activeAt === null || isActive) this.#activeAt = nowMs;
    if (nowMs - this.#activeAt <= HEARTBEAT_MS) return;
    this.#activeAt = nowMs;
    this.#isBeating = true;
    this.onArrival();
  }

  /** Ends the stream. Repeated calls change nothing. */
  end(): void {
    this.#hasEnded = true;
    this.#onEnd();
    this.onArrival();
  }

  /** What to send next. */
  take(): Delivery {
    if (this.#hasEnded) return 'end';
    if (this.#isBehind) {
      this.#isBehind = false;
      return 'behind';
    }
    if (this.#waiting.length > 0) {
      const events = this.#waiting;
      this.#waiting = [];
      return events;
    }
    if (!this.#isBeating) return 'nothing';
    this.#isBeating = false;
    return 'beat';
  }
}
