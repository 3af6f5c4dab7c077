import { isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import { NO_ROOM } from '../lifecycle/host-detail.ts';

/** Who asks for room, and in which request. */
interface Asking {
  readonly subject: string;
  readonly requestId: string;
}

/** Throws `quota_reached` where the zone has no room for another site. */
export function demandRoom(context: Context, asking: Asking): void {
  refuse(context, asking, context.room.full);
}

/** Throws `quota_reached` while the site itself waits for room: a further domain would have to wait, too. */
export function demandPlaced(context: Context, site: string, asking: Asking): void {
  refuse(context, asking, context.room.waiting(site));
}

/** The provider's figures and the operator's settings are for operators only. */
function refuse({ settings, log }: Context, { subject, requestId }: Asking, why: string | null): void {
  if (why === null) return;
  log.warn({ requestId, detail: why }, 'a request is refused, because the zone has no room');
  throw new ManagementProblem('quota_reached', {
    detail: isOperator({ settings }, { subject }) ? why : NO_ROOM,
  });
}
