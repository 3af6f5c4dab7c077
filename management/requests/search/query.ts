import { EQUAL_MEMBERS, type RequestFilter, statusRange } from '../rows/filter.ts';
import type { KeyedRow, RowKey } from '../rows/record.ts';
import type { DuckDb, Parameters } from './duckdb.ts';
import { isErased, readRow } from './parquet.ts';

/** Rows of some files. */
export interface HoursQuery {
  readonly files: readonly string[];
  /** Milliseconds since the epoch; `to` itself is excluded. */
  readonly from: number;
  readonly to: number;
  /** Only rows after this place in the order of pages. */
  readonly after: RowKey | null;
  readonly limit: number;
}

/** The newest rows first. A record that is in several files is returned once for each. */
export async function queryHours(
  duck: DuckDb,
  filter: RequestFilter,
  query: HoursQuery,
): Promise<KeyedRow[]> {
  const { files, from, to, after, limit } = query;
  const conditions = ['"at" >= $from', '"at" < $to'];
  const parameters: Record<string, Parameters[string]> = { files, from, to, limit };
  const { containers, status, probes } = filter;
  const [only] = containers ?? [];
  if (only !== undefined && containers?.length === 1) {
    conditions.push('"container" = $container');
    parameters.container = only;
  } else if (containers !== null) {
    conditions.push('"container" IN (SELECT unnest($containers))');
    parameters.containers = containers;
  }
  if (!probes) conditions.push('NOT "probe"');
  const deleted = [...(filter.deleted ?? [])].filter(
    ([id]) => containers === null || containers.includes(id),
  );
  if (deleted.length > 0) {
    const erased = isErased(new Map(deleted));
    conditions.push(`NOT ${erased.condition}`);
    Object.assign(parameters, erased.parameters);
  }
  if (status !== undefined) {
    const [first, last] = statusRange(status);
    conditions.push('"status" BETWEEN $first AND $last');
    Object.assign(parameters, { first, last });
  }
  for (const name of EQUAL_MEMBERS) {
    const value = filter[name];
    if (value === undefined) continue;
    conditions.push(`"${name}" = $${name}`);
    parameters[name] = value;
  }
  if (after !== null) {
    conditions.push('("at", "batch", "idx") < ($at::BIGINT, $batch::VARCHAR, $index::INTEGER)');
    Object.assign(parameters, { at: after.at, batch: after.batch, index: after.index });
  }
  const rows = await duck.rows(
    `SELECT * FROM read_parquet($files) WHERE ${conditions.join(' AND ')}
    ORDER BY "at" DESC, "batch" DESC, "idx" DESC LIMIT $limit`,
    parameters,
  );
  return rows.map(readRow);
}
