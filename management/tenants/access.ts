import type { Purpose } from '../access/roles.ts';
import { demandRoleIn, type TenantRef } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { Role } from '../lifecycle/roles.ts';
import type { Tenant } from './tenant-file.ts';
import { readTenant } from './tenants.repository.ts';

/** A client or organisation, with the role in which a caller acts on it. */
interface Granted {
  readonly ref: TenantRef;
  readonly tenant: Tenant;
  /** The role in which the caller acts: operators act as owners of every client and organisation. */
  readonly role: Role;
}

/** Throws the problem that the API answers with if the caller's role isn't sufficient. */
export async function demandTenant(
  parts: Pick<Context, 'db' | 'settings'>,
  ref: TenantRef,
  caller: Actor,
  purpose: Purpose,
): Promise<Granted> {
  const role = await demandRoleIn(parts, ref, caller, purpose);
  const tenant = await readTenant(parts.db, ref);
  if (tenant === null) {
    throw new ManagementProblem(ref.kind === 'clients' ? 'unknown_client' : 'unknown_organisation');
  }
  return { ref, tenant, role };
}
