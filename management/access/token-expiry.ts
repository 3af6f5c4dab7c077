import { tokenOf } from '../../sites/requests/token-subject.ts';
import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';

/** When the service token of this subject expires. `null`: it never expires, or the subject is a person. */
export async function tokenExpiry(db: Database, subject: string): Promise<Date | null> {
  const id = tokenOf(subject);
  if (id === null) return null;
  const row = await db
    .selectFrom('service_tokens')
    .select('expires_at')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.expires_at ?? null;
}

/** Throws `invalid_request` if `expires` (`null`: never) is after the end of the calling service token. */
export async function demandWithinToken(db: Database, subject: string, expires: Date | null): Promise<void> {
  const end = await tokenExpiry(db, subject);
  if (end === null || (expires !== null && expires <= end)) return;
  const message = `must be at most ${end.toISOString()}, when the calling service token expires`;
  throw new ManagementProblem('invalid_request', { errors: [{ path: 'expiresAt', message }] });
}
