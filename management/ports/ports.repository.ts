import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { PortRange } from './pool-range.ts';

export interface PortPair {
  readonly processing: number;
  readonly preview: number;
}

/**
 * Fits the pool to the range, in pairs of neighbours: adds missing pairs that overlap no existing one, and deletes free
 * pairs outside the range. Leased pairs stay, even outside. Needs the privileged role, the only one with rights on the
 * table; everything else calls the functions that this role owns.
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

/** Leases the lowest free pair. `null`: there is none, or the container has one already. */
export async function leasePorts(db: Database, host: string, container: string): Promise<PortPair | null> {
  const { rows } = await sql<PortPair>`select * from lease_ports(${host}, ${container})`.execute(db);
  return rows[0] ?? null;
}

/**
 * Leases exactly the ports that a manifest names, and releases any others of the container. `false`: another container
 * holds one of them, and nothing changed. Ports outside the pool are not leased.
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

/** The database refuses this while the container is live. */
export async function releasePorts(db: Database, container: string): Promise<void> {
  await sql`select release_ports(${container})`.execute(db);
}

export async function countFreePorts(db: Database): Promise<number> {
  const { rows } = await sql<{ free: number }>`select count_free_ports() as free`.execute(db);
  return rows[0]?.free ?? 0;
}
