import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { hostnamesOfOthers } from './hostnames.repository.ts';

/** How long a change may take whose end nobody has reported; then its process is taken for dead. */
const LONGEST_CHANGE_MINUTES = 10;

/**
 * Claims domains for a container and answers those that another one holds, its hostnames among them. Sorted, so that two that claim the same
 * names at once wait for each other in one order instead of for ever.
 */
export async function claimDomains(
  db: Database,
  container: string,
  domains: readonly string[],
): Promise<string[]> {
  const foreign = await hostnamesOfOthers(db, container, domains);
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
 * The same for a change that is about to be committed. Until `settleClaims` is told of its end, its names are given up
 * by nobody: neither by another change of the container that fails, nor by one that takes the name away.
 */
export async function claimForChange(
  db: Database,
  container: string,
  change: string,
  domains: readonly string[],
): Promise<string[]> {
  const foreign = await hostnamesOfOthers(db, container, domains);
  const names = namesOf(domains).filter((name) => !foreign.includes(name));
  if (names.length === 0) return foreign;
  const ours = await db
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
}

/** A change has ended, one way or the other: of its names, the container keeps those that something still wants. */
export async function settleClaims(db: Database, container: string, change: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    // The projection holds the same lock while it takes a manifest over.
    await sql`select from containers where id = ${container} for update`.execute(trx);
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

/** Changes whose end was never reported: of a killed process, or of one that can't know whether its commit came. */
export async function hasOverdueClaims(db: Database): Promise<boolean> {
  const { rows } = await sql`select from domain_claims where ${overdue} limit 1`.execute(db);
  return rows.length > 0;
}

/** To be called when the database has caught up with git: what no manifest carries by now never will. */
export async function settleOverdueClaims(db: Database): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ domain: string }>`
      update domain_claims set changes = '{}' where ${overdue} returning domain`.execute(trx);
    await releaseUnwanted(
      trx,
      rows.map(({ domain }) => domain),
    );
  });
}

/** Gives up some of a container's domains, but for those that a change in flight wants; their records go with them. */
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

/** Gives up all of a container that is no more. */
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
