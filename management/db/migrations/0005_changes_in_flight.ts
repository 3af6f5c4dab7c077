import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // Unfinished changes that want the name. While there are any, the claim is not released.
  sql`alter table domain_claims add column changes uuid[] not null default '{}'`,
  sql`alter table domain_claims add column changed_at timestamptz`,
  sql`create index domain_claims_in_flight on domain_claims (changed_at) where changes <> '{}'`,
  // Queried every few seconds.
  sql`create index containers_by_reason on containers (status_reason) where status_reason is not null`,
  // The transaction that records the provisioner's answer writes the site records too, so there is no step for them.
  sql`update operations set step = 'provision' where step = 'record'`,
  sql`alter table operations drop constraint operations_step_check`,
  sql`alter table operations add check (step in ('commit', 'provision', 'follow', 'withdraw', 'tombstone', 'clean'))`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
