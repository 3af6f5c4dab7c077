import { type Kysely, sql } from 'kysely';

/** Logins of people in browsers. Only a browser has the session's id; the table has its SHA-256. */
const STATEMENTS = [
  sql`create table sessions (
    id_hash text primary key,
    subject text not null,
    name text not null,
    email text not null,
    provider_session text,
    sealed text not null,
    created_at timestamptz not null,
    seen_at timestamptz not null,
    refreshed_at timestamptz not null
  )`,
  sql`create index sessions_by_subject on sessions (subject)`,
  sql`create index sessions_by_provider_session on sessions (provider_session)`,
  sql`create index sessions_by_age on sessions (created_at)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
