import { z } from 'zod';

const DAY_MS = 86_400_000;
/** The longest time that one search may cover. */
const MOST_DAYS = 31;
/** Other clocks, such as those of the edge, may be ahead of ours by this much. */
export const AHEAD_MS = 3_600_000;

const time = z.iso.datetime({ offset: true });

/** The times of what a search finds. */
export const searchTimes = {
  from: time.optional().meta({ description: 'from this time on; default: 24 hours before `to`' }),
  to: time.optional().meta({ description: 'before this time; default: now' }),
};

/** For `refine`: whether `from` and `to` are a range that may be searched. */
export function isSearchRange({ from, to }: { from?: string | undefined; to?: string | undefined }): boolean {
  if (from === undefined) return true;
  const span = (to === undefined ? Date.now() : Date.parse(to)) - Date.parse(from);
  return span <= MOST_DAYS * DAY_MS && span > (to === undefined ? -AHEAD_MS : 0);
}

export const SEARCH_RANGE = {
  path: ['from'],
  message: `must be before \`to\` (by default now), by at most ${MOST_DAYS} days`,
};
