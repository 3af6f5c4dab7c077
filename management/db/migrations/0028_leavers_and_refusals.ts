import { type Kysely, sql } from 'kysely';

/**
 * `changed_by`: who made or last changed the webhook, `null` for older ones. `sums`: what the refusals that a row of the
 * audit log sums have in common, `count`: their number.
 */
const STATEMENTS = [
  sql`alter table webhooks add column changed_by text`,
  sql`alter table audit_log add column count integer not null default 1, add column sums text unique`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
