import { type Kysely, sql } from 'kysely';

/** Unique and foreign keys enforce the rules: a port is leased once, a domain held once, one operation runs at a time. */
const STATEMENTS = [
  sql`create table clients (
    id uuid primary key,
    name text not null,
    created_at timestamptz not null default now()
  )`,
  sql`create table client_memberships (
    client_id uuid not null references clients,
    subject text not null,
    role text not null,
    primary key (client_id, subject)
  )`,
  sql`create index client_memberships_by_subject on client_memberships (subject)`,
  sql`create table containers (
    id uuid primary key,
    seq bigint generated always as identity unique,
    site_id text not null unique,
    client_id uuid not null references clients,
    status text not null check (status in ('provisioning', 'active', 'verified', 'verification_failed', 'failed',
      'deprovisioning', 'removed')),
    status_reason text,
    status_detail text,
    manifest jsonb not null,
    revision text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  sql`create index containers_by_client on containers (client_id, seq)`,
  sql`create table port_pool (
    host text not null,
    processing integer not null,
    preview integer not null,
    leased_by uuid references containers,
    primary key (host, processing),
    unique (host, preview),
    check (processing <> preview)
  )`,
  sql`create index port_pool_by_lease on port_pool (leased_by)`,
  sql`create table domain_claims (
    domain text primary key,
    container_id uuid not null references containers
  )`,
  sql`create index domain_claims_by_container on domain_claims (container_id)`,
  sql`create table sites (
    site_id text primary key references containers (site_id),
    container_id uuid not null unique references containers,
    host text not null,
    edge_hostname text not null unique,
    origin_hostname text not null unique,
    preview_hostname text not null unique,
    revision text,
    blob text
  )`,
  sql`create table site_domains (
    domain text not null references domain_claims on delete cascade,
    kind text not null check (kind in ('page', 'custom')),
    site_id text not null references sites,
    web_tag_id text,
    container_token text,
    active boolean not null,
    primary key (domain, kind),
    check (kind = 'custom' or (web_tag_id is not null and container_token is not null))
  )`,
  sql`create index site_domains_by_site on site_domains (site_id)`,
  sql`create table operations (
    id uuid primary key,
    seq bigint generated always as identity unique,
    container_id uuid not null references containers,
    kind text not null check (kind in ('provision', 'restore', 'deprovision')),
    status text not null default 'running' check (status in ('running', 'succeeded', 'failed', 'cancelled')),
    step text not null,
    manifest jsonb,
    provisioner_operation text,
    actor jsonb not null,
    request_id text not null,
    reason text,
    detail text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  sql`create index operations_by_container on operations (container_id, seq)`,
  sql`create unique index operations_one_running on operations (container_id) where status = 'running'`,
  sql`create table container_events (
    seq bigint generated always as identity primary key,
    container_id uuid not null references containers,
    at timestamptz not null default now(),
    kind text not null check (kind in ('status', 'changed', 'manifest_refused')),
    status text not null,
    reason text,
    detail text,
    actor text,
    request_id text,
    revision text
  )`,
  sql`create index container_events_by_container on container_events (container_id, seq)`,
  sql`create table idempotency_keys (
    subject text not null,
    key text not null,
    body_hash text not null,
    container_id uuid not null references containers,
    answer jsonb,
    created_at timestamptz not null default now(),
    primary key (subject, key)
  )`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
