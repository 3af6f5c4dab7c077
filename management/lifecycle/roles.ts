/** The roles, the weakest first. Each may do what the ones before it may. */
export const ROLES = ['viewer', 'editor', 'admin', 'owner'] as const;
export type Role = (typeof ROLES)[number];

/** A stored role. Any unknown one, such as the former `reader` and `member`, is a viewer. */
export function roleFrom(stored: string): Role {
  return ROLES.find((role) => role === stored) ?? 'viewer';
}

/** Whether `role` may do all that `other` may. */
export function isAtLeast(role: Role, other: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(other);
}

/** The strongest of a subject's stored roles; `null`: there are none. */
export function strongestRole(stored: readonly string[]): Role | null {
  const roles = stored.map(roleFrom);
  return ROLES.findLast((role) => roles.includes(role)) ?? null;
}
