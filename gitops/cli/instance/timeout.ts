import { numberOf } from './number.ts';

/** Milliseconds for an answer that needs no work. */
export const QUICK_MS = 10_000;
/** Milliseconds for an answer that reads or writes the sites repository, or observes every target. */
export const SLOW_MS = 120_000;

/**
 * Milliseconds that a call may take: `TAGYARD_TIMEOUT` (in seconds), else the default of the call. Throws `UsageError` if
 * the variable is invalid.
 */
export function timeoutMs(env: NodeJS.ProcessEnv, fallbackMs: number): number {
  const text = env.TAGYARD_TIMEOUT;
  if (text === undefined || text === '') return fallbackMs;
  const seconds = numberOf(text, {
    isPermitted: (value) => value > 0 && value <= 86_400,
    problem: `TAGYARD_TIMEOUT=${text}: set it to a number of seconds, at most 86400`,
  });
  return seconds * 1000;
}
