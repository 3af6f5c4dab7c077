// The limits of the stores. esbuild inlines the constants of a file without imports, which keeps the worker small.

/** How long a missing document counts as missing without another read. */
export const ABSENT_TTL_MS = 1000;
/** How long the last good copy counts as fresh after the store has failed. */
export const RETRY_AFTER_MS = 1000;
/**
 * How long after its arrival a request may still wait for its writes, and for newer versions of documents of which it
 * has a copy. If reading a document without a copy has already taken longer, the request waits for neither.
 */
export const STALE_TIMEOUT_MS = 25;
/** How long a request waits for a document that it has no copy of. */
export const COLD_TIMEOUT_MS = 5000;
/** How long the data centre's cache keeps the last good copy. */
export const LAST_GOOD_SECONDS = 7 * 86_400;
/** Documents kept in memory per store, each a few kilobytes at most. */
export const MAX_ENTRIES = 20_000;
/** Missing keys kept in memory. Anyone can request unknown keys, so this limit is low. */
export const MAX_ABSENCES = 1000;

/** 400 days, the longest life of a cookie: the store drops a profile at the latest when browsers have dropped its id. */
export const PROFILE_TTL_SECONDS = 34_560_000;
/** The shortest lifetime of a key that KV accepts. */
export const MIN_TTL_SECONDS = 60;
/** How long a response waits for the store. The page works without it. */
export const PROFILE_READ_TIMEOUT_MS = 1000;
