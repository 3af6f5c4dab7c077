import { randomUUID } from 'node:crypto';
import type { Database } from '../db/database.ts';

interface Member {
  readonly subject: string;
  readonly role: string;
}

export async function insertClient(db: Database, name: string, members: readonly Member[]): Promise<string> {
  const id = randomUUID();
  await db.transaction().execute(async (trx) => {
    await trx.insertInto('clients').values({ id, name }).execute();
    for (const member of members) await putMember(trx, id, member);
  });
  return id;
}

export async function clientExists(db: Database, id: string): Promise<boolean> {
  return (await db.selectFrom('clients').select('id').where('id', '=', id).executeTakeFirst()) !== undefined;
}

export async function putMember(db: Database, client: string, { subject, role }: Member): Promise<void> {
  await db
    .insertInto('client_memberships')
    .values({ client_id: client, subject, role })
    .onConflict((conflict) => conflict.columns(['client_id', 'subject']).doUpdateSet({ role }))
    .execute();
}

/** `false`: the subject was not a member. */
export async function removeMember(db: Database, client: string, subject: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('client_memberships')
    .where('client_id', '=', client)
    .where('subject', '=', subject)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}
