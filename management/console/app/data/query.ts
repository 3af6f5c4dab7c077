import { type Signal, signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

interface QueryState<Data> {
  /** The last known data, also while they are read again and after a failure. */
  readonly data: Data | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** When the data were read, milliseconds since the epoch. */
  readonly at: number;
}

export interface Query<Data> extends QueryState<Data> {
  reload(): Promise<void>;
  /** Reads again unless a read is under way: for timers, so that slow answers don’t pile up. */
  poll(): void;
}

interface Entry {
  readonly state: Signal<QueryState<unknown>>;
  load: () => Promise<unknown>;
  users: number;
  /** Reads that were begun; each has its number. */
  runs: number;
  /** The number of the newest read that has ended. */
  ended: number;
}

/** Younger data are not read again when a view opens; milliseconds. */
const FRESH_MS = 1_500;
/** The most queries that are kept, so that a page shows its data at once when the person returns to it. */
const MOST_KEPT = 60;

const entries = new Map<string, Entry>();
const EMPTY: QueryState<unknown> = { data: undefined, error: null, isLoading: true, at: 0 };

function entryOf(key: string, load: () => Promise<unknown>): Entry {
  const known = entries.get(key);
  if (known !== undefined) {
    known.load = load;
    return known;
  }
  const made: Entry = { state: signal(EMPTY), load, users: 0, runs: 0, ended: 0 };
  entries.set(key, made);
  for (const [old, { users }] of entries) {
    if (entries.size <= MOST_KEPT) break;
    if (users === 0 && old !== key) entries.delete(old);
  }
  return made;
}

async function read(entry: Entry): Promise<void> {
  const run = ++entry.runs;
  entry.state.value = { ...entry.state.peek(), isLoading: true };
  const end = (result: Partial<QueryState<unknown>>) => {
    // An older answer must not replace a newer one.
    if (run < entry.ended) return;
    entry.ended = run;
    entry.state.value = { ...entry.state.peek(), ...result, isLoading: run < entry.runs };
  };
  try {
    const data = await entry.load();
    end({ data, error: null, at: Date.now() });
  } catch (error) {
    end({ error });
  }
}

/** Reads data, keeps them under the key, and shows them at once where the same key is used again. */
export function useQuery<Data>(key: string, load: () => Promise<Data>): Query<Data> {
  const entry = entryOf(key, load);
  useEffect(() => {
    entry.users += 1;
    if (Date.now() - entry.state.peek().at > FRESH_MS) void read(entry);
    return () => {
      entry.users -= 1;
    };
  }, [entry]);
  const state = entry.state.value as QueryState<Data>; // the key names one loader
  return {
    ...state,
    reload: () => read(entry),
    poll: () => {
      if (!entry.state.peek().isLoading) void read(entry);
    },
  };
}

/** Polls while the page is visible; `everyMs` is `null` where nothing new is expected. */
export function usePolling({ poll }: Query<unknown>, everyMs: number | null): void {
  const latest = useRef(poll);
  latest.current = poll;
  useEffect(() => {
    if (everyMs === null) return;
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}

/** For each key that contains one of the texts: reads its data again if they are shown, and forgets them otherwise. */
export function refresh(...parts: readonly string[]): void {
  for (const [key, entry] of entries) {
    if (!parts.some((part) => key.includes(part))) continue;
    if (entry.users > 0) void read(entry);
    else entries.delete(key);
  }
}

/** Reads the data of a key again if they are shown; resolves when they have been read. */
export async function readAgain(key: string): Promise<void> {
  const entry = entries.get(key);
  if (entry !== undefined && entry.users > 0) await read(entry);
}
