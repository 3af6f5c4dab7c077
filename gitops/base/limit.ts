import pLimit from 'p-limit';

/**
 * `limit(width)` returns a function that runs at most `width` pieces of work in parallel, and starts them in the order
 * of the calls. A failure of one doesn't affect the others. `limit(1)` is a mutex.
 */
export const limit = pLimit;
