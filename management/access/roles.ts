import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';

/** Every member may `read`; only members with an acting role may `act`. */
export type Purpose = 'read' | 'act';

/** The roles that may change things. Members with any other role may only read. */
const ACTING_ROLES: readonly string[] = ['owner', 'admin'];

/** The roles that may see what a domain's own server proves itself with. */
const TOKEN_ROLES: readonly string[] = [...ACTING_ROLES, 'editor'];

export function maySeeTokens(role: string): boolean {
  return TOKEN_ROLES.includes(role);
}

/** Throws if a member's role isn't sufficient. */
export function demandSufficient(role: string, purpose: Purpose): void {
  if (purpose === 'act' && !ACTING_ROLES.includes(role)) {
    throw new ManagementProblem('forbidden', {
      detail: `the role ${role} may read, but not change anything`,
    });
  }
}

/** Throws if the subject's role isn't sufficient, or `unknown_client` if the subject is not a member. */
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
