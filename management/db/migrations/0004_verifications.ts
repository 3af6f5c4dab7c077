import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  sql`create table verifications (
    seq bigint generated always as identity primary key,
    container_id uuid not null references containers,
    status text not null check (status in ('passed', 'failed', 'unreachable')),
    checked_at timestamptz not null,
    checks jsonb not null
  )`,
  sql`create index verifications_by_container on verifications (container_id, seq)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
