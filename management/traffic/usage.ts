import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { LocalDay } from './local-days.ts';

export interface UsageRow {
  readonly day: string;
  readonly client: string;
  readonly container: string;
  readonly requests: string;
  readonly events: string;
  readonly bytes_in: string;
  readonly bytes_out: string;
}

interface UsageQuery {
  readonly table: string;
  readonly days: readonly LocalDay[];
  /** The clients whose containers are listed; `null`: all. */
  readonly clients: ReturnType<typeof sql> | null;
  readonly container: string | null;
  readonly probes: boolean;
  /** Day, client and container of the last row of the previous page. */
  readonly after: readonly string[] | null;
  readonly limit: number;
}

/** Sums by day, client and container, of those that had requests, in this order. */
export async function listUsage(db: Database, query: UsageQuery): Promise<UsageRow[]> {
  const { table, days, clients, container, probes, after, limit } = query;
  const total = (name: string) => sql`coalesce(sum((sums.counts->>${name})::bigint), 0)::text`;
  const { rows } = await sql<UsageRow>`
    select days.day, containers.client_id as client, sums.container,
      ${total('n')} as requests, ${total('e')} as events, ${total('i')} as bytes_in, ${total('o')} as bytes_out
    from jsonb_to_recordset(${JSON.stringify(days)}::jsonb) as days(day text, "from" timestamptz, "to" timestamptz)
    join ${sql.table(table)} as sums on sums.time >= days."from" and sums.time < days."to"
    join containers on containers.id = sums.container
    where (not sums.probe or ${probes})
      and ${clients === null ? sql`true` : sql`containers.client_id in (${clients})`}
      and ${container === null ? sql`true` : sql`sums.container = ${container}::uuid`}
      and ${after === null ? sql`true` : sql`(days.day, containers.client_id, sums.container) > (${after[0]}, ${after[1]}::uuid, ${after[2]}::uuid)`}
    group by days.day, containers.client_id, sums.container
    order by days.day, containers.client_id, sums.container limit ${limit}`.execute(db);
  return rows;
}
