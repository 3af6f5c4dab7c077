import type { Database } from '../db/database.ts';

/** The containers with records to delete, each with the time before which its records are deleted. */
export async function deletedRecords(db: Database): Promise<ReadonlyMap<string, Date>> {
  const rows = await db.selectFrom('traffic_deletions').select(['container', 'until']).execute();
  return new Map(rows.map(({ container, until }) => [container, until]));
}
