import { randomUUID } from 'node:crypto';
import { rm, stat, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import type { DeletedRequests } from '../rows/filter.ts';
import { type KeyedRow, recordedRequest } from '../rows/record.ts';
import type { CachedFile, DayCache } from './day-cache.ts';
import type { DuckDb, Parameters } from './duckdb.ts';

/**
 * Fields that searches filter or sort by are columns. All others are JSON in `rest`, which is read only for the rows of
 * a page.
 */
const COLUMNS = {
  at: 'BIGINT',
  batch: 'VARCHAR',
  idx: 'INTEGER',
  time: 'VARCHAR',
  container: 'VARCHAR',
  route: 'VARCHAR',
  status: 'SMALLINT',
  cache: 'VARCHAR',
  error: 'VARCHAR',
  requestId: 'VARCHAR',
  method: 'VARCHAR',
  country: 'VARCHAR',
  probe: 'BOOLEAN',
  rest: 'VARCHAR',
} as const;

const NAMES = Object.keys(COLUMNS)
  .map((name) => `"${name}"`)
  .join(', ');
const STRUCT = Object.entries(COLUMNS)
  .map(([name, type]) => `"${name}": '${type}'`)
  .join(', ');

/** Small groups of rows that are sorted by container: a search of one container reads few of them. */
const FORMAT = '(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20480)';
const ORDER = 'ORDER BY "container" NULLS FIRST, "at"';

/** The text of a row, from which `writeRows` makes a file. */
export function searchLine({ at, batch, index, row }: KeyedRow): string {
  const {
    id: _,
    time,
    container,
    route,
    status,
    cache,
    error,
    requestId,
    method,
    country,
    probe,
    ...rest
  } = row;
  const columns = { at, batch, idx: index, time, container, route, status, cache, error, requestId };
  return `${JSON.stringify({ ...columns, method, country, probe, rest: JSON.stringify(rest) })}\n`;
}

/** Writes rows of one hour as a file of the day. The caller records it. */
export async function writeRows(
  duck: DuckDb,
  day: DayCache,
  { hour, lines }: { readonly hour: number; readonly lines: readonly string[] },
): Promise<CachedFile> {
  const name = `${randomUUID()}.parquet`;
  const source = `${day.pathOf({ name })}.ndjson`;
  await writeFile(source, lines.join(''));
  try {
    await duck.rows(
      `COPY (SELECT ${NAMES} FROM read_json($source, columns = {${STRUCT}}, format = 'newline_delimited') ${ORDER})
      TO $target ${FORMAT}`,
      { source, target: day.pathOf({ name }) },
    );
  } finally {
    await rm(source, { force: true });
  }
  return { name, hour, rows: lines.length, bytes: (await stat(day.pathOf({ name }))).size };
}

/** An SQL condition that is true for rows of deleted requests, and its parameters. */
export function isErased(deleted: DeletedRequests): { condition: string; parameters: Parameters } {
  return {
    condition: `coalesce("at" < map_from_entries(list_zip($erased, $until::BIGINT[]))["container"], false)`,
    parameters: { erased: [...deleted.keys()], until: [...deleted.values()].map(String) },
  };
}

interface MergedFiles {
  readonly hour: number;
  readonly files: readonly CachedFile[];
  /** Requests that must not get into the file. */
  readonly deleted?: DeletedRequests;
}

/** Writes the rows of several files of one hour as one file, each record once. The caller records it. */
export async function mergeFiles(
  duck: DuckDb,
  day: DayCache,
  { hour, files, deleted = new Map() }: MergedFiles,
): Promise<CachedFile> {
  const { condition, parameters } = isErased(deleted);
  const name = `${randomUUID()}.parquet`;
  const [row] = await duck.rows(
    `COPY (SELECT ${NAMES} FROM read_parquet($files) WHERE NOT ${condition}
      QUALIFY row_number() OVER (PARTITION BY "batch", "idx") = 1 ${ORDER})
    TO $target ${FORMAT}`,
    { ...parameters, files: files.map((file) => day.pathOf(file)), target: day.pathOf({ name }) },
  );
  const bytes = (await stat(day.pathOf({ name }))).size;
  return { name, hour, rows: Number(row?.Count ?? 0), bytes };
}

const stored = z.object({
  at: z.bigint(),
  batch: z.string(),
  idx: z.number(),
  rest: z.string().transform((text): unknown => JSON.parse(text)),
});

/** A row of a file. Throws if the row isn't as `writeRows` writes it. */
export function readRow(columns: Readonly<Record<string, unknown>>): KeyedRow {
  const { at, batch, idx: index, rest } = stored.parse(columns);
  const row = recordedRequest.parse({ ...columns, ...Object(rest) });
  return { at: Number(at), batch, index, row: { id: `${batch}.${index}`, ...row } };
}
