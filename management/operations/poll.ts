/** Milliseconds: an operation is polled at least this often, however old it is. */
const LONGEST_MS = 10_000;

/** Milliseconds between two polls of an operation: a tenth of its age, within `shortestMs` and 10 seconds. */
function pollIntervalMs(ageMs: number, shortestMs: number): number {
  return Math.min(LONGEST_MS, Math.max(shortestMs, ageMs / 10));
}

/** Whether an operation is due for a poll. `sinceMs` is the time since its last poll; `null`: it had none. */
export function isPollDue(sinceMs: number | null, ageMs: number, shortestMs: number): boolean {
  // A timer may fire a little early.
  return sinceMs === null || sinceMs >= pollIntervalMs(ageMs, shortestMs) * 0.9;
}
