import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

/**
 * A hold that hasn't been released for this long is of a change that has ended: its process died, or doesn't know
 * whether the change was committed. By then, the projection shows it.
 */
const LONGEST_CHANGE = sql`interval '10 minutes'`;

/** What is limited: the things of one kind that one owner has. */
export interface Places {
  /** Such as `tokens of <client>`. */
  readonly of: string;
  readonly most: number;
  /** How many there are besides these. */
  count(trx: Database, besides: readonly string[]): Promise<number>;
  /** The problem to answer with, if there are as many as allowed. */
  refusal(): Error;
}

/**
 * Until the transaction ends, no other one in any process holds these locks: what is counted under them stays so. In
 * sorted order, so that concurrent transactions can't deadlock.
 */
export async function lockPlaces(trx: Database, places: readonly string[]): Promise<void> {
  await sql`select pg_advisory_xact_lock(hash) from (
    select distinct hashtextextended(place, 0) as hash from unnest(${places}::text[]) as place order by hash
  ) as locks`.execute(trx);
}

/** Throws the refusal unless the owner may have these things, too. Make them in the same transaction. */
export async function demandPlaces(
  trx: Database,
  { of: places, most, count, refusal }: Places,
  things: readonly string[],
): Promise<void> {
  await lockPlaces(trx, [places]);
  const held = await trx
    .selectFrom('place_holds')
    .select('thing')
    .where('places', '=', places)
    .where('until', '>', sql<Date>`now()`)
    .execute();
  const wanted = new Set([...held.map(({ thing }) => thing), ...things]);
  if ((await count(trx, [...wanted])) + wanted.size > most) throw refusal();
}

/** Makes a thing in a transaction, or throws the refusal. */
export async function withinPlaces<Made>(
  db: Database,
  places: Places,
  thing: string,
  make: (trx: Database) => Promise<Made>,
): Promise<Made> {
  return await db.transaction().execute(async (trx) => {
    await demandPlaces(trx, places, [thing]);
    return await make(trx);
  });
}

/**
 * For things that only a commit makes: they count as made until `releasePlaces` is called with the change, when the
 * database shows what the commit has made. Call it in the transaction that has counted them.
 */
export async function holdPlaces(
  trx: Database,
  change: string,
  places: readonly string[],
  things: readonly string[],
): Promise<void> {
  const rows = places.flatMap((place) =>
    things.map((thing) => ({ places: place, change, thing, until: sql<Date>`now() + ${LONGEST_CHANGE}` })),
  );
  if (rows.length === 0) return;
  await trx
    .insertInto('place_holds')
    .values(rows)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Ends the holds of a change, and those whose change never reported its end. */
export async function releasePlaces(db: Database, change: string): Promise<void> {
  await db
    .deleteFrom('place_holds')
    .where(({ or, eb }) => or([eb('change', '=', change), eb('until', '<', sql<Date>`now()`)]))
    .execute();
}

/** The condition that a row of a table has none of these ids. */
export const isNoneOf = (ids: readonly string[]) => sql<boolean>`id <> all (${ids}::uuid[])`;
