import { randomUUID } from 'node:crypto';
import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';

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

async function putMember(db: Database, client: string, { subject, role }: Member): Promise<void> {
  await db
    .insertInto('client_memberships')
    .values({ client_id: client, subject, role })
    .onConflict((conflict) => conflict.columns(['client_id', 'subject']).doUpdateSet({ role }))
    .execute();
}

/** Gives a subject a role. Throws `last_owner` if the client would lose its last owner. */
export async function changeMember(db: Database, client: string, member: Member): Promise<void> {
  await db.transaction().execute(async (trx) => {
    if (member.role !== 'owner') await demandOtherOwner(trx, client, member.subject);
    await putMember(trx, client, member);
  });
}

/** Resolves to `false` if the subject was not a member. Throws `last_owner`. */
export async function removeMember(db: Database, client: string, subject: string): Promise<boolean> {
  return await db.transaction().execute(async (trx) => {
    await demandOtherOwner(trx, client, subject);
    const { numDeletedRows } = await trx
      .deleteFrom('client_memberships')
      .where('client_id', '=', client)
      .where('subject', '=', subject)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  });
}

/** Throws `last_owner`. Locks the client's owners, so that concurrent requests can't remove the last two at once. */
async function demandOtherOwner(trx: Database, client: string, subject: string): Promise<void> {
  const owners = await trx
    .selectFrom('client_memberships')
    .select('subject')
    .where('client_id', '=', client)
    .where('role', '=', 'owner')
    .orderBy('subject')
    .forUpdate()
    .execute();
  if (owners.length === 1 && owners[0]?.subject === subject) throw new ManagementProblem('last_owner');
}
