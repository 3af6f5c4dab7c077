import { randomBytes } from 'node:crypto';
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import { administeredClients, administeredOrganisations } from '../access/administered.ts';
import type { Actor, Database, Tables } from '../db/database.ts';

export type WebhookRow = Selectable<Tables['webhooks']>;

/** Bytes of a secret's key (Standard Webhooks: 24 to 64). */
const KEY_BYTES = 32;
/** Until when messages are also signed with the previous secret. */
const ROTATION = sql<Date>`now() + interval '1 day'`;

function newSecret(): string {
  return `whsec_${randomBytes(KEY_BYTES).toString('base64')}`;
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

export async function countWebhooks(
  db: Database,
  column: 'client_id' | 'organisation_id',
  id: string,
): Promise<number> {
  const { count } = await db
    .selectFrom('webhooks')
    .select(sql<number>`count(*)::integer`.as('count'))
    .where(column, '=', id)
    .executeTakeFirstOrThrow();
  return count;
}

/** A webhook that exists stays as it is: an earlier attempt of the same creation has made it. */
export async function insertWebhook(
  db: Database,
  row: Omit<Insertable<Tables['webhooks']>, 'secret'>,
): Promise<WebhookRow> {
  return await db
    .insertInto('webhooks')
    .values({ ...row, secret: newSecret() })
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
      secret: newSecret(),
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
