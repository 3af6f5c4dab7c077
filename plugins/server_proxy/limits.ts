// The limits of the vendor's scripts. esbuild inlines the constants of a file without imports, which keeps the worker small.

/** How long a copy is fresh, unless the vendor's `max-age` is shorter (it sends `private, max-age=900`). */
export const FRESH_FOR_SECONDS = 900;
/** How long a stale copy is served without waiting for the new one. An older copy is served only if the vendor fails. */
export const SERVED_STALE_FOR_SECONDS = 86_400;
/** How long the cache keeps a copy, stale or not, in case the vendor fails. */
export const KEEP_FOR_SECONDS = 7 * 86_400;
/** How long a page waits for the vendor: if there is no copy, and if there is an old one. */
export const VENDOR_TIMEOUT_MS = 5000;
export const VENDOR_STALE_TIMEOUT_MS = 1000;
/** A web container has at most 200 KB compressed, and a few times that unpacked. */
export const VENDOR_MAX_OCTETS = 4 * 1_048_576;
/**
 * How long no new request is sent to the vendor: after a failure, and after its answer that there is no such script.
 */
export const VENDOR_RETRY_AFTER_MS = 10_000;
export const VENDOR_REFUSAL_MS = 60_000;
/**
 * Anyone can request any data layer name, and each name is a request to the vendor and a copy. An isolate fetches
 * a site's scripts for at most this many names beside the site's own. The deployment's variable `DATA_LAYER_NAMES`
 * sets another number. A name makes room for another one an hour after it was last admitted (`admitDataLayer`).
 * Existing copies are served and renewed, whatever the name.
 */
export const DATA_LAYER_NAMES = 5;
export const NAME_REMEMBERED_MS = 3_600_000;
