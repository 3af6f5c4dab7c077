import type { Context } from '../context/context.ts';
import { deletedRequests } from './deleted.ts';
import { RequestSearch } from './search/search.ts';

/** The search of this installation; `null`: there are no raw logs to search, or no folder for their cache. */
export function openSearch(context: Context): RequestSearch | null {
  const { db, rawObjects } = context;
  const { searchCache } = context.settings;
  if (rawObjects === null || searchCache === null) return null;
  const deleted = () => deletedRequests(db);
  return new RequestSearch({ ...searchCache, objects: rawObjects, deleted }, context);
}
