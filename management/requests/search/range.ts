import type { RequestFilter } from '../rows/filter.ts';
import type { KeyedRow, RowKey } from '../rows/record.ts';
import type { HoursQuery } from './query.ts';

const HOUR_MS = 3_600_000;

export interface PageQuery {
  /** Milliseconds since the epoch; `to` itself is excluded. */
  readonly from: number;
  readonly to: number;
  readonly after: RowKey | null;
  readonly limit: number;
}

export interface FoundRows {
  readonly rows: readonly KeyedRow[];
  /** The search took too long and read back to this time (milliseconds since the epoch); `null`: it is complete. */
  readonly reached: number | null;
  /** Days (UTC) that aren't wholly read. */
  readonly missing: string[];
}

/** How the rows of a range are read. */
export interface RangeReader {
  /** Paths of the files of the hour of this time. */
  files(at: number): Promise<readonly string[]>;
  query(filter: RequestFilter, query: HoursQuery): Promise<KeyedRow[]>;
}

interface RangeRows {
  readonly rows: readonly KeyedRow[];
  /** Hours whose files can't be read. */
  readonly damaged: readonly { readonly at: number; readonly cause: unknown }[];
}

/**
 * The newest rows of some hours, each record once. An hour whose files are damaged is left out and named in `damaged`.
 */
export async function readRange(
  reader: RangeReader,
  filter: RequestFilter,
  query: PageQuery,
): Promise<RangeRows> {
  const hours = hoursOf(query);
  try {
    const files = await Promise.all(hours.map(({ from }) => reader.files(from)));
    return { rows: await uniqueRows(reader, filter, { ...query, files: files.flat() }), damaged: [] };
  } catch {
    // One of the files is damaged, or was replaced meanwhile: reading hour by hour shows which.
  }
  const rows: KeyedRow[] = [];
  const damaged: { at: number; cause: unknown }[] = [];
  for (const hour of hours) {
    if (rows.length >= query.limit) break;
    try {
      const files = await reader.files(hour.from);
      const limit = query.limit - rows.length;
      rows.push(...(await uniqueRows(reader, filter, { ...hour, limit, files })));
    } catch (cause) {
      damaged.push({ at: hour.from, cause });
    }
  }
  return { rows, damaged };
}

/** The parts of a query by hour, the newest first. */
function hoursOf(query: PageQuery): PageQuery[] {
  const hours: PageQuery[] = [];
  for (let to = query.to; to > query.from; ) {
    const start = Math.floor((to - 1) / HOUR_MS) * HOUR_MS;
    const from = Math.max(query.from, start);
    hours.push({ ...query, from, to });
    to = from;
  }
  return hours;
}

/** The same record may be in several files, so a page of a query may have fewer records than rows. */
async function uniqueRows(
  reader: RangeReader,
  filter: RequestFilter,
  query: HoursQuery,
): Promise<KeyedRow[]> {
  const rows: KeyedRow[] = [];
  let { after } = query;
  while (rows.length < query.limit && query.files.length > 0) {
    const found = await reader.query(filter, { ...query, after });
    for (const row of found) if (row.row.id !== rows.at(-1)?.row.id) rows.push(row);
    after = found.at(-1) ?? after;
    if (found.length < query.limit) break;
  }
  return rows.slice(0, query.limit);
}
