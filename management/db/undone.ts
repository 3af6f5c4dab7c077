import type { Database } from './database.ts';

/** What `act` finds out in a transaction that is rolled back. */
export async function undone<Found>(db: Database, act: (trx: Database) => Promise<Found>): Promise<Found> {
  const trx = await db.startTransaction().execute();
  try {
    return await act(trx);
  } finally {
    await trx.rollback().execute();
  }
}
