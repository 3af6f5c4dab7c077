import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { areOfHours, type LocalDay } from './local-days.ts';
import { spanOf } from './store.ts';

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
  /** How many seconds each sum covers; the days are made of these sums. */
  readonly span: 3600 | 86400;
  readonly days: readonly LocalDay[];
  /** The clients whose containers are listed; `null`: all. */
  readonly clients: ReturnType<typeof sql> | null;
  readonly container: string | null;
  readonly probes: boolean;
  /** Day, client and container of the last row of the previous page. */
  readonly after: readonly string[] | null;
  readonly limit: number;
}

const countOf = (name: string) => sql`coalesce((sums.counts->>${name})::bigint, 0)`;

/**
 * The part of an hour's count that falls in the day. The first quarter's count is the hour's minus those of the others.
 */
function countOfQuarters(name: string) {
  const others = [1, 2, 3].map((quarter) => countOf(`${name}${quarter}`));
  const first = sql`${countOf(name)} - ${sql.join(others, sql` - `)}`;
  const parts = [first, ...others].map((count, quarter) => {
    const time = sql`sums.time + make_interval(mins => ${quarter * 15}::integer)`;
    return sql`case when ${time} >= days."from" and ${time} < days."to" then ${count} else 0 end`;
  });
  return sql.join(parts, sql` + `);
}

/** Sums by day, client and container, sorted in this order. Omits those without requests. */
export async function listUsage(db: Database, query: UsageQuery): Promise<UsageRow[]> {
  const { span, days, clients, container, probes, after, limit } = query;
  const { table } = spanOf(span);
  // An hour may belong to two days: then each day gets its own quarters of the hour.
  const isOfHours = areOfHours(days);
  const total = (name: string) => sql`coalesce(sum(${isOfHours ? countOf(name) : countOfQuarters(name)}), 0)`;
  const earliest = isOfHours ? sql`days."from"` : sql`days."from" - interval '45 minutes'`;
  const { rows } = await sql<UsageRow>`
    select days.day, containers.client_id as client, sums.container,
      ${total('n')}::text as requests, ${total('e')}::text as events, ${total('i')}::text as bytes_in,
      ${total('o')}::text as bytes_out
    from jsonb_to_recordset(${JSON.stringify(days)}::jsonb) as days(day text, "from" timestamptz, "to" timestamptz)
    join ${sql.table(table)} as sums on sums.time >= ${earliest} and sums.time < days."to"
    join containers on containers.id = sums.container
    where (not sums.probe or ${probes})
      and ${clients === null ? sql`true` : sql`containers.client_id in (${clients})`}
      and ${container === null ? sql`true` : sql`sums.container = ${container}::uuid`}
      and ${after === null ? sql`true` : sql`(days.day, containers.client_id, sums.container) > (${after[0]}, ${after[1]}::uuid, ${after[2]}::uuid)`}
    group by days.day, containers.client_id, sums.container having ${total('n')} > 0
    order by days.day, containers.client_id, sums.container limit ${limit}`.execute(db);
  return rows;
}
