import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

export interface IdempotencyKey {
  readonly subject: string;
  readonly key: string;
  /** SHA-256 of the parsed body, hexadecimal. */
  readonly bodyHash: string;
}

/** Returns `false` if the key was used before. Waits for the end of a transaction that has just inserted it. */
export async function takeKey(
  db: Database,
  { subject, key, bodyHash }: IdempotencyKey,
  container: string,
): Promise<boolean> {
  const taken = await db
    .insertInto('idempotency_keys')
    .values({ subject, key, body_hash: bodyHash, container_id: container, answer: null })
    .onConflict((conflict) => conflict.doNothing())
    .returning('key')
    .executeTakeFirst();
  return taken !== undefined;
}

type BegunCreation =
  | { readonly answer: unknown; readonly made: string }
  | { readonly made: string }
  | { readonly refused: 'idempotency_key_reused' | 'request_in_progress' };

/**
 * How long a creation counts as running; no request takes that long. After this time, a repeated request continues it.
 */
const RUNNING = sql<Date>`now() + interval '2 minutes'`;

/**
 * Begins the creation of anything but a container. Continues an earlier attempt if its process died or it ended without
 * a clear result. Resolves to the stored answer, or to the id of the new object. The id is the same in each attempt, so
 * that nothing is created twice.
 */
export async function beginCreation(
  db: Database,
  { subject, key, bodyHash }: IdempotencyKey,
  id: string,
): Promise<BegunCreation> {
  const row = { subject, key, body_hash: bodyHash, container_id: null, answer: null, made: id };
  const taken = await db
    .insertInto('idempotency_keys')
    .values({ ...row, running_until: RUNNING })
    .onConflict((conflict) => conflict.doNothing())
    .returning('key')
    .executeTakeFirst();
  if (taken !== undefined) return { made: id };
  const first = await findKey(db, { subject, key, bodyHash });
  if (first !== undefined && first.body_hash !== bodyHash) {
    return { refused: 'idempotency_key_reused' };
  }
  if (first !== undefined && first.answer !== null) {
    return { answer: first.answer, made: first.made ?? '' };
  }
  const continued = await db
    .updateTable('idempotency_keys')
    .set({ running_until: RUNNING })
    .where('subject', '=', subject)
    .where('key', '=', key)
    .where('answer', 'is', null)
    .where(({ or, eb }) => or([eb('running_until', 'is', null), eb('running_until', '<', sql<Date>`now()`)]))
    .returning('made')
    .executeTakeFirst();
  return continued?.made == null ? { refused: 'request_in_progress' } : { made: continued.made };
}

/** The creation ended without an answer that says what exists: a repeated request continues it at once. */
export async function pauseCreation(
  db: Database,
  { subject, key }: Pick<IdempotencyKey, 'subject' | 'key'>,
): Promise<void> {
  await db
    .updateTable('idempotency_keys')
    .set({ running_until: null })
    .where('subject', '=', subject)
    .where('key', '=', key)
    .execute();
}

/** Nothing was created: the key is free again. */
export async function freeKey(
  db: Database,
  { subject, key }: Pick<IdempotencyKey, 'subject' | 'key'>,
): Promise<void> {
  await db.deleteFrom('idempotency_keys').where('subject', '=', subject).where('key', '=', key).execute();
}

export async function findKey(db: Database, { subject, key }: IdempotencyKey) {
  return await db
    .selectFrom('idempotency_keys')
    .selectAll()
    .where('subject', '=', subject)
    .where('key', '=', key)
    .executeTakeFirst();
}

export async function storeAnswer(
  db: Database,
  { subject, key }: IdempotencyKey,
  answer: unknown,
): Promise<void> {
  await db
    .updateTable('idempotency_keys')
    .set({ answer: JSON.stringify(answer) })
    .where('subject', '=', subject)
    .where('key', '=', key)
    .execute();
}

/** Deletes keys that are older than a day. Skips keys that another process is deleting. */
export async function forgetOldKeys(db: Database): Promise<void> {
  await sql`
    with old as (
      select subject, key from idempotency_keys where created_at < now() - interval '1 day'
      for update skip locked
    )
    delete from idempotency_keys as one using old where one.subject = old.subject and one.key = old.key
  `.execute(db);
}
