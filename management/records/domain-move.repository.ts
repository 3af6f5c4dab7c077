import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { lockDomains } from './client-domains.repository.ts';
import type { ProofKey } from './domain-proofs.repository.ts';

/** How long a domain that was moved stays reserved for its new client, which claims a name in it next. */
const HELD_MINUTES = 10;

/**
 * Moves a registrable domain to the client that has just proven it. The other clients' proofs are lost, and their claims
 * of names in it end. Resolves to the ids of these clients. Call it in a transaction.
 */
export async function moveDomain(trx: Database, { client, domain }: ProofKey, now: Date): Promise<string[]> {
  await lockDomains(trx, [domain]);
  await sql`
    insert into domain_proofs (client_id, domain, status, seen_at, checked_at, next_at, settled, held_until)
    values (${client}::uuid, ${domain}, 'proven', ${now}, ${now}, ${now}, false,
      now() + make_interval(mins => ${HELD_MINUTES}))
    on conflict (client_id, domain) do update set status = 'proven', seen_at = excluded.seen_at,
      checked_at = excluded.checked_at, absent_since = null, settled = false,
      held_until = excluded.held_until`.execute(trx);
  const { rows } = await sql<{ client_id: string }>`
    update domain_proofs set status = 'lost', since = ${now}, seen_at = null, absent_since = null, settled = false
    where domain = ${domain} and client_id <> ${client}::uuid
    returning client_id`.execute(trx);
  await sql`
    delete from domain_claims as claim using containers as owner
    where owner.id = claim.container_id and owner.client_id <> ${client}::uuid
      and (reverse(claim.domain) collate "C" = reverse(${domain}::text)
        or (reverse(claim.domain) collate "C" > reverse(${domain}::text) || '.'
          and reverse(claim.domain) collate "C" < reverse(${domain}::text) || '/'))`.execute(trx);
  return rows.map(({ client_id }) => client_id);
}
