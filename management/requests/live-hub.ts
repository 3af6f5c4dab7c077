import { setInterval } from 'node:timers/promises';
import { demandContainerOrOperator } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import { type Follower, LiveSubscription } from './live-subscription.ts';
import type { RecentRequests } from './recent.ts';
import type { KeyedRow, RequestRow } from './rows/record.ts';

/** How many callers are checked per interval. If there are more, it takes several intervals until each was checked. */
const CHECKED = 100;

type Parts = Pick<Context, 'authenticate' | 'db' | 'settings' | 'clock' | 'log'>;

/** Hands the requests that the edge reports to the open streams of this process. */
export class LiveRequests {
  readonly #parts: Parts;
  readonly #recent: RecentRequests;
  readonly #streams = new Map<string, Set<LiveSubscription>>();

  constructor(parts: Parts, recent: RecentRequests) {
    this.#parts = parts;
    this.#recent = recent;
  }

  /**
   * Opens a stream, which ends with the signal at the latest. With `last`, the id of a row, it begins after that row, and
   * reports a gap if that row is not in memory any more.
   */
  subscribe(follower: Follower, last: string | undefined, signal: AbortSignal): LiveSubscription {
    const { container } = follower;
    const own = this.#streams.get(container) ?? new Set();
    this.#streams.set(container, own);
    const subscription = new LiveSubscription(follower, () => {
      own.delete(subscription);
      if (own.size === 0 && this.#streams.get(container) === own) this.#streams.delete(container);
    });
    own.add(subscription);
    const missed = last === undefined ? [] : this.#recent.after(container, last);
    if (missed === null) subscription.miss();
    else subscription.push(missed);
    signal.addEventListener('abort', () => subscription.end(), { once: true });
    if (signal.aborted) subscription.end();
    return subscription;
  }

  push(rows: readonly KeyedRow[]): void {
    for (const [container, own] of Map.groupBy(rows, ({ row }) => row.container ?? '')) {
      for (const stream of this.#streams.get(container) ?? []) stream.push(own);
    }
  }

  /** Until the signal: ends the streams of callers who may no longer read the container, and keeps the others alive. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, settings, log } = this.#parts;
    let keys: string[] = [];
    try {
      for await (const _ of setInterval(settings.followMs, null, { signal, ref: false })) {
        this.#recent.expire(clock.date().getTime());
        const streams = this.#all();
        for (const stream of streams) stream.beat(clock.now());
        const callers = Map.groupBy(streams, keyOf);
        if (keys.length === 0) keys = [...callers.keys()];
        for (const key of keys.splice(0, CHECKED)) await this.#check(callers.get(key) ?? []);
      }
    } catch (err) {
      if (!signal.aborted)
        log.fatal({ err }, 'the check of who may read live streams has stopped; restart the process');
    }
  }

  /** Takes all streams of one token to one container; ends them if access is refused or the check itself fails. */
  async #check(streams: readonly LiveSubscription[]): Promise<void> {
    const [first] = streams;
    if (first === undefined) return;
    const { log } = this.#parts;
    try {
      const { authorization, container } = first.of;
      const caller = await this.#parts.authenticate(authorization);
      await demandContainerOrOperator(this.#parts, container, caller, 'read');
    } catch (err) {
      if (!(err instanceof ManagementProblem)) log.error({ err }, 'the access of streams can’t be checked');
      for (const stream of streams) stream.end();
    }
  }

  #all(): LiveSubscription[] {
    return [...this.#streams.values()].flatMap((own) => [...own]);
  }
}

function keyOf({ of }: LiveSubscription): string {
  return `${of.container} ${of.authorization} ${of.caller.subject}`;
}

/** The text of a row, which is the same in all streams. */
const texts = new WeakMap<RequestRow, string>();

/** The stream as server-sent events. */
export async function* liveStream(subscription: LiveSubscription): AsyncGenerator<string> {
  try {
    yield 'retry: 2000\n\n';
    for (;;) {
      const delivery = await subscription.next();
      if (delivery === null) return;
      if (delivery === 'beat') {
        yield ': still here\n\n';
        continue;
      }
      const { missed, rows } = delivery;
      const gap = missed === 0 ? '' : `event: gap\ndata: ${JSON.stringify({ missed })}\n\n`;
      const text = gap + rows.map(({ row }) => written(row)).join('');
      if (text !== '') yield text;
    }
  } finally {
    subscription.end();
  }
}

/** A row as a stream sends it. */
export function written(row: RequestRow): string {
  const known = texts.get(row);
  if (known !== undefined) return known;
  const text = `id: ${row.id}\nevent: request\ndata: ${JSON.stringify(row)}\n\n`;
  texts.set(row, text);
  return text;
}
