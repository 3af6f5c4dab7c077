import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { PortRange } from './pool-range.ts';

export interface PortPair {
  readonly processing: number;
  readonly preview: number;
}

/**
 * For the privileged role, which alone may touch the table; all else goes through functions that it owns.
 * Makes the pool what the range says, in pairs of neighbours: adds what is missing and doesn't overlap a pair that is
 * there, takes out what is outside and free. Leased pairs stay whatever the range says.
 */
export async function fitPool(db: Database, host: string, { first, last }: PortRange): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await trx
      .deleteFrom('port_pool')
      .where('host', '=', host)
      .where('leased_by', 'is', null)
      .where((where) => where.or([where('processing', '<', first), where('preview', '>', last)]))
      .execute();
    await sql`
      insert into port_pool (host, processing, preview)
      select ${host}, port, port + 1
      from generate_series(${first}::integer, ${last}::integer - 1, 2) as port
      where not exists (
        select from port_pool as pair
        where pair.host = ${host}
          and (pair.processing in (port, port + 1) or pair.preview in (port, port + 1))
      )
      on conflict do nothing`.execute(trx);
  });
}

/** Leases the lowest free pair; `null` where there is none, or where the container has one already. */
export async function leasePorts(db: Database, host: string, container: string): Promise<PortPair | null> {
  const { rows } = await sql<PortPair>`select * from lease_ports(${host}, ${container})`.execute(db);
  return rows[0] ?? null;
}

/**
 * Leases the very ports that a manifest names, and gives up any others of the container. `false`, and nothing
 * changed, where somebody else holds one of them. Ports outside the pool are nobody's to lease.
 */
export async function holdPorts(
  db: Database,
  host: string,
  container: string,
  { processing, preview }: PortPair,
): Promise<boolean> {
  const { rows } = await sql<{ held: boolean }>`
    select hold_ports(${host}, ${container}, array[${processing}::integer, ${preview}::integer]) as held`.execute(
    db,
  );
  return rows[0]?.held ?? false;
}

/** Refused by the database while the container's status says that it stands. */
export async function releasePorts(db: Database, container: string): Promise<void> {
  await sql`select release_ports(${container})`.execute(db);
}

export async function countFreePorts(db: Database): Promise<number> {
  const { rows } = await sql<{ free: number }>`select count_free_ports() as free`.execute(db);
  return rows[0]?.free ?? 0;
}
