import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

/** The number of parts that the objects are divided into, by their names. The migration makes a row for each. */
const PARTS = 16;
/** If a process didn't renew its parts for this long, the others may lease them. */
const LEASE_SECONDS = 15;
/** Processes that were not seen for this long are forgotten. */
const FORGET_SECONDS = 3_600;

/** The part of an object, by `objectId`. */
export const partOf = (id: string): number => Number.parseInt(id.slice(0, 1), 16) % PARTS;

/**
 * Renews this process's parts, and takes or gives back some, so that all living processes have about the same number. Two
 * may have the same part for a moment: that costs time, and no record counts twice. Resolves to the parts.
 */
export async function renewLeases(db: Database, id: string): Promise<ReadonlySet<number>> {
  return await db.transaction().execute(async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtext('tagyard traffic leases'))`.execute(trx);
    await sql`insert into traffic_collectors (id, seen_at) values (${id}, now())
      on conflict (id) do update set seen_at = now()`.execute(trx);
    await sql`delete from traffic_collectors where seen_at < now() - make_interval(secs => ${FORGET_SECONDS})`.execute(
      trx,
    );
    const { rows } = await sql<{ living: number }>`
      select count(*)::integer as living from traffic_collectors
      where seen_at > now() - make_interval(secs => ${LEASE_SECONDS})`.execute(trx);
    const fair = Math.ceil(PARTS / Math.max(1, rows[0]?.living ?? 1));
    const { rows: held } = await sql<{ part: number }>`
      update traffic_leases set holder = ${id}, until = now() + make_interval(secs => ${LEASE_SECONDS})
      where part in (
        select part from traffic_leases where holder = ${id} or holder is null or until < now()
        order by (holder = ${id}) desc nulls last, part limit ${fair})
      returning part`.execute(trx);
    await sql`update traffic_leases set holder = null, until = null
      where holder = ${id} and part not in (
        select value::smallint from jsonb_array_elements_text(${JSON.stringify(held.map(({ part }) => part))}::jsonb))`.execute(
      trx,
    );
    return new Set(held.map(({ part }) => part));
  });
}

/** Gives all parts back at once, when the process ends. */
export async function dropLeases(db: Database, id: string): Promise<void> {
  await sql`update traffic_leases set holder = null, until = null where holder = ${id}`.execute(db);
  await db.deleteFrom('traffic_collectors').where('id', '=', id).execute();
}

/**
 * Notes that everything of these parts that was in the bucket at that time is counted. The time is at most the database's
 * own: the clock of a process may be ahead, and then a period still to come would seem to have no requests.
 */
export async function noteCollected(
  db: Database,
  id: string,
  parts: Iterable<number>,
  at: Date,
): Promise<void> {
  await sql`update traffic_leases set
    collected_until = least(greatest(collected_until, ${at.toISOString()}::timestamptz), now())
    where holder = ${id} and part in (
      select value::smallint from jsonb_array_elements_text(${JSON.stringify([...parts])}::jsonb))`.execute(
    db,
  );
}

/** Everything that was in the bucket at this time is counted; `null`: of some part, nothing is counted yet. */
export async function collectedUntil(db: Database): Promise<Date | null> {
  const { rows } = await sql<{ until: Date | null }>`
    select case when bool_and(collected_until is not null) then min(collected_until) end as until
    from traffic_leases`.execute(db);
  return rows[0]?.until ?? null;
}
