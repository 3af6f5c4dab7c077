/** The ceilings of the first pause and of the longest, milliseconds. */
export interface Bounds {
  readonly firstMs: number;
  readonly longestMs: number;
}

const SITES: Bounds = { firstMs: 1_000, longestMs: 5 * 60_000 };

/**
 * Milliseconds until the next attempt after `failures` in a row: full jitter under a doubling ceiling, 1 s to 5 min
 * unless told, so that many failing sites never come back in step. Source: AWS Architecture Blog, "Exponential Backoff
 * And Jitter".
 */
export function backoffMs(
  failures: number,
  random: () => number,
  { firstMs, longestMs }: Bounds = SITES,
): number {
  const ceiling = Math.min(longestMs, firstMs * 2 ** Math.max(0, failures - 1));
  return Math.round(ceiling * (0.1 + 0.9 * random()));
}
