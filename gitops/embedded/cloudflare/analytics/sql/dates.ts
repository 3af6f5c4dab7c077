import { SqlError } from './tokens.ts';

const SECONDS: Readonly<Record<string, number>> = { SECOND: 1, MINUTE: 60, HOUR: 3_600, DAY: 86_400 };

/** A time plus a number of units, in seconds; months and years by the calendar. */
export function addInterval(seconds: number, count: number, unit: string): number {
  const length = SECONDS[unit];
  if (length !== undefined) return seconds + count * length;
  const date = new Date(seconds * 1_000);
  const day = date.getUTCDate();
  date.setUTCMonth(date.getUTCMonth() + count * (unit === 'YEAR' ? 12 : 1));
  // The 31st in a shorter month is its last day, as in ClickHouse.
  if (date.getUTCDate() !== day) date.setUTCDate(0);
  return date.getTime() / 1_000;
}

/** The start of the interval (UTC) that a time is in. Throws `SqlError` if its length is not positive. */
export function startOfInterval(seconds: number, count: number, unit: string): number {
  if (count < 1) throw new SqlError('an interval must be longer than 0');
  const length = SECONDS[unit];
  if (length !== undefined) return Math.floor(seconds / (count * length)) * count * length;
  const date = new Date(seconds * 1_000);
  const months = unit === 'YEAR' ? count * 12 : count;
  const since = date.getUTCFullYear() * 12 + date.getUTCMonth();
  const start = Math.floor(since / months) * months;
  return Date.UTC(Math.floor(start / 12), start % 12, 1) / 1_000;
}
