const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / 4;
const DAY_MS = 24 * HOUR_MS;

/** A day in a time zone; where the clocks change, it is longer or shorter than 24 hours. */
export interface LocalDay {
  /** `2026-11-23`. */
  readonly day: string;
  readonly from: Date;
  readonly to: Date;
}

/** There is no such zone, or its days don't begin at quarters of an hour of UTC. */
export class TimeZoneError extends Error {
  override name = 'TimeZoneError';
}

/** True if these days can be made of whole hours of UTC. */
export const areOfHours = (days: readonly LocalDay[]): boolean =>
  days.every(({ from, to }) => from.getTime() % HOUR_MS === 0 && to.getTime() % HOUR_MS === 0);

/** The date of a time in a zone. Throws `TimeZoneError`. */
export const localDate = (time: number, timeZone: string): string => dates(timeZone)(time);

/** The days from one date to another, both included. Throws `TimeZoneError`. */
export function localDays(first: string, last: string, timeZone: string): LocalDay[] {
  const dateAt = dates(timeZone);
  const starts: { day: string; from: Date }[] = [];
  for (let noon = Date.parse(first) + DAY_MS / 2; noon <= Date.parse(last) + 1.5 * DAY_MS; noon += DAY_MS) {
    const day = new Date(noon).toISOString().slice(0, 10);
    starts.push({ day, from: startOf(day, dateAt) });
  }
  return starts.slice(0, -1).map((start, index) => ({ ...start, to: starts[index + 1]?.from ?? start.from }));
}

/** The first quarter of an hour of UTC whose local date isn't before that day. */
function startOf(day: string, dateAt: (time: number) => string): Date {
  // Zones are 14 hours ahead of UTC to 12 behind it.
  let time = Date.parse(day) - 15 * HOUR_MS;
  while (dateAt(time) < day) time += HOUR_MS;
  while (dateAt(time - QUARTER_MS) >= day) time -= QUARTER_MS;
  if (dateAt(time - 1) >= day) throw new TimeZoneError('its days don’t begin at quarters of an hour of UTC');
  return new Date(time);
}

function dates(timeZone: string): (time: number) => string {
  try {
    const format = new Intl.DateTimeFormat('en-CA', {
      timeZone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
    });
    return (time) => format.format(time);
  } catch (cause) {
    throw new TimeZoneError('there is no such time zone', { cause });
  }
}
