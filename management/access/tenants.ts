import type { Actor, Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { isAtLeast, type Role, roleFrom } from '../lifecycle/roles.ts';
import { roleInClient, roleInOrganisation } from '../records/memberships.repository.ts';
import { demandSufficient, type Purpose } from './roles.ts';

/** A client or an organisation. `kind` is also the name of its folder in git. */
export interface TenantRef {
  readonly kind: 'clients' | 'organisations';
  readonly id: string;
}

interface Parts {
  readonly db: Database;
  readonly settings: { readonly superAdmins: readonly string[] };
}

export function isOperator(
  { settings }: Pick<Parts, 'settings'>,
  { subject }: Pick<Actor, 'subject'>,
): boolean {
  return settings.superAdmins.includes(subject);
}

/** The caller's role in a client or organisation, where operators count as owners of all. `null`: none. */
export async function roleIn(
  parts: Parts,
  { kind, id }: TenantRef,
  caller: Pick<Actor, 'subject'>,
): Promise<Role | null> {
  const { db } = parts;
  if (isOperator(parts, caller)) {
    const known = await db.selectFrom(kind).select('id').where('id', '=', id).executeTakeFirst();
    return known === undefined ? null : 'owner';
  }
  return await ownRole(db, { kind, id }, caller);
}

/** The caller's own role in a client or organisation; `null`: none. */
export async function ownRole(
  db: Database,
  { kind, id }: TenantRef,
  { subject }: Pick<Actor, 'subject'>,
): Promise<Role | null> {
  return kind === 'clients' ? await roleInClient(db, id, subject) : await roleInOrganisation(db, id, subject);
}

/** Like `roleIn`. Throws the problem to answer if the role isn't sufficient. */
export async function demandRoleIn(
  parts: Parts,
  ref: TenantRef,
  caller: Actor,
  purpose: Purpose,
): Promise<Role> {
  const role = await roleIn(parts, ref, caller);
  if (role === null) {
    throw new ManagementProblem(ref.kind === 'clients' ? 'unknown_client' : 'unknown_organisation');
  }
  demandSufficient(role, purpose);
  return role;
}

/** Throws `client_archived` or `organisation_archived`. */
export async function demandOpen(db: Database, { kind, id }: TenantRef): Promise<void> {
  const row = await db.selectFrom(kind).select('archived_at').where('id', '=', id).executeTakeFirst();
  if (row?.archived_at == null) return;
  throw new ManagementProblem(kind === 'clients' ? 'client_archived' : 'organisation_archived');
}

/** The client or organisation that a row belongs to. */
export function tenantOf({
  client_id,
  organisation_id,
}: {
  readonly client_id: string | null;
  readonly organisation_id: string | null;
}): TenantRef {
  return client_id === null
    ? { kind: 'organisations', id: organisation_id ?? '' }
    : { kind: 'clients', id: client_id };
}

/** The problems of a request for a list that may be limited to a client or an organisation. */
export const LIST_REFUSALS = [
  'invalid_request',
  'forbidden',
  'unknown_client',
  'unknown_organisation',
] as const;

/** Throws a problem if a list's query names a client or an organisation that the caller doesn't manage. */
export async function demandListed(
  parts: Parts,
  of: { readonly client?: string | undefined; readonly organisation?: string | undefined },
  caller: Actor,
): Promise<void> {
  if (of.client !== undefined) await demandRoleIn(parts, { kind: 'clients', id: of.client }, caller, 'act');
  if (of.organisation !== undefined) {
    await demandRoleIn(parts, { kind: 'organisations', id: of.organisation }, caller, 'act');
  }
}

/** Throws `forbidden` if the role is stronger than the caller's own. */
export function demandMayGive(caller: Role, role: string): void {
  if (isAtLeast(caller, roleFrom(role))) return;
  throw new ManagementProblem('forbidden', {
    detail: `the role ${caller} can’t give or remove the stronger role ${role}`,
  });
}
