import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // Changes that want the name and whose commit may still come; while there are any, nobody gives the claim up.
  sql`alter table domain_claims add column changes uuid[] not null default '{}'`,
  sql`alter table domain_claims add column changed_at timestamptz`,
  sql`create index domain_claims_in_flight on domain_claims (changed_at) where changes <> '{}'`,
  // Looked for every few seconds.
  sql`create index containers_by_reason on containers (status_reason) where status_reason is not null`,
  // Records are written by the transaction that takes down the provisioner's word: they aren't a step of their own.
  sql`update operations set step = 'provision' where step = 'record'`,
  sql`alter table operations drop constraint operations_step_check`,
  sql`alter table operations add check (step in ('commit', 'provision', 'follow', 'withdraw', 'tombstone', 'clean'))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
