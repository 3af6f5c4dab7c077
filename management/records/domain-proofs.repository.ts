import { type Selectable, sql } from 'kysely';
import { registrableDomain } from '../../sites/manifest/schema.ts';
import type { Database, Tables } from '../db/database.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import type { ProofState } from '../lifecycle/proof.ts';
import { LIVE } from '../lifecycle/status.ts';

export type ProofRow = Selectable<Tables['domain_proofs']>;

/** A proof by its key. */
export interface ProofKey {
  readonly client: string;
  readonly domain: string;
}

/** The registrable domains of names, each once, in sorted order. */
export function registrablePartsOf(names: readonly string[]): string[] {
  return [...new Set(names.map((name) => registrableDomain(name) ?? name))].sort();
}

/** Those of the registrable domains of `names` that are not proven to be the client's. */
export async function unprovenDomains(
  db: Database,
  client: string,
  names: readonly string[],
): Promise<string[]> {
  const domains = registrablePartsOf(names);
  if (domains.length === 0) return [];
  const rows = await db
    .selectFrom('domain_proofs')
    .select('domain')
    .where('client_id', '=', client)
    .where('domain', 'in', domains)
    .where('status', '=', 'proven')
    .execute();
  return domains.filter((domain) => !rows.some((row) => row.domain === domain));
}

/**
 * Brings the proofs of a site's domains up to date with its manifest. A domain that is new here is proven unless the
 * manifest lists it as unproven: a lost database is filled from git, and sites may be older than the proofs. Where
 * another client has proven the domain, the client of the site must show its own record in time. A manifest that
 * disagrees with what is known of the domain is corrected later.
 */
export async function rememberProofs(
  db: Database,
  { client, unproven = [] }: Pick<ManifestView, 'client' | 'unproven'>,
  names: readonly string[],
): Promise<void> {
  for (const domain of registrablePartsOf(names)) {
    const isListed = unproven.includes(domain);
    const status = isListed ? 'pending' : 'proven';
    await sql`
      insert into domain_proofs as known (client_id, domain, status, absent_since)
      values (${client}::uuid, ${domain}, ${status}, case when ${isListed} then null else (
        select now() from domain_proofs as other
        where other.domain = ${domain} and other.client_id <> ${client}::uuid
          and other.status = 'proven' and other.seen_at is not null
        limit 1) end)
      on conflict (client_id, domain) do update set settled = false
      where known.settled and (known.status <> 'proven') <> ${isListed}::boolean`.execute(db);
  }
}

/** Adds what is known of the proofs of each container's domains. */
export async function withProofs<Row extends { readonly client_id: string; readonly manifest: ManifestView }>(
  db: Database,
  rows: readonly Row[],
): Promise<(Row & { readonly proofs: readonly ProofRow[] })[]> {
  const wanted = rows.map(({ client_id: client, manifest }) => ({
    client,
    domains: registrablePartsOf(manifest.domains.map(({ domain }) => domain)),
  }));
  const clients = [...new Set(wanted.map(({ client }) => client))];
  const domains = [...new Set(wanted.flatMap((one) => one.domains))];
  const found =
    rows.length === 0
      ? []
      : await db
          .selectFrom('domain_proofs')
          .selectAll()
          .where('client_id', 'in', clients)
          .where('domain', 'in', domains)
          .execute();
  return rows.map((row, index) => ({
    ...row,
    proofs: found.filter(
      ({ client_id, domain }) =>
        client_id === row.client_id && wanted[index]?.domains.includes(domain) === true,
    ),
  }));
}

export async function findProof(db: Database, { client, domain }: ProofKey): Promise<ProofRow | undefined> {
  return await db
    .selectFrom('domain_proofs')
    .selectAll()
    .where('client_id', '=', client)
    .where('domain', '=', domain)
    .executeTakeFirst();
}

/** Locks a proof until the transaction ends. */
export async function lockProof(db: Database, { client, domain }: ProofKey): Promise<ProofRow | undefined> {
  return await db
    .selectFrom('domain_proofs')
    .selectAll()
    .where('client_id', '=', client)
    .where('domain', '=', domain)
    .forUpdate()
    .executeTakeFirst();
}

/** Records a check. If the status has changed, `settled` becomes false, so that git is brought up to date. */
export async function recordCheck(
  db: Database,
  before: ProofRow,
  after: ProofState & { readonly checkedAt: Date; readonly nextAt: Date },
): Promise<void> {
  const isMoved = after.status !== before.status;
  await db
    .updateTable('domain_proofs')
    .set({
      status: after.status,
      seen_at: after.seenAt,
      absent_since: after.absentSince,
      checked_at: after.checkedAt,
      next_at: after.nextAt,
      ...(isMoved ? { since: after.checkedAt, settled: false } : {}),
    })
    .where('client_id', '=', before.client_id)
    .where('domain', '=', before.domain)
    .execute();
}

/** Takes proofs whose check is due, so that no other process takes them until `until`. */
export async function takeDue(
  db: Database,
  { now, until, most }: { readonly now: Date; readonly until: Date; readonly most: number },
): Promise<ProofRow[]> {
  return await db
    .updateTable('domain_proofs')
    .set({ next_at: until })
    .where(sql<boolean>`(client_id, domain) in (
      select client_id, domain from domain_proofs where next_at <= ${now}
      order by next_at limit ${most} for update skip locked)`)
    .returningAll()
    .execute();
}

export async function unsettledProofs(db: Database, most: number): Promise<ProofRow[]> {
  return await db.selectFrom('domain_proofs').selectAll().where('settled', '=', false).limit(most).execute();
}

/** Records that git agrees with `status` for all sites, unless the status has changed again. */
export async function settleProof(db: Database, { client_id, domain, status }: ProofRow): Promise<void> {
  await db
    .updateTable('domain_proofs')
    .set({ settled: true })
    .where('client_id', '=', client_id)
    .where('domain', '=', domain)
    .where('status', '=', status)
    .execute();
}

/** Makes all domains count as proven, even without a TXT record. */
export async function proveAll(db: Database): Promise<void> {
  await db
    .updateTable('domain_proofs')
    .set({ status: 'proven', seen_at: null, absent_since: null, settled: false })
    .where((where) => where.or([where('status', '<>', 'proven'), where('absent_since', 'is not', null)]))
    .execute();
}

/**
 * Deletes a pending proof of a domain in which the client has no name any more. Any other proof is kept: if git
 * brings an old site back, a domain without a row would count as proven.
 */
export async function releaseProof(db: Database, { client, domain }: ProofKey, nextAt: Date): Promise<void> {
  await db
    .deleteFrom('domain_proofs')
    .where('client_id', '=', client)
    .where('domain', '=', domain)
    .where('status', '=', 'pending')
    .execute();
  await db
    .updateTable('domain_proofs')
    .set({ next_at: nextAt })
    .where('client_id', '=', client)
    .where('domain', '=', domain)
    .execute();
}

/** The client's live sites with a name in the domain. */
export async function sitesOf(db: Database, { client, domain }: ProofKey) {
  const under = `%.${domain}`;
  return await db
    .selectFrom('containers')
    .select(['id', 'site_id', 'status'])
    .where('client_id', '=', client)
    .where('status', 'in', LIVE)
    .where(sql<boolean>`exists (
      select from (
        select page->>'domain' as name from jsonb_array_elements(manifest->'domains') as page
        union all select jsonb_array_elements_text(manifest->'customDomains')
      ) as names where name = ${domain} or name like ${under})`)
    .orderBy('seq')
    .execute();
}
