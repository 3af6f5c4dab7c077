import { type Kysely, sql } from 'kysely';

/**
 * Clients and organisations are kept in git, and service tokens and invitations only here. The role of a service token
 * is that of the member `token:<id>`. Only SHA-256 digests of tokens are stored.
 */
const STATEMENTS = [
  sql`alter table clients add column blob text`,
  sql`alter table organisations add column blob text`,
  sql`create index clients_by_name on clients (lower(name), id)`,
  sql`create table service_tokens (
    id uuid primary key,
    hash text not null unique,
    name text not null,
    client_id uuid references clients,
    organisation_id uuid references organisations,
    role text not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    check ((client_id is null) <> (organisation_id is null))
  )`,
  sql`create index service_tokens_by_client on service_tokens (client_id)`,
  sql`create index service_tokens_by_organisation on service_tokens (organisation_id)`,
  sql`create table invitations (
    id uuid primary key,
    hash text not null unique,
    client_id uuid references clients,
    organisation_id uuid references organisations,
    email text,
    role text not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    accepted_by text,
    accepted_at timestamptz,
    check ((client_id is null) <> (organisation_id is null))
  )`,
  sql`create index invitations_by_client on invitations (client_id)`,
  sql`create index invitations_by_organisation on invitations (organisation_id)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
