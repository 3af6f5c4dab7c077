import { sql } from 'kysely';
import type { Database, Tables } from './database.ts';

/** The API's rights on each table. It has none on the port pool, and calls the pool's functions instead. */
const RIGHTS: Readonly<Record<keyof Tables, string | null>> = {
  clients: 'select, insert, update (name, organisation_id, archived_at, blob)',
  client_memberships: 'select, insert, update, delete',
  organisations: 'select, insert, update (name, archived_at, blob)',
  organisation_memberships: 'select, insert, update, delete',
  service_tokens: 'select, insert, update (hash, last_used_at, revoked_at)',
  invitations: 'select, insert, update (hash, accepted_by, accepted_at), delete',
  containers: 'select, insert, update',
  container_counts: 'select',
  port_pool: null,
  domain_claims: 'select, insert, update (changes, changed_at), delete',
  domain_proofs: 'select, insert, update, delete',
  sites: 'select, insert, update',
  site_domains: 'select, insert, delete',
  operations: 'select, insert, update',
  container_events: 'select, insert',
  webhooks: 'select, insert, update, delete',
  webhook_deliveries: 'select, insert, update, delete',
  webhook_queues: 'select, insert, update',
  image_rollouts: 'select, insert, update (status, reason, detail, leased_by, leased_until, updated_at)',
  image_rollout_sites:
    'select, insert, update (wave, state, from_image, reason, detail, revision, since, well_since)',
  plans: 'select, insert, update, delete',
  installation_key: 'select',
  place_holds: 'select, insert, delete',
  verifications: 'select, insert, delete',
  idempotency_keys: 'select, insert, update, delete',
  sessions: 'select, insert, update (name, email, sealed, seen_at, refreshed_at), delete',
  traffic_state: 'select, update (since, minutes_from, hours_from, days_from, notes_from)',
  traffic_collectors: 'select, insert, update (seen_at), delete',
  traffic_leases: 'select, update (holder, until, collected_until)',
  traffic_objects: 'select, insert, delete',
  traffic_batches: 'select, insert, update (seen), delete',
  traffic_faults: 'select, insert, update (lines, at), delete',
  traffic_minutes: 'select, insert, update (counts), delete',
  traffic_hours: 'select, insert, update (counts), delete',
  traffic_days: 'select, insert, update (counts), delete',
  traffic_deletions: 'select, insert, update',
  audit_log:
    'select, insert, update (container_id, client_id, organisation_id, status, code, revision, count)',
  handover_links:
    'select, insert, update (expires_at, recipients, next_at, complete_at, mail, mail_at, mail_attempts, mail_error), delete',
  checklist_verdicts: 'select, insert, update (state, detail, checked_at)',
};
const FUNCTIONS = [
  'lease_ports',
  'hold_ports',
  'release_ports',
  'count_free_ports',
  'prune_history',
  'queue_delivery',
  'count_ports',
  'fold_container_counts',
];

/** A privileged role is configured for the port pool, but the API's own role can reach the pool too. */
class RoleError extends Error {
  override name = 'RoleError';
}

export async function roleOf(db: Database): Promise<string> {
  const { rows } = await sql<{ role: string }>`select current_user as role`.execute(db);
  return rows[0]?.role ?? '';
}

/** Grants `role` what the API needs and nothing more. `owner` is the connection that owns the schema. */
export async function grantApi(owner: Database, role: string): Promise<void> {
  const grantee = sql.id(role);
  await owner.transaction().execute(async (trx) => {
    // Without the lock, concurrent grants fail: PostgreSQL reports a catalogue row that was updated concurrently.
    await sql`select pg_advisory_xact_lock(hashtext('tagyard grants'))`.execute(trx);
    await sql`grant usage on schema public to ${grantee}`.execute(trx);
    for (const [table, rights] of Object.entries(RIGHTS)) {
      await sql`revoke all on ${sql.table(table)} from ${grantee}`.execute(trx);
      if (rights === null) continue;
      await sql`grant ${sql.raw(rights)} on ${sql.table(table)} to ${grantee}`.execute(trx);
    }
    for (const name of FUNCTIONS) {
      await sql`grant execute on function ${sql.id(name)} to ${grantee}`.execute(trx);
    }
  });
}

/** Throws where the API's own role can read or write the pool's table, for example because it owns it. */
export async function demandNoPool(db: Database): Promise<void> {
  const { rows } = await sql<{ reaches: boolean }>`
    select has_table_privilege('port_pool', 'select, insert, update, delete, truncate') as reaches`.execute(
    db,
  );
  if (rows[0]?.reaches === false) return;
  throw new RoleError(
    'the role of DATABASE_URL can access the port pool; use a role that owns nothing and inherits nothing',
  );
}
