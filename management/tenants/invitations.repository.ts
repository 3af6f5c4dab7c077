import type { Selectable } from 'kysely';
import { administeredClients, administeredOrganisations } from '../access/administered.ts';
import type { TenantRef } from '../access/tenants.ts';
import type { Database, Tables } from '../db/database.ts';
import { isNoneOf } from '../records/places.repository.ts';

export type InvitationRow = Selectable<Tables['invitations']>;
const COLUMN = { clients: 'client_id', organisations: 'organisation_id' } as const;

interface NewInvitation
  extends Pick<InvitationRow, 'id' | 'hash' | 'email' | 'role' | 'created_by' | 'expires_at'> {
  readonly of: TenantRef;
}

/**
 * An existing row gets the new token: the row is from an earlier attempt of the same creation, whose token was never
 * returned.
 */
export async function insertInvitation(db: Database, { of, ...row }: NewInvitation): Promise<InvitationRow> {
  return await db
    .insertInto('invitations')
    .values({
      ...row,
      client_id: of.kind === 'clients' ? of.id : null,
      organisation_id: of.kind === 'organisations' ? of.id : null,
    })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ hash: row.hash }))
    .returningAll()
    .executeTakeFirstOrThrow();
}

interface InvitationFilter {
  /** Only those that this subject manages; `null`: all. */
  readonly manager: string | null;
  readonly client?: string | undefined;
  readonly organisation?: string | undefined;
  /** The last one of the previous page. */
  readonly after: string | undefined;
  readonly limit: number;
  readonly now: Date;
}

/** The invitations that can still be accepted, by id. */
export async function listInvitations(
  db: Database,
  { manager, client, organisation, after, limit, now }: InvitationFilter,
): Promise<InvitationRow[]> {
  let query = db
    .selectFrom('invitations')
    .selectAll()
    .where('accepted_at', 'is', null)
    .where('expires_at', '>', now)
    .orderBy('id')
    .limit(limit);
  if (client !== undefined) query = query.where('client_id', '=', client);
  if (organisation !== undefined) query = query.where('organisation_id', '=', organisation);
  if (manager !== null) {
    const caller = { subject: manager };
    query = query.where(({ or, eb }) =>
      or([
        eb('client_id', 'in', administeredClients(db, caller)),
        eb('organisation_id', 'in', administeredOrganisations(db, caller)),
      ]),
    );
  }
  if (after !== undefined) query = query.where('id', '>', after);
  return await query.execute();
}

/** How many invitations of a client or organisation besides these can still be accepted. */
export async function countInvitations(
  db: Database,
  { kind, id }: TenantRef,
  now: Date,
  besides: readonly string[],
): Promise<number> {
  const { count } = await db
    .selectFrom('invitations')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where(COLUMN[kind], '=', id)
    .where('accepted_at', 'is', null)
    .where('expires_at', '>', now)
    .where(isNoneOf(besides))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Deletes the invitations that expired before the time `before`, accepted or not. Resolves to their number. */
export async function pruneInvitations(db: Database, before: Date): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('invitations')
    .where('expires_at', '<', before)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** `false`: there is no such invitation, or it was accepted. Then it can't be revoked. */
export async function hasInvitation(db: Database, of: TenantRef, invitation: string): Promise<boolean> {
  const found = await db
    .selectFrom('invitations')
    .select('id')
    .where('id', '=', invitation)
    .where(COLUMN[of.kind], '=', of.id)
    .where('accepted_at', 'is', null)
    .executeTakeFirst();
  return found !== undefined;
}

/** Resolves to false where `hasInvitation` does. */
export async function deleteInvitation(
  db: Database,
  { kind, id }: TenantRef,
  invitation: string,
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('invitations')
    .where('id', '=', invitation)
    .where(COLUMN[kind], '=', id)
    .where('accepted_at', 'is', null)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

interface Acceptance {
  readonly hash: string;
  readonly subject: string;
  readonly now: Date;
}

/** An invitation that the subject can accept. */
export async function findInvitation(
  db: Database,
  { hash, subject, now }: Acceptance,
): Promise<InvitationRow | undefined> {
  return await db
    .selectFrom('invitations')
    .selectAll()
    .where('hash', '=', hash)
    .where('accepted_at', 'is', null)
    .where('expires_at', '>', now)
    .where((where) => where.or([where('accepted_by', 'is', null), where('accepted_by', '=', subject)]))
    .executeTakeFirst();
}

/** Marks an invitation as accepted. `undefined`: there is none that the subject can accept. */
export async function takeInvitation(
  db: Database,
  { hash, subject, now }: Acceptance,
): Promise<InvitationRow | undefined> {
  return await db
    .updateTable('invitations')
    .set({ accepted_by: subject, accepted_at: now })
    .where('hash', '=', hash)
    .where('accepted_at', 'is', null)
    .where('expires_at', '>', now)
    .where((where) => where.or([where('accepted_by', 'is', null), where('accepted_by', '=', subject)]))
    .returningAll()
    .executeTakeFirst();
}

/**
 * After a failure: makes the invitation acceptable again, by `subject` only or, if that is `null`, by anyone with the
 * token.
 */
export async function putBackInvitation(db: Database, id: string, subject: string | null): Promise<void> {
  await db
    .updateTable('invitations')
    .set({ accepted_by: subject, accepted_at: null })
    .where('id', '=', id)
    .execute();
}
