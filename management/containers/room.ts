import { ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';

/** A creation doesn't wait longer than this for the provisioner's view of its zone. */
const TIMEOUT_MS = 2_000;

type Asking = Pick<Context, 'provisioner' | 'log'>;

/** Throws `quota_reached` where the zone has no room for another site. */
export async function demandRoom(context: Asking, requestId: string): Promise<void> {
  const full = await asked(context, () => context.provisioner.fullQuota({ requestId }, TIMEOUT_MS));
  if (full !== null) throw new ManagementProblem('quota_reached', { detail: full });
}

/** Throws `quota_reached` while the site itself waits for room: a further domain would lead to nothing. */
export async function demandPlaced(context: Asking, site: string, requestId: string): Promise<void> {
  const status = await asked(context, () => context.provisioner.site(site, { requestId }, TIMEOUT_MS));
  if (status?.reason === 'QuotaReached') {
    throw new ManagementProblem('quota_reached', { detail: status.message });
  }
}

/** `null` without an answer: what the provisioner can't say must not stop the API. Its own attempt shows the quota. */
async function asked<T>({ log }: Asking, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (err) {
    if (!(err instanceof ProvisionerError)) throw err;
    log.warn({ err }, 'the quotas are unknown');
    return null;
  }
}
