import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { domainsOfOtherClients } from './client-domains.repository.ts';
import { lockContainer } from './containers.repository.ts';
import { hostnamesOfOthers } from './hostnames.repository.ts';

/** A change that has not reported its end for this long has ended, committed or not. */
const LONGEST_CHANGE_MINUTES = 10;

/**
 * Claims domains for a container, in the caller's transaction. Resolves to the domains that the container can't have:
 * another container has them as a domain or a hostname, or they are in a registrable domain of another client. Claims
 * in sorted order, so that concurrent claims of the same names can't deadlock.
 */
export async function claimDomains(
  db: Database,
  container: string,
  domains: readonly string[],
): Promise<string[]> {
  const foreign = await foreignNames(db, container, domains);
  const names = namesOf(domains).filter((name) => !foreign.includes(name));
  if (names.length === 0) return foreign.sort();
  const taken = await db
    .insertInto('domain_claims')
    .values(names.map((domain) => ({ domain, container_id: container })))
    .onConflict((conflict) => conflict.doNothing())
    .returning('domain')
    .execute();
  if (taken.length === names.length) return foreign.sort();
  const held = await db
    .selectFrom('domain_claims')
    .select('domain')
    .where('domain', 'in', names)
    .where('container_id', '!=', container)
    .execute();
  return [...foreign, ...held.map(({ domain }) => domain)].sort();
}

/**
 * Claims domains for a change that is about to be committed, like `claimDomains`. Until `settleClaims` reports the end
 * of the change, its names stay claimed, even if another change of the container fails or removes the name.
 */
export async function claimForChange(
  db: Database,
  container: string,
  change: string,
  domains: readonly string[],
): Promise<string[]> {
  if (domains.length === 0) return [];
  return await db.transaction().execute(async (trx) => {
    // Locks in the same order as the projection: the container, its registrable domains, its names.
    await lockContainer(trx, container);
    const foreign = await foreignNames(trx, container, domains);
    const names = namesOf(domains).filter((name) => !foreign.includes(name));
    if (names.length === 0) return foreign;
    const ours = await trx
      .insertInto('domain_claims')
      .values(
        names.map((domain) => ({
          domain,
          container_id: container,
          changes: sql<string[]>`array[${change}::uuid]`,
          changed_at: sql<Date>`now()`,
        })),
      )
      .onConflict((conflict) =>
        conflict
          .column('domain')
          .doUpdateSet({
            changes: sql<string[]>`domain_claims.changes || excluded.changes`,
            changed_at: sql<Date>`now()`,
          })
          .where('domain_claims.container_id', '=', container),
      )
      .returning('domain')
      .execute();
    return [...foreign, ...names.filter((name) => !ours.some(({ domain }) => domain === name))];
  });
}

/** The names that `claimForChange` would refuse. Claims nothing. Call it in a transaction. */
export async function unclaimableNames(
  db: Database,
  container: string,
  domains: readonly string[],
): Promise<string[]> {
  if (domains.length === 0) return [];
  const foreign = await foreignNames(db, container, domains);
  const held = await db
    .selectFrom('domain_claims')
    .select('domain')
    .where('domain', 'in', domains)
    .where('container_id', '!=', container)
    .execute();
  return [...new Set([...foreign, ...held.map(({ domain }) => domain)])];
}

/** Those of `domains` that are hostnames of other sites, or in a registrable domain of another client. */
async function foreignNames(db: Database, container: string, domains: readonly string[]): Promise<string[]> {
  const hostnames = await hostnamesOfOthers(db, container, domains);
  const ofOthers = await domainsOfOtherClients(db, container, domains);
  return [...new Set([...hostnames, ...ofOthers])];
}

/** Ends a change, committed or not. Releases its names that neither a manifest nor another change uses. */
export async function settleClaims(db: Database, container: string, change: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    // The projection holds the same lock while it records a manifest.
    await lockContainer(trx, container);
    const { rows } = await sql<{ domain: string }>`
      update domain_claims set changes = array_remove(changes, ${change}::uuid)
      where container_id = ${container} and ${change}::uuid = any (changes)
      returning domain`.execute(trx);
    await releaseUnwanted(
      trx,
      rows.map(({ domain }) => domain),
    );
  });
}

/** True if a change never reported its end: its process died, or doesn't know whether it committed the change. */
export async function hasOverdueClaims(db: Database): Promise<boolean> {
  const { rows } = await sql`select from domain_claims where ${overdue} limit 1`.execute(db);
  return rows.length > 0;
}

/**
 * Ends overdue changes. Call it when the database matches git: if no manifest shows an overdue change by then, it was
 * not committed.
 */
export async function settleOverdueClaims(db: Database): Promise<void> {
  const { rows } = await sql<{ container_id: string }>`
    select distinct container_id from domain_claims where ${overdue}`.execute(db);
  for (const { container_id: container } of rows) await settleOverdueOf(db, container);
}

async function settleOverdueOf(db: Database, container: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockContainer(trx, container);
    const { rows } = await sql<{ domain: string }>`
      update domain_claims set changes = '{}' where container_id = ${container} and ${overdue}
      returning domain`.execute(trx);
    await releaseUnwanted(
      trx,
      rows.map(({ domain }) => domain),
    );
  });
}

/** Releases some of a container's domains, with their `site_domains`, except those that an unfinished change uses. */
export async function releaseDomains(
  db: Database,
  container: string,
  domains: readonly string[],
): Promise<void> {
  if (domains.length === 0) return;
  await db
    .deleteFrom('domain_claims')
    .where('container_id', '=', container)
    .where('domain', 'in', domains)
    .where(sql<boolean>`changes = '{}'`)
    .execute();
}

/** Releases all domains of a container that is gone. */
export async function releaseAllDomains(db: Database, container: string): Promise<void> {
  await db.deleteFrom('domain_claims').where('container_id', '=', container).execute();
}

const overdue = sql`changes <> '{}' and changed_at < now() - make_interval(mins => ${LONGEST_CHANGE_MINUTES})`;

async function releaseUnwanted(db: Database, domains: readonly string[]): Promise<void> {
  if (domains.length === 0) return;
  await sql`
    delete from domain_claims as claim
    using containers as container
    where container.id = claim.container_id
      and claim.domain in (${sql.join(domains)})
      and claim.changes = '{}'
      and not container.manifest->'customDomains' @> to_jsonb(claim.domain)
      and not container.manifest->'domains' @> jsonb_build_array(jsonb_build_object('domain', claim.domain))
  `.execute(db);
}

function namesOf(domains: readonly string[]): string[] {
  return [...new Set(domains)].sort();
}
