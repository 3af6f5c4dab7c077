import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { isAtLeast, type Role } from '../lifecycle/roles.ts';
import { roleInClient } from '../records/memberships.repository.ts';

/**
 * What a caller wants to do with a client or what belongs to it. `read`: every member. `edit`: settings, features,
 * options of domains, configuration, consent. `act`: create, remove, verify, suspend, tokens, members, webhooks. `own`:
 * transfer, archive, visitors' profiles, deletion of records, members with the role owner.
 */
export type Purpose = 'read' | 'edit' | 'act' | 'own';

/** The weakest role that is sufficient for each purpose. */
export const WEAKEST: Readonly<Record<Purpose, Role>> = {
  read: 'viewer',
  edit: 'editor',
  act: 'admin',
  own: 'owner',
};

/**
 * What a route demands. `operate`: the caller is one of `SUPER_ADMINS`. `self`: nothing, but the answer has only what
 * the caller may see.
 */
export type Access = Purpose | 'operate' | 'self';

export const isPurpose = (access: Access): access is Purpose => access in WEAKEST;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Every route behind the token check has it. */
    access?: Access;
    /** Operators may use the route without a role. */
    operators?: true;
  }
}

/** Whether the role may see the forwarder tokens, by which domains' own servers prove themselves. */
export function maySeeTokens(role: Role): boolean {
  return isAtLeast(role, 'editor');
}

/** Throws if a member's role isn't sufficient. */
export function demandSufficient(role: Role, purpose: Purpose): void {
  const weakest = WEAKEST[purpose];
  if (isAtLeast(role, weakest)) return;
  throw new ManagementProblem('forbidden', {
    detail: `the role ${role} is not sufficient; this needs the role ${weakest}`,
  });
}

/**
 * The subject's strongest role in the client, its organisation's included. Throws if it isn't sufficient, or
 * `unknown_client` if the subject has none.
 */
export async function demandRole(
  db: Database,
  client: string,
  subject: string,
  purpose: Purpose,
): Promise<Role> {
  const role = await roleInClient(db, client, subject);
  if (role === null) throw new ManagementProblem('unknown_client');
  demandSufficient(role, purpose);
  return role;
}
