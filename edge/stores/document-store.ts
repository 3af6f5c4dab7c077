import * as z from 'zod/mini';
import { parseJson, reasonOf } from '../base/json.ts';
import { singleFlight, within } from '../base/single-flight.ts';
import type { EventLog } from '../logs/request-record.ts';

/** What a look-up can end in. `unavailable`: the store failed (or took too long) and nothing good was ever seen. */
export type Lookup<T> =
  | { readonly state: 'found'; readonly document: T }
  | { readonly state: 'missing' }
  | { readonly state: 'unavailable' };

/** What a look-up needs of the request that it is for. */
export interface Trip {
  /** Work that may outlive the answer. */
  waitUntil(work: Promise<unknown>): void;
  /** Prefix of cache keys, on the worker's own host: others cost needless DNS look-ups (Cloudflare's Cache API docs). */
  readonly cacheBase: string;
}

export interface DocumentStore<T> {
  /** At once where memory holds a fresh copy: a timer and a turn of the event loop cost more than the rest of the look-up. */
  get(key: string, trip: Trip): Lookup<T> | Promise<Lookup<T>>;
}

/** The reading half of Workers KV. */
export interface ReadableKv {
  get(key: string): Promise<string | null>;
}

export interface StoreDependencies {
  readonly cache: Pick<Cache, 'match' | 'put' | 'delete'>;
  readonly now: () => number;
  /** How long a document is believed, in milliseconds, in whichever layer it lies. */
  readonly ttl: number;
  readonly log: EventLog;
}

/** How long the absence of a document is believed, and how long a failing store is left alone, in milliseconds. */
const ABSENT_FOR = 1000;
const RETRY_AFTER = 1000;
/** How long a request waits for a newer copy while it has an old one, and while it has none, in milliseconds. */
const STALE_PATIENCE = 50;
const COLD_PATIENCE = 5000;
/** How long the data centre's cache keeps a last good copy, in seconds. */
const LAST_GOOD_FOR = 7 * 86_400;
/** Documents held in memory, per store (some kilobytes each at most), and absences, which strangers can ask for. */
const MAX_ENTRIES = 20_000;
const MAX_ABSENCES = 1000;

interface Entry<T> {
  readonly document: T;
  readonly believedUntil: number;
}

/**
 * One namespace of documents that gitops writes: isolate memory, then the data centre's cache, then KV. A document's
 * age counts from its read out of KV, whichever layer it comes from; KV's own spread (up to a minute) comes on top.
 * While KV fails or answers rubbish, the last good document serves on. Simultaneous misses make one read, and a read
 * that came too late for its request still fills the caches.
 */
export function documentStore<T>(
  name: string,
  kv: ReadableKv,
  schema: z.ZodMiniType<T>,
  { cache, now, ttl, log }: StoreDependencies,
): DocumentStore<T> {
  const memory = new Map<string, Entry<T>>();
  const flight = singleFlight<Lookup<T>>(now);
  const cachedShape = z.object({ fetchedAt: z.number(), document: schema });
  const absences = new Map<string, number>();
  const address = (key: string, { cacheBase }: Trip) => `${cacheBase}/${name}/${encodeURIComponent(key)}`;

  function remember(key: string, document: T, believedUntil: number): Lookup<T> {
    if (memory.size >= MAX_ENTRIES && !memory.has(key)) {
      const [oldest] = memory.keys();
      if (oldest !== undefined) memory.delete(oldest);
    }
    absences.delete(key);
    memory.set(key, { document, believedUntil });
    return { state: 'found', document };
  }

  function forget(key: string): Lookup<T> {
    if (absences.size >= MAX_ABSENCES) absences.clear();
    memory.delete(key);
    absences.set(key, now() + ABSENT_FOR);
    return { state: 'missing' };
  }

  async function readCache(url: string): Promise<{ fetchedAt: number; document: T } | null> {
    try {
      const response = await cache.match(url);
      const parsed = cachedShape.safeParse(await response?.json());
      return parsed.success ? parsed.data : null;
    } catch {
      // The cache is a shortcut: KV still knows.
      return null;
    }
  }

  /** `undefined`: the store failed or holds something that isn't a document of a version that we know. */
  async function readKv(key: string): Promise<T | null | undefined> {
    let text: string | null | undefined;
    try {
      text = await within(kv.get(key), COLD_PATIENCE);
    } catch (error) {
      log('store_failed', { store: name, key, error: String(error) });
      return undefined;
    }
    if (text === null || text === undefined) return text;
    const parsed = schema.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    log('document_rejected', { store: name, key, error: reasonOf(parsed.error) });
    return undefined;
  }

  async function refresh(key: string, trip: Trip): Promise<Lookup<T>> {
    const url = address(key, trip);
    const cached = await readCache(url);
    if (cached !== null && isFresh(cached.fetchedAt)) {
      return remember(key, cached.document, cached.fetchedAt + ttl);
    }
    const document = await readKv(key);
    if (document === undefined) {
      const lastGood = memory.get(key)?.document ?? cached?.document;
      return lastGood === undefined ? { state: 'unavailable' } : remember(key, lastGood, now() + RETRY_AFTER);
    }
    if (document === null) {
      trip.waitUntil(cache.delete(url).catch(() => false));
      return forget(key);
    }
    const fetchedAt = now();
    const copy = Response.json(
      { fetchedAt, document },
      { headers: { 'cache-control': `public, max-age=${LAST_GOOD_FOR}` } },
    );
    trip.waitUntil(cache.put(url, copy).catch(() => undefined));
    return remember(key, document, fetchedAt + ttl);
  }

  // A clock that went back must not make a copy eternal.
  const isFresh = (fetchedAt: number) => fetchedAt <= now() && now() - fetchedAt < ttl;

  return {
    get(key, trip) {
      const entry = memory.get(key);
      if (entry !== undefined && now() < entry.believedUntil) {
        return { state: 'found', document: entry.document };
      }
      if (now() < (absences.get(key) ?? 0)) return { state: 'missing' };
      const refreshed = flight(key, trip.waitUntil, () => refresh(key, trip));
      return within(refreshed, entry === undefined ? COLD_PATIENCE : STALE_PATIENCE).then(
        (answer) =>
          answer ??
          (entry === undefined ? { state: 'unavailable' } : { state: 'found', document: entry.document }),
      );
    },
  };
}
