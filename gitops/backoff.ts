const FIRST_MS = 1_000;
const LONGEST_MS = 5 * 60_000;

/**
 * Milliseconds until the next attempt after `failures` in a row: full jitter under a doubling ceiling, 1 s to 5 min,
 * so that many failing sites never come back in step. Source: AWS Architecture Blog, "Exponential Backoff And Jitter".
 */
export function backoffMs(failures: number, random: () => number): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, failures - 1));
  return Math.round(ceiling * (0.1 + 0.9 * random()));
}
