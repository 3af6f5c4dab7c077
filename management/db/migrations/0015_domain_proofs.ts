import { type Kysely, sql } from 'kysely';
import { registrableDomain } from '../../../sites/manifest/schema.ts';

const STATEMENTS = [
  // `seen_at`: when the record was last found. `settled`: the manifests of all the client's sites agree with the status.
  // `held_until`: until then, a moved domain belongs to its new client, even if the client has no name in it yet.
  sql`create table domain_proofs (
    client_id uuid not null references clients,
    domain text not null,
    status text not null check (status in ('pending', 'proven', 'lost')),
    since timestamptz not null default now(),
    seen_at timestamptz,
    absent_since timestamptz,
    checked_at timestamptz,
    next_at timestamptz not null default '-infinity',
    settled boolean not null default true,
    held_until timestamptz,
    primary key (client_id, domain)
  )`,
  sql`create index domain_proofs_by_domain on domain_proofs (domain)`,
  sql`create index domain_proofs_due on domain_proofs (next_at)`,
  sql`create index domain_proofs_unsettled on domain_proofs (client_id) where not settled`,
  // The kinds are a closed set in the code, which grows; a list here would have to follow it.
  sql`alter table container_events drop constraint if exists container_events_kind_check`,
];

const BATCH = 1_000;

/** Every domain that a client already has counts as proven, although nothing is known of a record. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
  const { rows } = await sql<{ client: string; name: string }>`
    select distinct owner.client_id as client, claim.domain as name
    from domain_claims as claim join containers as owner on owner.id = claim.container_id`.execute(db);
  const proven = new Map(
    rows.map(({ client, name }) => {
      const domain = registrableDomain(name) ?? name;
      return [`${client} ${domain}`, { client, domain }];
    }),
  );
  const all = [...proven.values()];
  for (let start = 0; start < all.length; start += BATCH) {
    const values = all
      .slice(start, start + BATCH)
      .map(({ client, domain }) => sql`(${client}::uuid, ${domain}::text, 'proven')`);
    await sql`insert into domain_proofs (client_id, domain, status) values ${sql.join(values)}`.execute(db);
  }
}
