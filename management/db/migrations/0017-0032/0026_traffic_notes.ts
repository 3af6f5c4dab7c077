import { type Kysely, sql } from 'kysely';

/**
 * Since when it is noted which records were counted, so that a longer search counts none of them again. And since when the
 * hours have sums of their quarters: those of earlier releases, and the hours in which both may write, have none.
 */
const STATEMENTS = [
  sql`alter table traffic_state add column notes_from date, add column quarters_from timestamptz`,
  sql`update traffic_state set quarters_from = date_trunc('hour', now()) + interval '2 hours'
    where exists (select from traffic_hours)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
