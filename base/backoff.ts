/** Ceilings of the first and of the longest pause, in milliseconds. */
export interface Bounds {
  readonly firstMs: number;
  readonly longestMs: number;
}

const SITES: Bounds = { firstMs: 1_000, longestMs: 5 * 60_000 };

/**
 * Milliseconds until the next attempt after `failures` in a row: 10 to 100 % of a ceiling that doubles, from 1 s to 5 min
 * by default. The jitter spreads the retries of many sites. Source: AWS Architecture Blog, "Exponential Backoff And
 * Jitter".
 */
export function backoffMs(
  failures: number,
  random: () => number,
  { firstMs, longestMs }: Bounds = SITES,
): number {
  const ceiling = Math.min(longestMs, firstMs * 2 ** Math.max(0, failures - 1));
  return Math.round(ceiling * (0.1 + 0.9 * random()));
}
