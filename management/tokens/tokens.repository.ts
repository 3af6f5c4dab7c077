import { type Selectable, sql } from 'kysely';
import { tokenSubject } from '../../sites/requests/token-subject.ts';
import { administeredClients, administeredOrganisations } from '../access/administered.ts';
import { type TenantRef, tenantOf } from '../access/tenants.ts';
import type { Database, Tables } from '../db/database.ts';
import { endLeftBehind, endMemberships } from '../records/left-behind.repository.ts';
import { isNoneOf } from '../records/places.repository.ts';

export type TokenRow = Selectable<Tables['service_tokens']>;

interface NewToken extends Pick<TokenRow, 'id' | 'hash' | 'name' | 'role' | 'created_by' | 'expires_at'> {
  readonly of: TenantRef;
}

/**
 * The token is a member from now on. An existing token gets the new value: it is from an earlier attempt of the same
 * creation, whose value was never returned. Call it in a transaction.
 */
export async function insertToken(trx: Database, { of, ...row }: NewToken): Promise<TokenRow> {
  const isClient = of.kind === 'clients';
  const member = { subject: tokenSubject(row.id), role: row.role };
  if (isClient)
    await trx
      .insertInto('client_memberships')
      .values({ client_id: of.id, ...member })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  else {
    await trx
      .insertInto('organisation_memberships')
      .values({ organisation_id: of.id, ...member })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  return await trx
    .insertInto('service_tokens')
    .values({ ...row, client_id: isClient ? of.id : null, organisation_id: isClient ? null : of.id })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ hash: row.hash }))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Also ends what was made with the token: otherwise a thief of a token would keep the tokens that were made with it. */
export async function revokeToken(
  db: Database,
  token: Pick<TokenRow, 'id' | 'client_id' | 'organisation_id'>,
  operators: readonly string[],
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await trx
      .updateTable('service_tokens')
      .set({ revoked_at: new Date() })
      .where('id', '=', token.id)
      .where('revoked_at', 'is', null)
      .execute();
    await endMemberships(trx, [token.id]);
    await endLeftBehind(trx, tenantOf(token), operators);
  });
}

export async function findToken(
  db: Database,
  by: { readonly id: string } | { readonly hash: string },
): Promise<TokenRow | undefined> {
  const query = db.selectFrom('service_tokens').selectAll().where('revoked_at', 'is', null);
  return await ('id' in by
    ? query.where('id', '=', by.id)
    : query.where('hash', '=', by.hash)
  ).executeTakeFirst();
}

/** How many tokens besides these a client or organisation has. */
export async function countTokens(
  db: Database,
  { kind, id }: TenantRef,
  besides: readonly string[],
): Promise<number> {
  const { count } = await db
    .selectFrom('service_tokens')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where(kind === 'clients' ? 'client_id' : 'organisation_id', '=', id)
    .where('revoked_at', 'is', null)
    .where(isNoneOf(besides))
    .executeTakeFirstOrThrow();
  return Number(count);
}

export async function markUsed(db: Database, id: string, at: Date): Promise<void> {
  await db.updateTable('service_tokens').set({ last_used_at: at }).where('id', '=', id).execute();
}

interface TokenFilter {
  /** Only tokens that this subject manages; `null`: all. */
  readonly manager: string | null;
  readonly client?: string | undefined;
  readonly organisation?: string | undefined;
  /** Creation time and id of the last one of the previous page. */
  readonly after: readonly string[] | null;
  readonly limit: number;
}

/**
 * Cut to the millisecond, as in cursors: otherwise a page would skip the remaining rows of the cursor's
 * millisecond.
 */
const CREATED = sql<Date>`date_trunc('milliseconds', created_at)`;

/** The newest first, without revoked ones. */
export async function listTokens(
  db: Database,
  { manager, client, organisation, after, limit }: TokenFilter,
): Promise<TokenRow[]> {
  let query = db
    .selectFrom('service_tokens')
    .selectAll()
    .where('revoked_at', 'is', null)
    .orderBy(CREATED, 'desc')
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
  if (after !== null) {
    const [at = '', id = ''] = after;
    query = query.where(
      sql<boolean>`(${CREATED} < ${at}::timestamptz or (${CREATED} = ${at}::timestamptz and id > ${id}::uuid))`,
    );
  }
  return await query.execute();
}
