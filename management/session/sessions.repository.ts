import type { Actor, Database } from '../db/database.ts';

export interface SessionRow {
  readonly id_hash: string;
  readonly subject: string;
  readonly name: string;
  readonly email: string;
  readonly sealed: string;
  readonly created_at: Date;
  readonly seen_at: Date;
  readonly refreshed_at: Date;
}

interface NewSession {
  readonly idHash: string;
  readonly actor: Actor;
  /** The provider's own id of the login (`sid`). */
  readonly providerSession: string | null;
  readonly sealed: string;
  readonly at: Date;
}

export async function insertSession(
  db: Database,
  { idHash, actor, providerSession, sealed, at }: NewSession,
): Promise<void> {
  await db
    .insertInto('sessions')
    .values({
      id_hash: idHash,
      ...actor,
      provider_session: providerSession,
      sealed,
      created_at: at,
      seen_at: at,
      refreshed_at: at,
    })
    .execute();
}

export async function findSession(db: Database, idHash: string): Promise<SessionRow | undefined> {
  return await db.selectFrom('sessions').selectAll().where('id_hash', '=', idHash).executeTakeFirst();
}

export async function touchSession(db: Database, idHash: string, at: Date): Promise<void> {
  await db.updateTable('sessions').set({ seen_at: at }).where('id_hash', '=', idHash).execute();
}

/** Resolves to `false` if another request has already begun this refresh: a refresh token is used once. */
export async function claimRefresh(
  db: Database,
  { id_hash, refreshed_at }: Pick<SessionRow, 'id_hash' | 'refreshed_at'>,
  at: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('sessions')
    .set({ refreshed_at: at })
    .where('id_hash', '=', id_hash)
    .where('refreshed_at', '=', refreshed_at)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function updateIdentity(
  db: Database,
  idHash: string,
  { name, email, sealed }: { readonly name: string; readonly email: string; readonly sealed: string },
): Promise<void> {
  await db.updateTable('sessions').set({ name, email, sealed }).where('id_hash', '=', idHash).execute();
}

export async function deleteSession(db: Database, idHash: string): Promise<void> {
  await db.deleteFrom('sessions').where('id_hash', '=', idHash).execute();
}

/** Deletes the sessions of one login at the provider; without its id, all those of the subject. */
export async function deleteSessionsOf(
  db: Database,
  { subject, providerSession }: { readonly subject?: string; readonly providerSession?: string },
): Promise<void> {
  const query = db.deleteFrom('sessions');
  await (providerSession === undefined
    ? query.where('subject', '=', subject ?? '')
    : query.where('provider_session', '=', providerSession)
  ).execute();
}

export async function deleteSessionsBefore(db: Database, created: Date, seen: Date): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where((row) => row.or([row('created_at', '<', created), row('seen_at', '<', seen)]))
    .execute();
}
