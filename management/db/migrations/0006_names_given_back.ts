import { type Kysely, sql } from 'kysely';

const STATEMENTS = [
  // A removed site has no hostnames, so that another site may use them: unique constraints ignore nulls.
  sql`alter table sites alter column edge_hostname drop not null,
    alter column origin_hostname drop not null, alter column preview_hostname drop not null`,
  sql`update sites set edge_hostname = null, origin_hostname = null, preview_hostname = null
    from containers
    where containers.id = sites.container_id and containers.status in ('failed', 'removed')
      and not exists (select from domain_claims where domain_claims.container_id = containers.id)`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
