import type { Actor } from '../db/database.ts';
import { isAskedFor, type RequestFilter } from './rows/filter.ts';
import type { KeyedRow } from './rows/record.ts';

/** Shorter than the minute of silence after which proxies close a connection. */
const HEARTBEAT_MS = 15_000;
/** The most rows that wait for a reader; one ingest has fewer. Beyond that the oldest are dropped, with a `gap`. */
const MOST_WAITING = 6_000;

/** Who follows a container's requests. */
export interface Follower {
  readonly caller: Actor;
  readonly authorization: string | undefined;
  readonly container: string;
  readonly filter: RequestFilter;
}

/** What to send next. `missed`: rows that were dropped before these; `null`: an unknown number of them. */
interface LiveDelivery {
  readonly missed: number | null;
  readonly rows: readonly KeyedRow[];
}

/** One stream: what waits to be sent. */
export class LiveSubscription {
  readonly of: Follower;
  readonly #onEnd: () => void;
  #waiting: KeyedRow[] = [];
  #missed: number | null = 0;
  #hasEnded = false;
  #isBeating = false;
  #activeAt: number | null = null;
  #arrived = Promise.withResolvers<void>();

  constructor(of: Follower, onEnd: () => void) {
    this.of = of;
    this.#onEnd = onEnd;
  }

  push(rows: readonly KeyedRow[]): void {
    const asked = rows.filter(({ row }) => isAskedFor(row, this.of.filter));
    if (asked.length === 0 || this.#hasEnded) return;
    this.#waiting.push(...asked);
    const excess = this.#waiting.length - MOST_WAITING;
    if (excess > 0) {
      this.#waiting.splice(0, excess);
      if (this.#missed !== null) this.#missed += excess;
    }
    this.#arrived.resolve();
  }

  /** Rows were missed before the stream began, and their number is unknown. */
  miss(): void {
    this.#missed = null;
    this.#arrived.resolve();
  }

  /** Makes the stream send a heartbeat if it was silent for long. */
  beat(nowMs: number): void {
    if (this.#activeAt === null || this.#waiting.length > 0) this.#activeAt = nowMs;
    if (nowMs - this.#activeAt <= HEARTBEAT_MS) return;
    this.#activeAt = nowMs;
    this.#isBeating = true;
    this.#arrived.resolve();
  }

  /** Ends the stream. Repeated calls change nothing. */
  end(): void {
    this.#hasEnded = true;
    this.#waiting = [];
    this.#onEnd();
    this.#arrived.resolve();
  }

  /** Resolves to what to send next; `null`: the stream has ended. */
  async next(): Promise<LiveDelivery | 'beat' | null> {
    await this.#arrived.promise;
    this.#arrived = Promise.withResolvers();
    if (this.#hasEnded) {
      this.#arrived.resolve();
      return null;
    }
    if (this.#isBeating && this.#waiting.length === 0 && this.#missed === 0) {
      this.#isBeating = false;
      return 'beat';
    }
    const delivery = { missed: this.#missed, rows: this.#waiting };
    this.#missed = 0;
    this.#waiting = [];
    return delivery;
  }
}
