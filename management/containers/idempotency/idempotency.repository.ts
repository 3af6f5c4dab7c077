import { sql } from 'kysely';
import type { Database } from '../../db/database.ts';

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
