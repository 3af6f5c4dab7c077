import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { administeredClients, administeredOrganisations } from '../access/administered.ts';
import { newSecretBytes } from '../access/secret-token.ts';
import type { Actor, Database, Tables } from '../db/database.ts';
import { isNoneOf } from '../records/places.repository.ts';

export type WebhookRow = Selectable<Tables['webhooks']>;

/** Until when messages are also signed with the previous secret. */
const ROTATION = sql<Date>`now() + interval '1 day'`;

/** The secret with this key (Standard Webhooks: 24 to 64 bytes). */
export function webhookSecret(key: Buffer): string {
  return `whsec_${key.toString('base64')}`;
}

interface Page {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** The webhooks that the caller administers, newest first. */
export async function listWebhooks(
  db: Database,
  {
    caller,
    client,
    organisation,
  }: {
    readonly caller: Actor;
    readonly client?: string | undefined;
    readonly organisation?: string | undefined;
  },
  { limit, cursor }: Page,
) {
  let query = db
    .selectFrom('webhooks')
    .selectAll()
    .select(sql<string>`seq::text`.as('seq'))
    .where((where) =>
      where.or([
        where('client_id', 'in', administeredClients(db, caller)),
        where('organisation_id', 'in', administeredOrganisations(db, caller)),
      ]),
    )
    .orderBy('webhooks.seq', 'desc')
    .limit(limit);
  if (client !== undefined) query = query.where('client_id', '=', client);
  if (organisation !== undefined) query = query.where('organisation_id', '=', organisation);
  if (cursor !== undefined) query = query.where('webhooks.seq', '<', cursor);
  return await query.execute();
}

export async function findWebhook(db: Database, id: string): Promise<WebhookRow | undefined> {
  return await db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Call it in a transaction: no other one changes the webhook until that transaction ends. */
export async function lockWebhook(trx: Database, id: string): Promise<WebhookRow | undefined> {
  return await trx.selectFrom('webhooks').selectAll().where('id', '=', id).forUpdate().executeTakeFirst();
}

/** How many webhooks besides these a client or organisation has. */
export async function countWebhooks(
  db: Database,
  column: 'client_id' | 'organisation_id',
  id: string,
  besides: readonly string[],
): Promise<number> {
  const { count } = await db
    .selectFrom('webhooks')
    .select(sql<number>`count(*)::integer`.as('count'))
    .where(column, '=', id)
    .where(isNoneOf(besides))
    .executeTakeFirstOrThrow();
  return count;
}

/** A webhook that exists stays as it is: an earlier attempt of the same creation has made it. */
export async function insertWebhook(db: Database, row: Insertable<Tables['webhooks']>): Promise<WebhookRow> {
  return await db
    .insertInto('webhooks')
    .values(row)
    // Changes nothing; it makes PostgreSQL return the existing row.
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ id: row.id }))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** A change ends the pause and removes the webhook's notice, because it may have repaired their cause. */
export async function changeWebhook(
  db: Database,
  id: string,
  values: Updateable<Tables['webhooks']>,
): Promise<WebhookRow> {
  return await db
    .updateTable('webhooks')
    .set({
      ...values,
      failures: 0,
      paused_until: null,
      notice: null,
      notice_at: null,
      updated_at: new Date(),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Replaces the secret. For a day, messages are signed with both the new secret and the previous one. */
export async function rotateSecret(db: Database, id: string, by: string): Promise<WebhookRow> {
  return await db
    .updateTable('webhooks')
    .set({
      previous_secret: sql<string>`secret`,
      previous_until: ROTATION,
      secret: webhookSecret(newSecretBytes()),
      changed_by: by,
      updated_at: new Date(),
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

export async function deleteWebhook(db: Database, id: string): Promise<void> {
  await db.deleteFrom('webhooks').where('id', '=', id).execute();
}
