import { type Kysely, sql } from 'kysely';

/** The installation's key, 244 random bits: values of plans, their checksums and repeatable secrets are derived from it. */
const STATEMENTS = [
  sql`create table installation_key (key text not null)`,
  sql`insert into installation_key select gen_random_uuid()::text || gen_random_uuid()::text`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
