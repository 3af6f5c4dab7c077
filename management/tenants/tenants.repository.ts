import { type RawBuilder, sql } from 'kysely';
import type { TenantRef } from '../access/tenants.ts';
import type { Database } from '../db/database.ts';
import { type Member, type Tenant, tenantName } from './tenant-file.ts';

const MEMBERS = {
  clients: { table: 'client_memberships', key: 'client_id' },
  organisations: { table: 'organisation_memberships', key: 'organisation_id' },
} as const;

/** Members that are persons. Service tokens are members too, and are never in git. */
const isPerson = sql<boolean>`subject not like 'token:%'`;

/** Resolves to the blob that was projected last. Inserts a row without a name if there is none. Locks the row. */
export async function lockTenant(trx: Database, { kind, id }: TenantRef): Promise<string | null> {
  await trx
    .insertInto(kind)
    .values({ id, name: '' })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const { rows } = await sql<{ blob: string | null }>`
    select blob from ${sql.table(kind)} where id = ${id} for no key update`.execute(trx);
  return rows[0]?.blob ?? null;
}

/** Records what git holds. */
export async function storeTenant(
  trx: Database,
  { kind, id }: TenantRef,
  { name, organisation, archivedAt, members }: Tenant,
  blob: string,
): Promise<void> {
  const row = { name, blob, archived_at: archivedAt === null ? null : new Date(archivedAt) };
  if (kind === 'organisations') await trx.updateTable(kind).set(row).where('id', '=', id).execute();
  else {
    const all = { ...row, organisation_id: organisation };
    await trx.updateTable(kind).set(all).where('id', '=', id).execute();
  }
  const { table, key } = MEMBERS[kind];
  const subjects = members.map(({ subject }) => subject);
  const roles = members.map(({ role }) => role);
  await sql`delete from ${sql.table(table)}
    where ${sql.ref(key)} = ${id} and subject <> all (${subjects}::text[]) and ${isPerson}`.execute(trx);
  await sql`insert into ${sql.table(table)} as existing (${sql.ref(key)}, subject, role)
    select ${id}::uuid, given.subject, given.role from unnest(${subjects}::text[], ${roles}::text[]) as given (subject, role)
    on conflict (${sql.ref(key)}, subject) do update set role = excluded.role
    where existing.role <> excluded.role`.execute(trx);
}

interface StoredRow {
  readonly name: string;
  readonly organisation: string | null;
  readonly archived: Date | null;
}

/** `null`: there is none. */
export async function readTenant(db: Database, { kind, id }: TenantRef): Promise<Tenant | null> {
  const above: RawBuilder<unknown> = kind === 'clients' ? sql`organisation_id` : sql`null::uuid`;
  const { rows } = await sql<StoredRow>`
    select name, organisation, archived
    from (select id, name, ${above}, archived_at from ${sql.table(kind)}) as one (id, name, organisation, archived)
    where id = ${id}`.execute(db);
  const [row] = rows;
  if (row === undefined) return null;
  const { table, key } = MEMBERS[kind];
  const { rows: members } = await sql<Member>`
    select subject, role from ${sql.table(table)} where ${sql.ref(key)} = ${id} and ${isPerson}
    order by subject collate "C"`.execute(db);
  const { name, organisation, archived } = row;
  return { name, organisation, archivedAt: archived === null ? null : archived.toISOString(), members };
}

/** By each file's name, the blob that was projected last; `null`: git has never had the file. */
export async function projectedBlobs(db: Database): Promise<ReadonlyMap<string, string | null>> {
  const [organisations, clients] = await Promise.all([
    db.selectFrom('organisations').select(['id', 'blob']).execute(),
    db.selectFrom('clients').select(['id', 'blob']).execute(),
  ]);
  return new Map([
    ...organisations.map(({ id, blob }) => [tenantName({ kind: 'organisations', id }), blob] as const),
    ...clients.map(({ id, blob }) => [tenantName({ kind: 'clients', id }), blob] as const),
  ]);
}

/** A page of a tenant's members, by subject. */
export async function listMembers(
  db: Database,
  { kind, id }: TenantRef,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<Member[]> {
  const { table, key } = MEMBERS[kind];
  const { rows } = await sql<Member>`
    select subject, role from ${sql.table(table)}
    where ${sql.ref(key)} = ${id} and ${isPerson} and subject collate "C" > ${after}
    order by subject collate "C" limit ${limit}`.execute(db);
  return rows;
}
