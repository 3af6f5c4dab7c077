import { setInterval } from 'node:timers/promises';
import { limit } from '../../gitops/base/limit.ts';
import { demandRole } from '../access/roles.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import { type EventView, eventsAfter } from '../records/events.repository.ts';
import { type Subscriber, Subscription } from './subscription.ts';

/** The most events that one query reads. */
export const PAGE = 500;
/** Memberships that are checked concurrently after the connection for notices was lost. */
const CHECKS = 4;

type Parts = Pick<Context, 'authenticate' | 'db' | 'settings' | 'clock' | 'log'>;

/**
 * Hands new events to the open streams of this process. The database reports each event once, and the hub reads it once
 * for all streams. While nothing happens, streams cost no query.
 */
export class EventHub {
  readonly #parts: Parts;
  readonly #open = new Set<Subscription>();
  /** By container: the smallest reported `seq` that isn't read yet. */
  readonly #unread = new Map<string, bigint>();
  readonly #mutex = limit(1);

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Opens a stream's subscription. Throws `too_many_streams` if the subject has the allowed number already. */
  subscribe(subscriber: Subscriber, signal: AbortSignal): Subscription {
    const { limits } = this.#parts.settings;
    const count = [...this.#open].filter(({ of }) => of.subject === subscriber.subject).length;
    if (count >= limits.streamsPerSubject) {
      const detail = `${count} streams of this subject are open; close one of them first`;
      throw new ManagementProblem('too_many_streams', { detail });
    }
    const subscription = new Subscription(subscriber, () => this.#open.delete(subscription));
    this.#open.add(subscription);
    signal.addEventListener('abort', () => subscription.end(), { once: true });
    if (signal.aborted) subscription.end();
    return subscription;
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

  #onNotice(notice: string): void {
    const [kind, id = '', ...rest] = notice.split(' ');
    if (kind === 'member') {
      // A subject may contain spaces.
      const subject = rest.join(' ');
      const streams = [...this.#open].filter(({ of }) => of.client === id && of.subject === subject);
      this.#inBackground(() => this.#checkRole(streams));
    }
    if (kind !== 'event' || ![...this.#open].some(({ of }) => of.container === id)) return;
    const seq = BigInt(rest[0] ?? 0);
    const known = this.#unread.get(id);
    if (known === undefined || seq < known) this.#unread.set(id, seq);
    if (known === undefined) this.#inBackground(() => this.#mutex(() => this.#read(id)));
  }

  /** Reads a container's new events once, for all of its streams. */
  async #read(container: string): Promise<void> {
    const seq = this.#unread.get(container);
    this.#unread.delete(container);
    if (seq === undefined) return;
    const streams = () => [...this.#open].filter(({ of }) => of.container === container);
    let events: EventView[];
    try {
      events = await eventsAfter(this.#parts.db, container, String(seq - 1n), PAGE);
    } catch (error) {
      for (const stream of streams()) stream.fallBehind();
      throw error;
    }
    for (const stream of streams()) {
      if (events.length === PAGE) stream.fallBehind();
      else stream.push(events);
    }
  }

  /** When listening has begun again: each stream reads what it may have missed, and each membership is checked. */
  #catchUp(): void {
    for (const stream of this.#open) stream.fallBehind();
    const groups = Map.groupBy(this.#open, ({ of }) => `${of.client} ${of.subject}`);
    const atOnce = limit(CHECKS);
    for (const streams of groups.values()) this.#inBackground(() => atOnce(() => this.#checkRole(streams)));
  }

  /** Ends streams of one subject and client whose membership has ended. */
  async #checkRole(streams: readonly Subscription[]): Promise<void> {
    const [first] = streams;
    if (first === undefined) return;
    const { client, subject } = first.of;
    await this.#endRefused(streams, () => demandRole(this.#parts.db, client, subject, 'read'));
  }

  /** Ends streams whose token has expired, and keeps the others alive. Checks each token once for all its streams. */
  async #checkTokens(signal: AbortSignal): Promise<void> {
    const { authenticate, clock, settings } = this.#parts;
    for await (const _ of setInterval(settings.followMs, null, { signal, ref: false })) {
      for (const stream of this.#open) stream.beat(clock.now());
      for (const [authorization, streams] of Map.groupBy(this.#open, ({ of }) => of.authorization)) {
        await this.#endRefused(streams, () => authenticate(authorization));
      }
    }
  }

  /** Ends the streams also if the check itself fails: their clients connect again, and are checked then. */
  async #endRefused(streams: readonly Subscription[], check: () => Promise<unknown>): Promise<void> {
    try {
      await check();
    } catch (err) {
      if (!(err instanceof ManagementProblem))
        this.#parts.log.error({ err }, 'the access of streams can’t be checked');
      for (const stream of streams) stream.end();
    }
  }

  #inBackground(work: () => Promise<void>): void {
    work().catch((err: unknown) => this.#parts.log.error({ err }, 'events could not be handed to streams'));
  }
}
