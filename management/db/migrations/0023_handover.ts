import { type Kysely, sql } from 'kysely';

/**
 * Links to the DNS records that a client has to set, for readers without a login (the table has a link's SHA-256 only),
 * and what uploaded exports of Tag Manager say of a container's set-up there.
 */
const STATEMENTS = [
  sql`create table handover_links (
    id uuid primary key,
    hash text not null unique,
    client_id uuid not null references clients,
    container_id uuid references containers,
    recipients jsonb not null,
    created_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    next_at timestamptz not null,
    complete_at timestamptz,
    mail text not null check (mail in ('none', 'waiting', 'due', 'sending', 'sent', 'failed', 'unclear')),
    mail_at timestamptz,
    mail_attempts integer not null default 0,
    mail_error text
  )`,
  sql`create index handover_links_by_client on handover_links (client_id, id)`,
  sql`create index handover_links_to_check on handover_links (next_at) where complete_at is null`,
  sql`create index handover_links_to_mail on handover_links (mail_at) where mail in ('due', 'sending')`,
  sql`create table checklist_verdicts (
    container_id uuid not null references containers,
    item text not null,
    state text not null check (state in ('done', 'open', 'unknown')),
    detail text not null,
    checked_at timestamptz not null,
    primary key (container_id, item)
  )`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
