import { type Kysely, sql } from 'kysely';

/**
 * Why a host refuses a container's newest manifest, which another obstacle hid until now; and the health that follows from
 * the state.
 */
const STATEMENTS = [
  sql`alter table containers add column host_refusal text`,
  sql`update containers set host_refusal = host_detail where host_reason = 'host_refused'`,
  sql`update containers set health = case
    when status in ('provisioning', 'deprovisioning', 'removed') or state_name = 'setting_up' then 'unknown'
    when state_name = 'failing' or state->'also' ? 'failing' then 'degraded'
    else 'healthy' end`,
];

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}
