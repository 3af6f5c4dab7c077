import type { Database } from '../db/database.ts';
import { ProblemError } from '../http/errors.ts';
import { findRole } from '../members/members.repository.ts';

/** The roles that may change things; any other role of a member may look. */
export const ACTING_ROLES: readonly string[] = ['owner', 'admin'];

/** Throws where a member's role doesn't do for what is asked. */
export function judgeRole(role: string, purpose: 'read' | 'act'): void {
  if (purpose === 'act' && !ACTING_ROLES.includes(role)) {
    throw new ProblemError('forbidden', `the role ${role} may look, but not change anything`);
  }
}

/** A client that the caller is no member of is the same as one that doesn't exist. */
export async function demandRole(
  db: Database,
  client: string,
  subject: string,
  purpose: 'read' | 'act',
): Promise<void> {
  const role = await findRole(db, client, subject);
  if (role === null) throw new ProblemError('unknown_client');
  judgeRole(role, purpose);
}
