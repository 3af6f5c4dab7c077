import { setInterval } from 'node:timers/promises';
import { limit } from '../../base/limit.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import { type EventView, eventsAt, listEvents, newestEvent } from '../records/events.repository.ts';
import { Audience } from './audience.ts';
import { type Subscriber, Subscription } from './subscription.ts';

/** The most events that one query reads. */
export const PAGE = 500;
/**
 * Pages that are read for all streams together after a break of the connection; if more was missed, each stream reads
 * alone.
 */
const MOST_MISSED_PAGES = 10;
/** How many queries for single streams and memberships run concurrently. */
const QUERIES = 4;
/** Tokens that are checked at one interval. With more tokens, each is checked after several intervals. */
const TOKENS_CHECKED = 200;

type Parts = Pick<Context, 'authenticate' | 'db' | 'settings' | 'clock' | 'log'>;

/** Other parts of the process that the hub calls at the database's notices. */
interface NoticeListeners {
  readonly onEvent?: () => void;
  readonly onOperation?: (id: string) => void;
}

/**
 * Hands new events to the open streams of this process. The database reports each event once, in the order of commits,
 * and the hub reads it once for all streams. While nothing happens, streams cost no query.
 */
export class EventHub {
  readonly #parts: Parts;
  readonly #listeners: NoticeListeners;
  readonly #audiences = new Map<string, Audience>();
  /** Ids of events that were reported since listening last began, but not read yet. */
  #unread: string[] = [];
  /** Id of the newest event that was reported or read; `null`: it isn't known yet. */
  #newest: string | null = null;
  readonly #mutex = limit(1);
  readonly #queries = limit(QUERIES);

  constructor(parts: Parts, listeners: NoticeListeners = {}) {
    this.#parts = parts;
    this.#listeners = listeners;
  }

  /** Opens a stream's subscription, which ends with the signal at the latest. */
  subscribe(subscriber: Subscriber, signal: AbortSignal): Subscription {
    const { caller, authorization } = subscriber;
    const audience = this.#audience(caller.subject, authorization);
    const subscription = new Subscription(subscriber, () => {
      audience.streams.delete(subscription);
      if (audience.streams.size === 0) this.#audiences.delete(keyOf(audience));
    });
    audience.streams.add(subscription);
    signal.addEventListener('abort', () => subscription.end(), { once: true });
    if (signal.aborted) subscription.end();
    return subscription;
  }

  /**
   * True if no event newer than this one has been reported or read: a stream that is open by now gets all later events
   * from the hub. False while the newest event isn't known.
   */
  isAt(position: string): boolean {
    return this.#newest !== null && BigInt(this.#newest) <= BigInt(position);
  }

  /** What a stream has missed since the event `after`, at most a page. */
  async missed({ of }: Subscription, after: string): Promise<EventView[]> {
    const filter = { ...of.filter, caller: of.caller };
    return await this.#queries(() =>
      listEvents(this.#parts.db, filter, { limit: PAGE, cursor: after, order: 'asc' }),
    );
  }

