import { limit } from '../../../base/limit.ts';
import type { Manifest } from '../../../sites/manifest/schema.ts';
import type { Context } from '../../context/context.ts';
import type { Actor } from '../../db/database.ts';
import { isUnavailable } from '../../db/unavailable.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { ownedContainers, sharedDomains } from '../../records/transfers.repository.ts';
import type { ContainerChange } from '../change.service.ts';
import { planChange } from '../dry-run.ts';

/** Containers that are judged at the same time. */
const AT_ONCE = 8;

interface Transfer {
  readonly from: string;
  readonly to: string;
  readonly caller: Actor;
  readonly requestId: string;
  /** By container, the `If-Match` of its change. */
  readonly ifMatch: Readonly<Record<string, string>>;
}

/** The commit that gives a container to the other client. */
export function transferOf({ to, caller, requestId, ifMatch }: Transfer, id: string): ContainerChange {
  return {
    id,
    caller,
    requestId,
    subject: 'Transfer',
    purpose: 'own',
    ifMatch: ifMatch[id],
    edit: (current: Manifest) => ({ ...current, client: to }),
  };
}

/**
 * By container, why it can't be transferred; the others can. One that stays with the old client holds back those
 * with names in the same registrable domain: they change their client only together.
 */
export async function refusals(
  context: Context,
  transfer: Transfer,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ManagementProblem>> {
  const { db } = context;
  const refused = new Map<string, ManagementProblem>();
  const owned = await ownedContainers(db, transfer.from, ids);
  const atOnce = limit(AT_ONCE);
  const judge = async (id: string) => {
    if (!owned.has(id)) throw new ManagementProblem('unknown_container');
    await planChange(context, transferOf(transfer, id));
  };
  await Promise.all(
    ids.map((id) =>
      atOnce(() => judge(id)).catch((error: unknown) => {
        refused.set(id, transferRefusal(context, { ...transfer, id }, error));
      }),
    ),
  );
  /** The domains that are shared with containers that the request doesn't name; read only if some are shared. */
  let withOthers: Awaited<ReturnType<typeof sharedDomains>> | undefined;
  // Each container that is refused may cause others to be refused.
  for (;;) {
    const rest = ids.filter((id) => !refused.has(id));
    const shared = await sharedDomains(db, transfer.from, rest);
    if (shared.size === 0) return refused;
    withOthers ??= await sharedDomains(db, transfer.from, ids);
    for (const [id, domains] of shared) {
      const others = withOthers.get(id);
      const detail = others
        ? `another container of the client has names in ${others.join(', ')}: transfer them together`
        : `another container with names in ${domains.join(', ')} is refused, and they are transferred only together`;
      refused.set(id, new ManagementProblem('domain_in_use', { detail }));
    }
  }
}

/** The problem to answer for one container. An error that isn't a refusal is logged. */
export function transferRefusal(
  { log }: Pick<Context, 'log'>,
  { id, requestId }: Pick<Transfer, 'requestId'> & { readonly id: string },
  error: unknown,
): ManagementProblem {
  if (error instanceof ManagementProblem) return error;
  log.error({ err: error, container: id, requestId }, 'a container could not be transferred');
  return new ManagementProblem(isUnavailable(error) ? 'database_unavailable' : 'internal', { cause: error });
}
