import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // Serves the search for all claims under a registrable domain. Names under one domain begin alike when reversed, so
  // in byte order they are one range of the index.
  sql`create index domain_claims_reversed on domain_claims ((reverse(domain) collate "C"))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
