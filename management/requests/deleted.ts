import type { Database } from '../db/database.ts';
import { deletedRecords } from '../records/traffic-deletions.repository.ts';
import type { DeletedRequests } from './rows/filter.ts';

/** By container: the time before which its requests must not be shown, wherever they are still stored. */
export async function deletedRequests(db: Database): Promise<DeletedRequests> {
  const deleted = await deletedRecords(db);
  return new Map([...deleted].map(([container, until]) => [container, until.getTime()]));
}
