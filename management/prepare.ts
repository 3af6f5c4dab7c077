import type { Database } from './db/database.ts';
import { migrate } from './db/migrate.ts';
import { demandNoPool, grantApi, roleOf } from './db/roles.ts';
import type { PortRange } from './ports/pool-range.ts';
import { fitPool } from './ports/ports.repository.ts';

/**
 * Brings schema, rights and port pool to what this release and its settings need. `owner` is the privileged connection,
 * used only here. It is `db` itself where one role does everything.
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
  await fitPool(owner, host, ports);
}
