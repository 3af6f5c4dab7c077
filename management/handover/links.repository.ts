import { type Selectable, sql } from 'kysely';
import type { Database, Tables } from '../db/database.ts';
import { LIVE } from '../lifecycle/status.ts';
import { type ContainerWithOperation, selectContainers } from '../records/containers.repository.ts';
import { withProofs } from '../records/domain-proofs.repository.ts';
import { lockPlaces } from '../records/places.repository.ts';

export type LinkRow = Selectable<Tables['handover_links']>;
type NewLink = Pick<
  LinkRow,
  'id' | 'hash' | 'client_id' | 'container_id' | 'recipients' | 'created_by' | 'created_at' | 'expires_at'
>;

export async function insertLink(db: Database, link: NewLink): Promise<LinkRow> {
  return await db
    .insertInto('handover_links')
    .values({
      ...link,
      recipients: JSON.stringify(link.recipients),
      next_at: link.created_at,
      mail: link.recipients.length === 0 ? 'none' : 'waiting',
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** A client's links that haven't expired, by id. */
export async function listLinks(
  db: Database,
  client: string,
  { after, limit, now }: { readonly after: string | undefined; readonly limit: number; readonly now: Date },
): Promise<LinkRow[]> {
  let query = db
    .selectFrom('handover_links')
    .selectAll()
    .where('client_id', '=', client)
    .where('expires_at', '>', now)
    .orderBy('id')
    .limit(limit);
  if (after !== undefined) query = query.where('id', '>', after);
  return await query.execute();
}

/** Links that haven't ended, and those of the last day: otherwise short-lived links would allow any number of mails. */
export async function countLinks(db: Database, client: string, now: Date): Promise<number> {
  const dayAgo = new Date(now.getTime() - 86_400_000);
  const { count } = await db
    .selectFrom('handover_links')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('client_id', '=', client)
    .where(({ or, eb }) => or([eb('expires_at', '>', now), eb('created_at', '>', dayAgo)]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * Ends a link at once. Its row stays a while, without the recipients, because links and mails of the last day are
 * counted.
 */
export async function revokeLink(db: Database, id: string, now: Date): Promise<void> {
  await db
    .updateTable('handover_links')
    .set({
      expires_at: now,
      recipients: JSON.stringify([]),
      mail: sql`case when mail in ('waiting', 'due') then 'none' else mail end`,
    })
    .where('id', '=', id)
    .execute();
}

/** The client's link, unless it has ended. */
export async function findLink(
  db: Database,
  { client, id, now }: { readonly client: string; readonly id: string; readonly now: Date },
): Promise<LinkRow | undefined> {
  return await db
    .selectFrom('handover_links')
    .selectAll()
    .where('client_id', '=', client)
    .where('id', '=', id)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** The link with this digest and its client's name, unless it has expired. */
export async function findLinkByHash(
  db: Database,
  hash: string,
  now: Date,
): Promise<(LinkRow & { readonly client: string }) | undefined> {
  return await db
    .selectFrom('handover_links')
    .innerJoin('clients', 'clients.id', 'handover_links.client_id')
    .selectAll('handover_links')
    .select('clients.name as client')
    .where('hash', '=', hash)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** The live containers that a link is about, the oldest first. */
export async function containersOf(
  db: Database,
  { client_id, container_id }: Pick<LinkRow, 'client_id' | 'container_id'>,
  most: number,
): Promise<ContainerWithOperation[]> {
  let query = selectContainers(db)
    .where('containers.client_id', '=', client_id)
    .where('containers.status', 'in', LIVE)
    .orderBy('containers.seq')
    .limit(most);
  if (container_id !== null) query = query.where('containers.id', '=', container_id);
  return await withProofs(db, await query.execute());
}

/** Takes links whose DNS records are due for a check. */
export async function takeDueLinks(
  db: Database,
  { now, most }: { readonly now: Date; readonly most: number },
): Promise<LinkRow[]> {
  // Records are set within days, if at all.
  const pause = sql`case when created_at > ${now}::timestamptz - interval '3 days'
    then interval '5 minutes' else interval '1 hour' end`;
  return await db
    .updateTable('handover_links')
    .set({ next_at: sql<Date>`${now}::timestamptz + ${pause}` })
    .where(sql<boolean>`id in (
      select id from handover_links where complete_at is null and next_at <= ${now} and expires_at > ${now}
      order by next_at limit ${most} for update skip locked)`)
    .returningAll()
    .execute();
}

/** Notes, once, that all records are right; from then on the mail is due. `false`: it was noted before. */
export async function completeLink(db: Database, id: string, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('handover_links')
    .set({
      complete_at: now,
      mail: sql`case when mail = 'waiting' then 'due' else mail end`,
      mail_at: now,
    })
    .where('id', '=', id)
    .where('complete_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** The mails of one client in a day, each to at most ten recipients. */
const MOST_MAILS = 10;

/**
 * Takes one mail that is due, so that no other process sends it. Those beyond a client's mails of the last day wait.
 */
export async function takeMail(db: Database, now: Date): Promise<LinkRow | undefined> {
  return await db.transaction().execute(async (trx) => {
    // Two processes that count at once would together send too many.
    await lockPlaces(trx, ['handover mails']);
    return await trx
      .updateTable('handover_links')
      .set({ mail: 'sending', mail_at: now, mail_attempts: sql`mail_attempts + 1` })
      .where(sql<boolean>`id = (
        select id from handover_links as due where mail = 'due' and mail_at <= ${now} and (
          select count(*) from handover_links as sent
          where sent.client_id = due.client_id and sent.mail in ('sending', 'sent', 'unclear')
            and sent.mail_at > ${now}::timestamptz - interval '1 day') < ${MOST_MAILS}
        order by mail_at limit 1)`)
      .returningAll()
      .executeTakeFirst();
  });
}

/** Records what became of a mail that this process has taken. */
export async function recordMail(
  db: Database,
  id: string,
  outcome: Pick<LinkRow, 'mail' | 'mail_at' | 'mail_error'>,
): Promise<void> {
  await db
    .updateTable('handover_links')
    .set(outcome)
    .where('id', '=', id)
    .where('mail', '=', 'sending')
    .execute();
}

/** Marks mails as `unclear` whose sending began before `before` and was cut short: they may have been sent. */
export async function markUnclear(db: Database, before: Date): Promise<void> {
  await db
    .updateTable('handover_links')
    .set({ mail: 'unclear', mail_error: 'the process ended while it sent the mail' })
    .where('mail', '=', 'sending')
    .where('mail_at', '<', before)
    .execute();
}

export async function pruneLinks(db: Database, before: Date): Promise<void> {
  await db.deleteFrom('handover_links').where('expires_at', '<', before).execute();
}
