import type { Actor, Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { Role } from '../lifecycle/roles.ts';
import {
  type ContainerWithOperation,
  findContainer,
  findContainerFor,
} from '../records/containers.repository.ts';
import { demandSufficient, type Purpose } from './roles.ts';
import { isOperator } from './tenants.ts';

/** The container, with the caller's role. Throws a `ManagementProblem` unless the role is sufficient for `purpose`. */
export async function demandContainer(
  db: Database,
  id: string,
  caller: Actor,
  purpose: Purpose,
): Promise<ContainerWithOperation & { readonly role: Role }> {
  const found = await findContainerFor(db, id, caller.subject);
  if (found === null) throw new ManagementProblem('unknown_container');
  demandSufficient(found.role, purpose);
  return { ...found.container, role: found.role };
}

/** The container, for an operator, who needs no membership. Throws `unknown_container`. */
export async function demandAnyContainer(db: Database, id: string): Promise<ContainerWithOperation> {
  const container = await findContainer(db, id);
  if (container === undefined) throw new ManagementProblem('unknown_container');
  return container;
}

/** Like `demandContainer`; an operator needs no membership. */
export async function demandContainerOrOperator(
  parts: Parameters<typeof isOperator>[0] & { readonly db: Database },
  id: string,
  caller: Actor,
  purpose: Purpose,
): Promise<ContainerWithOperation> {
  if (isOperator(parts, caller)) return await demandAnyContainer(parts.db, id);
  return await demandContainer(parts.db, id, caller, purpose);
}
