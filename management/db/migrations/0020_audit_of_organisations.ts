import { type Kysely, sql } from 'kysely';

/** A row's organisation, if the row is about it, its members, invitations, tokens or webhooks. */
const STATEMENTS = [
  sql`alter table audit_log add column organisation_id uuid`,
  sql`create index audit_log_by_organisation on audit_log (organisation_id, seq)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
