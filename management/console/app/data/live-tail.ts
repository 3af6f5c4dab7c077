import { useEffect, useRef, useState } from 'preact/hooks';
import { problemFrom } from '../../../../base/client/index.ts';
import { sendInSession } from './api.ts';
import { followStream } from './stream.ts';

/** Rows that a page keeps: more than a person can read before newer ones replace them. */
export const MOST_TAIL_ROWS = 100;
/**
 * The shortest time between two changes of the page, milliseconds: what arrives within it is drawn by one short task.
 */
const PAUSE_MS = 33;
/** The rate is measured over this time, milliseconds. */
const RATE_MS = 5_000;
const RATE_STEP_MS = 1_000;

export interface Tail<Row> {
  /** The newest first. */
  readonly rows: readonly Row[];
  readonly isOpen: boolean;
  /** All that have arrived, also those that are no longer shown. */
  readonly received: number;
  /** Arrived while the tail was paused. */
  readonly waiting: number;
  /** Rows that the API says were not sent, because the reader was too slow or they were removed. */
  readonly missed: number;
  /** An unknown number of rows is missing: the page was hidden, or the API restarted. */
  readonly hasGap: boolean;
  readonly perSecond: number;
  /** Why the stream was refused; `null`: it was not. */
  readonly error: unknown;
  /**
   * Milliseconds from the time of the newest row, by the server's clock, to its arrival, by the browser's. `null`: none
   * has arrived.
   */
  readonly lateMs: number | null;
}

const EMPTY: Tail<never> = {
  rows: [],
  isOpen: false,
  received: 0,
  waiting: 0,
  missed: 0,
  hasGap: false,
  perSecond: 0,
  error: null,
  lateMs: null,
};

/** What is followed: the stream's address with its filter, and the name (`kind`) of the events that become rows. */
export interface TailSource {
  readonly address: string;
  readonly kind: string;
}

/**
 * Follows a stream of rows. What arrives is kept as text, and parsed at most once per frame. Of many rows, only the
 * newest are parsed, so that the page stays quick at any rate.
 */
export function useTail<Row extends { readonly time: string }>(
  { address, kind }: TailSource,
  isPaused: boolean,
): Tail<Row> {
  const [tail, setTail] = useState<Tail<Row>>(EMPTY);
  const paused = useRef(isPaused);
  const resume = useRef(() => {});
  paused.current = isPaused;
  useEffect(() => {
    setTail(EMPTY);
    let waiting: string[] = [];
    /** When the newest row arrived. */
    let newestAt = 0;
    let now: Tail<Row> = EMPTY;
    let frame = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let drawnAt = 0;
    let hasOpened = false;
    let arrivals: { readonly at: number; readonly count: number }[] = [];
    const show = (changes: Partial<Tail<Row>>) => {
      now = { ...now, ...changes };
      setTail(now);
    };
    const draw = () => {
      frame = 0;
      drawnAt = performance.now();
      if (paused.current) {
        show({ waiting: now.waiting });
        return;
      }
      const newestTexts = waiting.slice(-MOST_TAIL_ROWS);
      const fresh = newestTexts.map((text) => JSON.parse(text) as Row).reverse(); // the API's rows
      waiting = [];
      const [newest] = fresh;
      show({
        rows: [...fresh, ...now.rows].slice(0, MOST_TAIL_ROWS),
        waiting: 0,
        ...(newest === undefined ? {} : { lateMs: Math.max(0, newestAt - Date.parse(newest.time)) }),
      });
    };
    const drawSoon = () => {
      if (frame !== 0 || timer !== undefined) return;
      timer = setTimeout(
        () => {
          timer = undefined;
          frame = requestAnimationFrame(draw);
        },
        Math.max(0, PAUSE_MS - (performance.now() - drawnAt)),
      );
    };
    resume.current = drawSoon;
    const arrived = (text: string) => {
      newestAt = Date.now();
      waiting.push(text);
      if (waiting.length > 2 * MOST_TAIL_ROWS) waiting = waiting.slice(-MOST_TAIL_ROWS);
      now = { ...now, received: now.received + 1, waiting: now.waiting + 1 };
      const at = Math.floor(newestAt / RATE_STEP_MS) * RATE_STEP_MS;
      const last = arrivals.at(-1);
      if (last?.at === at) arrivals[arrivals.length - 1] = { at, count: last.count + 1 };
      else arrivals.push({ at, count: 1 });
      drawSoon();
    };
    const gone = (text: string) => {
      const { missed } = JSON.parse(text) as { missed: number | null }; // the API's event
      show(missed === null ? { hasGap: true } : { missed: now.missed + missed });
    };
    /**
     * Requests a refused stream again, because the answer says why it was refused. If the session has ended, this also
     * makes the page ask for a login.
     */
    const asking = new AbortController();
    const askWhy = async () => {
      try {
        const { signal } = asking;
        const answer = await sendInSession(new Request(address, { signal }));
        if (!answer.ok) show({ error: await problemFrom(`GET ${address}`, answer) });
        else await answer.body?.cancel();
      } catch (error) {
        if (!asking.signal.aborted) show({ error });
      }
    };
    const rate = setInterval(() => {
      const since = Date.now() - RATE_MS;
      arrivals = arrivals.filter(({ at }) => at >= since);
      const perSecond = arrivals.reduce((sum, { count }) => sum + count, 0) / (RATE_MS / 1_000);
      if (perSecond !== now.perSecond) show({ perSecond });
    }, RATE_STEP_MS);
    const end = followStream(address, {
      kinds: [kind, 'gap'],
      onOpen: () => {
        // `hasGap` stays: after a short loss, the API says what was missed, but not after a stream's end.
        show({ isOpen: true, error: null });
        hasOpened = true;
      },
      onLost: (hasEnded) => {
        show({ isOpen: false, hasGap: now.hasGap || (hasOpened && hasEnded) });
        if (hasEnded && !document.hidden) void askWhy();
      },
      onEvent: ({ type, data }) => (type === 'gap' ? gone(data) : arrived(data)),
    });
    return () => {
      end();
      asking.abort();
      clearInterval(rate);
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }, [address, kind]);
  useEffect(() => {
    if (!isPaused) resume.current();
  }, [isPaused]);
  return tail;
}
