import { sql } from 'kysely';
import { isWithinDomain } from '../../sites/manifest/schema.ts';
import type { Database } from '../db/database.ts';
import { type ProofKey, registrablePartsOf } from './domain-proofs.repository.ts';

/**
 * Locks registrable domains until the transaction ends, in sorted order, so that concurrent claims can't deadlock.
 */
export async function lockDomains(db: Database, domains: readonly string[]): Promise<void> {
  for (const domain of [...domains].sort()) {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`tagyard domain ${domain}`}, 0))`.execute(db);
  }
}

/**
 * The registrable domains that belong to a client other than `client`. A domain that was just moved belongs to its new
 * client. Any other domain belongs to one of the clients that have a name in it: the one that has proven it by its
 * record, else the one with the oldest container.
 */
export async function domainHolders(
  db: Database,
  client: string,
  domains: readonly string[],
): Promise<ProofKey[]> {
  if (domains.length === 0) return [];
  const { rows } = await sql<ProofKey>`
    select wanted.domain, holder.client_id as client
    from unnest(${domains}::text[]) as wanted (domain)
    cross join lateral (
      (select proof.client_id, 2 as rank, 0 as seq
      from domain_proofs as proof
      where proof.domain = wanted.domain and proof.held_until > now()
      limit 1)
      union all
      (select owner.client_id, (proof.status = 'proven' and proof.seen_at is not null)::integer as rank, owner.seq
      from domain_claims as claim
      join containers as owner on owner.id = claim.container_id
      left join domain_proofs as proof on proof.client_id = owner.client_id and proof.domain = wanted.domain
      where reverse(claim.domain) collate "C" = reverse(wanted.domain)
        or (reverse(claim.domain) collate "C" > reverse(wanted.domain) || '.'
          and reverse(claim.domain) collate "C" < reverse(wanted.domain) || '/')
      )
      order by rank desc nulls last, seq
      limit 1
    ) as holder
    where holder.client_id <> ${client}::uuid
  `.execute(db);
  return rows;
}

/**
 * Which of `names` the container can't have, because their registrable domain belongs to another client. A container
 * keeps the names that it already has.
 *
 * Call this in the transaction that claims the names. It locks the registrable domains until the transaction ends.
 */
export async function domainsOfOtherClients(
  db: Database,
  container: string,
  names: readonly string[],
): Promise<string[]> {
  const registrable = registrablePartsOf(names);
  if (registrable.length === 0) return [];
  await lockDomains(db, registrable);
  const { client_id } = await db
    .selectFrom('containers')
    .select('client_id')
    .where('id', '=', container)
    .executeTakeFirstOrThrow();
  const held = await domainHolders(db, client_id, registrable);
  const foreign = names.filter((name) => held.some(({ domain }) => isWithinDomain(name, domain)));
  if (foreign.length === 0) return [];
  const own = await db
    .selectFrom('domain_claims')
    .select('domain')
    .where('domain', 'in', foreign)
    .where('container_id', '=', container)
    .execute();
  return foreign.filter((name) => !own.some(({ domain }) => domain === name));
}
