import type { PluginContext, SharedBody } from '../contract.ts';
import {
  FRESH_FOR_SECONDS,
  KEEP_FOR_SECONDS,
  VENDOR_REFUSAL_MS,
  VENDOR_RETRY_AFTER_MS,
  VENDOR_STALE_TIMEOUT_MS,
  VENDOR_TIMEOUT_MS,
} from './limits.ts';
import { FRESH_UNTIL, fetchVendor, VendorFailure, vendorPlace } from './vendor-fetch.ts';

/** A header of copies in memory: why no newer copy could be fetched. */
export const FAILED_BECAUSE = 'x-tagyard-failed-because';

/** A header of stored copies: the version of the web container, as the script states it. */
const VERSION = 'x-tagyard-version';
/** Google's script states it at its beginning (docs/facts.md, Web container script). */
const STATED_VERSION = /"version":\s*"(\d{1,9})"/;
const BEGINNING_OCTETS = 1024;

/** The version of the web container whose script this is; null if the script doesn't state it. */
export const versionOf = ({ headers }: SharedBody): string | null => headers.get(VERSION);

/**
 * The key of a script's copies. All sites with that web tag use the same copies. The key holds all that the script
 * depends on: the vendor's path and query, made by the edge, and the visitor's place, stated by a trusted hop.
 */
export function copyKey({ visitor }: PluginContext, path: string): string {
  const [place = 'unknown'] = Object.values(vendorPlace(visitor));
  return `/vendor/${place}${path}`;
}

/** A fresh copy from memory or from the data centre's cache (which is then kept in memory), else a stale one. */
export async function findCopy(context: PluginContext, key: string): Promise<SharedBody | undefined> {
  const { memory } = context.acrossSites;
  const before = memory.get(key);
  if (before !== undefined && secondsLeft(context, before) > 0) return before;
  const cached = await context.cache.match(key);
  const copy = cached && { headers: cached.headers, body: await cached.arrayBuffer() };
  // Another request may have stored a newer copy, or a failure, in the meantime.
  const now = memory.get(key);
  if (now !== undefined && (copy === undefined || freshUntil(now) > freshUntil(copy))) {
    return isRefusal(now) && secondsLeft(context, now) <= 0 ? undefined : now;
  }
  if (copy !== undefined) memory.put(key, copy);
  return copy;
}

const freshUntil = ({ headers }: SharedBody) => Number(headers.get(FRESH_UNTIL));

/** True for the empty copy that is kept in memory if the vendor has no such script. */
const isRefusal = ({ headers, body }: SharedBody) => body.byteLength === 0 && headers.has(FAILED_BECAUSE);

/** The copy itself. Throws `VendorFailure` if it is a refusal of the vendor that was kept in memory. */
export function unlessRefused(copy: SharedBody): SharedBody {
  if (isRefusal(copy)) throw new VendorFailure(copy.headers.get(FAILED_BECAUSE) ?? '');
  return copy;
}

/** Fetches and stores a new copy, once for concurrent requests. Rejects with a `VendorFailure`, which is remembered. */
export function renew(context: PluginContext, path: string, key: string): Promise<SharedBody> {
  return context.acrossSites.shared(key, async () => {
    // Another request may have stored a copy since this one searched for it.
    const copy = await findCopy(context, key);
    if (copy !== undefined && secondsLeft(context, copy) > 0) return unlessRefused(copy);
    try {
      const timeout = copy === undefined ? VENDOR_TIMEOUT_MS : VENDOR_STALE_TIMEOUT_MS;
      const fetched = await fetchVendor(context, new URL(path, context.vendor), timeout);
      await store(context, key, fetched);
      return fetched;
    } catch (failure) {
      if (failure instanceof VendorFailure) remember(context, key, copy, failure);
      throw failure;
    }
  });
}

async function store(context: PluginContext, key: string, { headers, body }: SharedBody): Promise<void> {
  headers.set('etag', await context.etagOf(body));
  const beginning = new TextDecoder().decode(body.slice(0, BEGINNING_OCTETS));
  const [, version] = STATED_VERSION.exec(beginning) ?? [];
  if (version) headers.set(VERSION, version);
  const stored = new Response(body, { headers });
  stored.headers.set('cache-control', `public, max-age=${KEEP_FOR_SECONDS}`);
  await context.cache.put(key, stored);
  context.acrossSites.memory.put(key, { headers, body });
}

/**
 * Keeps a failure in memory, so that the old copy is served for a while without a request to the vendor. If there is no
 * old copy, only a refusal is kept.
 */
function remember(
  context: PluginContext,
  key: string,
  copy: SharedBody | undefined,
  failure: VendorFailure,
): void {
  if (copy === undefined && !failure.isRefusal) return;
  const headers = new Headers(copy?.headers);
  const pause = failure.isRefusal ? VENDOR_REFUSAL_MS : VENDOR_RETRY_AFTER_MS;
  headers.set(FRESH_UNTIL, String(context.now() + pause));
  headers.set(FAILED_BECAUSE, failure.message);
  context.acrossSites.memory.put(key, { headers, body: copy?.body ?? new ArrayBuffer(0) });
}

/**
 * How many seconds the copy is still fresh; negative: how many seconds it has been stale. If the clock was set back,
 * the result would be more than any copy's time: then it is 0.
 */
export function secondsLeft({ now }: PluginContext, copy: SharedBody): number {
  const left = Math.floor((freshUntil(copy) - now()) / 1000);
  return left > FRESH_FOR_SECONDS ? 0 : left;
}
