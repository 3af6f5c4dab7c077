// The limits of the vendor's scripts. esbuild inlines the constants of a file without imports, which keeps the worker small.

/** How long a copy is fresh, unless the vendor's `max-age` is shorter (it sends `private, max-age=900`). */
export const FRESH_FOR_SECONDS = 900;
/** How long the cache keeps a copy, stale or not, in case the vendor fails. */
export const KEEP_FOR_SECONDS = 7 * 86_400;
/** How long a page waits for the vendor: without a copy, and with a stale one. */
export const VENDOR_TIMEOUT_MS = 5000;
export const VENDOR_STALE_TIMEOUT_MS = 1000;
/** A web container has at most 200 KB compressed, and a few times that unpacked. */
export const VENDOR_MAX_OCTETS = 4 * 1_048_576;
/** How long a stale copy counts as fresh after the vendor has failed. */
export const VENDOR_RETRY_AFTER_MS = 10_000;
/**
 * Anyone can request any data layer name, and each name has a copy of its own. An isolate puts the copies of this many
 * names per web tag into the data centre's cache, and keeps others in its bounded memory only.
 */
export const MAX_CACHED_NAMES = 10;
