import { demandMayGive } from '../access/tenants.ts';
import { ManagementProblem } from '../http/errors.ts';
import { isAtLeast, type Role, roleFrom } from '../lifecycle/roles.ts';
import type { Member, Tenant } from './tenant-file.ts';

/**
 * The tenant with this member, whose earlier role is replaced. Throws `last_owner`, or `forbidden` if the earlier or
 * the new role is stronger than the caller's.
 */
export function withMember(tenant: Tenant, member: Member, caller: Role): Tenant {
  demandMayGive(caller, member.role);
  return replaced(tenant, member.subject, [member], caller);
}

/**
 * The tenant without the member. Throws `unknown_member`, `last_owner`, or `forbidden` for a role above the caller's.
 */
export function withoutMember(tenant: Tenant, subject: string, caller: Role): Tenant {
  if (!tenant.members.some((member) => member.subject === subject)) {
    throw new ManagementProblem('unknown_member');
  }
  return replaced(tenant, subject, [], caller);
}

function replaced(tenant: Tenant, subject: string, by: readonly Member[], caller: Role): Tenant {
  const before = tenant.members.find((member) => member.subject === subject);
  if (before !== undefined) demandMayGive(caller, before.role);
  const members = [...tenant.members.filter((member) => member.subject !== subject), ...by];
  const hasOwner = (list: readonly Member[]) => list.some(({ role }) => role === 'owner');
  if (hasOwner(tenant.members) && !hasOwner(members)) throw new ManagementProblem('last_owner');
  return { ...tenant, members };
}

/** The tenant with the subject as a member with at least this role. */
export function withRole(tenant: Tenant, subject: string, role: Role): Tenant {
  const before = tenant.members.find((member) => member.subject === subject);
  if (before !== undefined && isAtLeast(roleFrom(before.role), role)) return tenant;
  return { ...tenant, members: [...tenant.members.filter((one) => one !== before), { subject, role }] };
}
