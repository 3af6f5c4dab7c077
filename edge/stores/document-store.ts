import * as z from 'zod/mini';
import { setBounded } from '../base/bounded-map.ts';
import { parseJson, reasonOf } from '../base/json.ts';
import { singleFlight, within } from '../base/single-flight.ts';
import type { EventLog } from '../logs/event-log.ts';
import {
  ABSENT_TTL_MS,
  COLD_TIMEOUT_MS,
  LAST_GOOD_SECONDS,
  MAX_ABSENCES,
  MAX_ENTRIES,
  RETRY_AFTER_MS,
} from './limits.ts';

/** The result of a lookup. `unavailable`: the store gave no valid answer in time, and there is no earlier copy. */
export type Lookup<T> =
  | { readonly state: 'found'; readonly document: T }
  | { readonly state: 'missing' }
  | { readonly state: 'unavailable' };

/** What a lookup needs of the request that it serves. */
export interface RequestScope {
  /** Keeps work running after the response is sent. */
  waitUntil(work: Promise<unknown>): void;
  /** Prefix of cache keys. On the worker's own host, because others cost a DNS lookup (Cloudflare's Cache API docs). */
  readonly cacheBase: string;
  /** The request's deadline for all stores: after it, a copy in memory is used even if it is no longer fresh. */
  readonly staleUntil: number;
}

export interface DocumentStore<T> {
  /** Synchronous where memory holds a fresh copy: a timer and an await cost more than the rest of the lookup. */
  get(key: string, scope: RequestScope): Lookup<T> | Promise<Lookup<T>>;
}

/** The reading half of Workers KV. */
export interface ReadableKv {
  get(key: string): Promise<string | null>;
}

export interface StoreDependencies {
  readonly cache: Pick<Cache, 'match' | 'put' | 'delete'>;
  readonly now: () => number;
  /** How long a copy of a document is fresh, in milliseconds, in every layer. */
  readonly ttl: number;
  readonly log: EventLog;
}

interface Entry<T> {
  readonly document: T;
  readonly freshUntil: number;
}

/**
 * Reads one namespace of documents that gitops writes: from the isolate's memory, then the data centre's cache, then KV.
 * A document's age counts from its read out of KV, whichever layer it comes from; KV's own propagation (up to a minute)
 * adds to it. While KV fails or returns an invalid document, the last good copy is served. Simultaneous misses cause one
 * read. A read that exceeds its request's timeout still fills the caches, if it ends within `COLD_TIMEOUT_MS`.
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
  const address = (key: string, { cacheBase }: RequestScope) =>
    `${cacheBase}/${name}/${encodeURIComponent(key)}`;

  function remember(key: string, document: T, freshUntil: number): Lookup<T> {
    absences.delete(key);
    setBounded(memory, MAX_ENTRIES, key, { document, freshUntil });
    return { state: 'found', document };
  }

  function forget(key: string): Lookup<T> {
    memory.delete(key);
    setBounded(absences, MAX_ABSENCES, key, now() + ABSENT_TTL_MS);
    return { state: 'missing' };
  }

  async function readCache(url: string): Promise<{ fetchedAt: number; document: T } | null> {
    try {
      const response = await cache.match(url);
      const parsed = cachedShape.safeParse(await response?.json());
      return parsed.success ? parsed.data : null;
    } catch {
      // KV has the document, too.
      return null;
    }
  }

  /** `null`: there is no such document. `undefined`: the store failed, or the document is invalid or of an unknown version. */
  async function readKv(key: string): Promise<T | null | undefined> {
    let text: string | null | undefined;
    try {
      text = await within(kv.get(key), COLD_TIMEOUT_MS);
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

  async function refresh(key: string, scope: RequestScope): Promise<Lookup<T>> {
    const url = address(key, scope);
    const cached = await readCache(url);
    if (cached !== null && isFresh(cached.fetchedAt)) {
      return remember(key, cached.document, cached.fetchedAt + ttl);
    }
    const document = await readKv(key);
    if (document === undefined) {
      const lastGood = memory.get(key)?.document ?? cached?.document;
      if (lastGood !== undefined) return remember(key, lastGood, now() + RETRY_AFTER_MS);
      // A known absence outlasts a failure of KV, as a document does: a host without a site stays `missing`.
      return absences.has(key) ? forget(key) : { state: 'unavailable' };
    }
    if (document === null) {
      scope.waitUntil(cache.delete(url).catch(() => false));
      return forget(key);
    }
    const fetchedAt = now();
    const copy = Response.json(
      { fetchedAt, document },
      { headers: { 'cache-control': `public, max-age=${LAST_GOOD_SECONDS}` } },
    );
    scope.waitUntil(cache.put(url, copy).catch(() => undefined));
    return remember(key, document, fetchedAt + ttl);
  }

  // A copy from the future is stale: otherwise it would stay fresh for ever after the clock was set back.
  const isFresh = (fetchedAt: number) => fetchedAt <= now() && now() - fetchedAt < ttl;

  return {
    get(key, scope) {
      const entry = memory.get(key);
      const inMemory: Lookup<T> =
        entry === undefined ? { state: 'unavailable' } : { state: 'found', document: entry.document };
      if (entry !== undefined && now() < entry.freshUntil) return inMemory;
      if (now() < (absences.get(key) ?? 0)) return { state: 'missing' };
      const refreshed = flight(key, scope.waitUntil, () => refresh(key, scope));
      return within(
        refreshed,
        entry === undefined ? COLD_TIMEOUT_MS : Math.max(0, scope.staleUntil - now()),
      ).then((lookup) => lookup ?? inMemory);
    },
  };
}
