import { type Kysely, sql } from 'kysely';

/**
 * `notes_from`: the first day whose notes on counted records are all kept; records of earlier days could count twice.
 * `quarters_from`: the first hour with sums of its quarter-hours. An earlier release that still runs makes none.
 */
const STATEMENTS = [
  sql`alter table traffic_state add column notes_from date, add column quarters_from timestamptz`,
  sql`update traffic_state set quarters_from = date_trunc('hour', now()) + interval '2 hours'
    where exists (select from traffic_hours)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
