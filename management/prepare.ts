import type { Database } from './db/database.ts';
import { migrate } from './db/migrate.ts';
import { demandNoPool, grantApi, roleOf } from './db/roles.ts';
import type { PortRange } from './ports/pool-range.ts';
import { fitPool } from './ports/ports.repository.ts';
import { deriveStates } from './records/containers.repository.ts';

/**
 * Updates schema, rights and port pool as this release and its settings require. `owner` is the privileged connection,
 * used only here. If one role has all rights, `owner` is `db`.
 */
export async function prepare(
  db: Database,
  owner: Database,
  { host, ports }: { readonly host: string; readonly ports: PortRange },
): Promise<void> {
  await migrate(owner);
  if (owner !== db) {
    await grantApi(owner, await roleOf(db));
    await demandNoPool(db);
  }
  await deriveStates(owner);
  await fitPool(owner, host, ports);
}
