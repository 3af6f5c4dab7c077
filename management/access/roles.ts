import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';

/** `read` is for every member, `act` for those whose role may change things. */
export type Purpose = 'read' | 'act';

/** The roles that may change things. Members with any other role may only read. */
const ACTING_ROLES: readonly string[] = ['owner', 'admin'];

/** Throws where a member's role isn't sufficient. */
export function demandSufficient(role: string, purpose: Purpose): void {
  if (purpose === 'act' && !ACTING_ROLES.includes(role)) {
    throw new ManagementProblem('forbidden', {
      detail: `the role ${role} may read, but not change anything`,
    });
  }
}

/** Throws where the subject may not do this. A client that it is not a member of counts as unknown. */
export async function demandRole(
  db: Database,
  client: string,
  subject: string,
  purpose: Purpose,
): Promise<void> {
  const row = await db
    .selectFrom('client_memberships')
    .select('role')
    .where('client_id', '=', client)
    .where('subject', '=', subject)
    .executeTakeFirst();
  if (row === undefined) throw new ManagementProblem('unknown_client');
  demandSufficient(row.role, purpose);
}