  /** Follows the database's notices until the signal. */
  async follow(signal: AbortSignal): Promise<void> {
    const { db, log } = this.#parts;
    const checking = this.#checkTokens(signal).catch((err: unknown) => {
      if (!signal.aborted) log.fatal({ err }, 'the tokens of event streams are no longer checked');
    });
    await db.listen(
      { onNotice: (notice) => this.#onNotice(notice), onListening: () => this.#catchUp() },
      signal,
    );
    await checking;
  }

  #of(subject: string): Audience[] {
    return [...this.#audiences.values()].filter((audience) => audience.subject === subject);
  }

  #streams(): Subscription[] {
    return [...this.#audiences.values()].flatMap(({ streams }) => [...streams]);
  }

  #audience(subject: string, authorization: string | undefined): Audience {
    const fresh = new Audience(this.#parts.db, { subject, authorization });
    const known = this.#audiences.get(keyOf(fresh));
    if (known !== undefined) return known;
    this.#audiences.set(keyOf(fresh), fresh);
    this.#refresh(fresh);
    return fresh;
  }

  /** Ends streams whose memberships can't be read: their clients connect again and are checked then. */
  #refresh(audience: Audience): void {
    this.#queries(() => audience.refresh()).catch((err: unknown) => {
      this.#parts.log.error({ err }, 'the access of streams can’t be checked');
      for (const stream of audience.streams) stream.end();
    });
  }

  #onNotice(notice: string): void {
    const [kind, id = '', ...rest] = notice.split(' ');
    // A subject may contain spaces.
    if (kind === 'member') for (const audience of this.#of(rest.join(' '))) this.#refresh(audience);
    if (kind === 'operation') this.#listeners.onOperation?.(id);
    if (kind !== 'event') return;
    const [position = '', client = ''] = rest;
    this.#newest = position;
    this.#listeners.onEvent?.();
    if (!this.#isWanted(id, client)) return;
    const unread = this.#unread;
    unread.push(position);
    if (unread.length === 1) this.#inBackground(() => this.#mutex(() => this.#read(unread)));
  }

  #isWanted(container: string, client: string): boolean {
    for (const audience of this.#audiences.values()) {
      // If a container was moved to a client that this audience can't read, the container's streams must end.
      const isVisible = audience.sees(client) !== false;
      for (const stream of audience.streams) {
        if (isVisible ? stream.wants(container, client) : stream.of.filter.container === container)
          return true;
      }
    }
    return false;
  }

  /** Reads these new events once, for all streams, with those that are added to them meanwhile. */
  async #read(unread: string[]): Promise<void> {
    while (unread.length > 0) {
      const ids = unread.slice(0, PAGE);
      let events: EventView[];
      try {
        events = await eventsAt(this.#parts.db, ids);
      } catch (error) {
        unread.length = 0;
        for (const stream of this.#streams()) stream.fallBehind();
        throw error;
      }
      unread.splice(0, ids.length);
      this.#handOut(events);
    }
  }

  #handOut(events: readonly EventView[]): void {
    for (const audience of this.#audiences.values()) {
      const visible = events.filter(({ clientId }) => audience.sees(clientId) === true);
      const hidden = events.filter(({ clientId }) => audience.sees(clientId) === false);
      const isUnknown = visible.length + hidden.length < events.length;
      for (const stream of audience.streams) {
        if (hidden.some(({ containerId }) => stream.of.filter.container === containerId)) stream.end();
        else if (isUnknown) stream.fallBehind();
        else stream.push(visible.filter((one) => stream.wants(one.containerId, one.clientId, one.kind)));
      }
    }
  }

  /** When listening has begun again: reads once what all streams have missed, and checks each membership. */
  #catchUp(): void {
    // Events reported from now on are read after the missed ones: a stream sends nothing older than its last event.
    this.#unread = [];
    for (const audience of this.#audiences.values()) this.#refresh(audience);
    // Kept now: an event that is reported before the missed ones are read moves `#newest` past them.
    const known = this.#newest;
    this.#inBackground(() => this.#mutex(() => this.#readMissed(known)));
  }

  /** `known`: the newest event before the break. */
  async #readMissed(known: string | null): Promise<void> {
    if (known !== null && (await this.#handOutAfter(known))) return;
    // Streams that open from now on read from the database until the newest event is known.
    this.#newest = null;
    for (const stream of this.#streams()) stream.fallBehind();
    const newest = await newestEvent(this.#parts.db);
    // If an event was reported meanwhile, it is newer than what was read.
    this.#newest ??= newest;
  }

  /** `false`: more was missed than is read at once, or the database doesn't answer. */
  async #handOutAfter(known: string): Promise<boolean> {
    let cursor = known;
    for (let page = 0; page < MOST_MISSED_PAGES; page += 1) {
      const read = listEvents(this.#parts.db, {}, { limit: PAGE, cursor, order: 'asc' });
      const events = await read.catch(() => null);
      if (events === null) return false;
      this.#handOut(events);
      if (events.length > 0) this.#listeners.onEvent?.();
      cursor = events.at(-1)?.id ?? cursor;
      // A stream that opens from now on must read these events itself: the hub has already handed them out.
      if (this.isAt(cursor)) this.#newest = cursor;
      if (events.length < PAGE) return true;
    }
    return false;
  }

  /** Ends streams whose token has expired, and keeps the others alive. Checks each token once for all its streams. */
  async #checkTokens(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#parts;
    let keys: string[] = [];
    for await (const _ of setInterval(settings.followMs, null, { signal, ref: false })) {
      for (const stream of this.#streams()) stream.beat(clock.now());
      if (keys.length === 0) keys = [...this.#audiences.keys()];
      for (const key of keys.splice(0, TOKENS_CHECKED)) {
        const audience = this.#audiences.get(key);
        if (audience !== undefined) await this.#checkToken(audience);
      }
    }
  }

  /** Ends the streams also if the check itself fails. */
  async #checkToken({ authorization, streams }: Audience): Promise<void> {
    try {
      await this.#parts.authenticate(authorization);
    } catch (err) {
      if (!(err instanceof ManagementProblem)) {
        this.#parts.log.error({ err }, 'the tokens of streams can’t be checked');
      }
      for (const stream of streams) stream.end();
    }
  }

  #inBackground(work: () => Promise<void>): void {
    work().catch((err: unknown) => this.#parts.log.error({ err }, 'events could not be handed to streams'));
  }
}

function keyOf({ subject, authorization }: Pick<Audience, 'subject' | 'authorization'>): string {
  return `${subject} ${authorization}`;
}
