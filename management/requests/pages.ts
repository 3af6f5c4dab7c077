import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { ManagementProblem } from '../http/errors.ts';
import { keyFrom } from '../view/page.ts';
import { AHEAD_MS } from '../view/search-times.ts';
import type { RecentRequests } from './recent.ts';
import type { RequestsQuery } from './requests.schema.ts';
import type { RequestFilter } from './rows/filter.ts';
import { compareRows, type RequestRow, type RowKey } from './rows/record.ts';
import type { RequestSearch } from './search/search.ts';

const DAY_MS = 86_400_000;
/** Seconds after which a search that can't be answered may be tried again. */
export const RETRY_SECONDS = 5;

/** The search stores the index as an INTEGER of 32 bits. */
const index = z.number().int().min(0).max(2_147_483_647);
const position = z.tuple([z.number().int(), z.string().max(300), index]);

interface Page {
  readonly requests: RequestRow[];
  readonly next: string | null;
  readonly missing: string[];
}

interface PageParts {
  /** `null`: this installation has no raw logs to search. */
  readonly search: RequestSearch | null;
  readonly recent: RecentRequests;
  readonly clock: Clock;
}

/** A page of the raw logs and of the newest rows, each record once. Throws `search_unavailable`. */
export async function requestPage(
  { search, recent, clock }: PageParts,
  filter: RequestFilter,
  query: Pick<RequestsQuery, 'from' | 'to' | 'limit' | 'cursor'>,
): Promise<Page> {
  const reason = search === null ? 'RAW_LOGS_… are not set' : await search.unavailable();
  if (search === null || reason !== null) {
    throw new ManagementProblem('search_unavailable', { detail: reason ?? '' });
  }
  const now = clock.date().getTime();
  const asked = query.to === undefined ? now + AHEAD_MS : Date.parse(query.to);
  const to = Math.min(asked, now + AHEAD_MS);
  const from = query.from === undefined ? Math.min(asked, now) - DAY_MS : Date.parse(query.from);
  const key = keyFrom(query.cursor, position);
  const after: RowKey | null = key && { at: key[0], batch: key[1], index: key[2] };
  const { limit } = query;
  const found = await search.page(filter, { from, to, after, limit: limit + 1 });
  const { reached, missing } = found;
  const newest = recent.find(filter).filter(({ at }) => at >= Math.max(from, reached ?? from) && at < to);
  const unread = after === null ? newest : newest.filter((row) => compareRows(row, after) > 0);
  const byId = new Map([...found.rows, ...unread].map((one) => [one.row.id, one]));
  const rows = [...byId.values()].sort(compareRows);
  const shown = rows.slice(0, limit);
  const last: RowKey | undefined =
    rows.length > limit ? shown.at(-1) : reached === null ? undefined : { at: reached, batch: '', index: 0 };
  return {
    requests: shown.map(({ row }) => row),
    next: last === undefined ? null : written(last),
    missing,
  };
}

function written({ at, batch, index }: RowKey): string {
  return Buffer.from(JSON.stringify([at, batch, index])).toString('base64url');
}
