import { counted } from '../../base/text.ts';
import type { Settings } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { countCurrentContainers } from '../records/containers.repository.ts';
import { demandPlaces, holdPlaces, type Places } from '../records/places.repository.ts';

/**
 * Throws `limit_reached` unless the client may have these containers, too. Call it in the transaction that makes them.
 */
export async function demandQuota(
  trx: Database,
  settings: Pick<Settings, 'quotas'>,
  client: string,
  containers: readonly string[],
): Promise<void> {
  const places = placesFor(settings, client);
  if (places !== null) await demandPlaces(trx, places, containers);
}

/** Like `demandQuota`, for containers that a commit gives the client: until `releasePlaces`, they count as its own. */
export async function holdQuota(
  db: Database,
  settings: Pick<Settings, 'quotas'>,
  client: string,
  { change, containers }: { readonly change: string; readonly containers: readonly string[] },
): Promise<void> {
  const places = placesFor(settings, client);
  if (places === null) return;
  await db.transaction().execute(async (trx) => {
    await demandPlaces(trx, places, containers);
    await holdPlaces(trx, change, [places.of], containers);
  });
}

/** `null`: there is no limit. */
function placesFor({ quotas }: Pick<Settings, 'quotas'>, client: string): Places | null {
  const most = quotas.containers;
  if (most === null) return null;
  return {
    of: `containers of ${client}`,
    most,
    count: (trx, besides) => countCurrentContainers(trx, client, besides),
    refusal: () =>
      new ManagementProblem('limit_reached', {
        detail: `a client has at most ${counted(most, 'container')}`,
      }),
  };
}
