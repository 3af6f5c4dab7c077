const DAY_MS = 86_400_000;
const TEN_MINUTES_MS = 600_000;
/**
 * How many milliseconds the time in a new object's key (the time of its first record) may be before or after now.
 * Before: the isolate and the queue wait, the write takes time, and clocks differ. After: clocks differ.
 */
const BEHIND_MS = 300_000;
const AHEAD_MS = 60_000;

/** The day (UTC) of a time, `2026-11-23`. */
export const dayAt = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** The days (UTC) from one time to another, the newest first. */
export function daysBetween(from: number, to: number): string[] {
  const days: string[] = [];
  const first = Math.floor(from / DAY_MS) * DAY_MS;
  for (let time = to; time >= first; time -= DAY_MS) days.push(dayAt(time));
  return days;
}

/** A time minus a number of days. */
export const daysBefore = (time: number, days: number): number => time - days * DAY_MS;

/** The prefixes of the keys that new objects have now. One prefix covers ten minutes. */
export function recentPrefixes(now: number): string[] {
  const prefixes: string[] = [];
  for (let time = now - BEHIND_MS; ; time += TEN_MINUTES_MS) {
    const text = new Date(Math.min(time, now + AHEAD_MS)).toISOString();
    const prefix = `raw/dt=${text.slice(0, 10)}/${text.slice(0, 15).replace(':', '')}`;
    if (!prefixes.includes(prefix)) prefixes.push(prefix);
    if (time > now + AHEAD_MS) return prefixes;
  }
}
