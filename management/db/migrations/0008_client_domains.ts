import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // Finds every claim under a registrable domain. In byte order, all names with one prefix are one range of the index.
  sql`create index domain_claims_reversed on domain_claims ((reverse(domain) collate "C"))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
