import { type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

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
}

interface Entry {
  readonly state: Signal<QueryState<unknown>>;
  load: () => Promise<unknown>;
  users: number;
  runs: number;
}

/** Data that are younger are not read again when a view opens, milliseconds. */
const FRESH_MS = 1_500;
/** Queries that are kept for a way back. */
const MOST_KEPT = 60;

const entries = new Map<string, Entry>();
const EMPTY: QueryState<unknown> = { data: undefined, error: null, isLoading: true, at: 0 };

function entryOf(key: string, load: () => Promise<unknown>): Entry {
  const known = entries.get(key);
  if (known !== undefined) {
    known.load = load;
    return known;
  }
  const made: Entry = { state: signal(EMPTY), load, users: 0, runs: 0 };
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
  try {
    const data = await entry.load();
    // An older answer must not replace a newer one.
    if (run === entry.runs) entry.state.value = { data, error: null, isLoading: false, at: Date.now() };
  } catch (error) {
    if (run === entry.runs) entry.state.value = { ...entry.state.peek(), error, isLoading: false };
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
  return { ...state, reload: () => read(entry) };
}

/** Reads what is shown now again, if its key contains one of the texts. */
export function refresh(...parts: readonly string[]): void {
  for (const [key, entry] of entries) {
    if (!parts.some((part) => key.includes(part))) continue;
    if (entry.users > 0) void read(entry);
    else entries.delete(key);
  }
}
