import { sql } from 'kysely';
import type { Context } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import { dayAt, daysBefore } from './calendar.ts';
import { collectedUntil } from './leases.ts';
import { lockDeletions, TRAFFIC_SPANS } from './store.ts';

/** Days for which faults are kept. */
const FAULT_DAYS = 30;
/** Rows that one statement deletes. */
const BATCH = 20_000;

/**
 * Notes since when records are known: the time in the key `oldest` if that is earlier, or now if no object was
 * listed and no time is noted. A key is `raw/dt=2026-11-23/2026-11-23T062252.123Z-<id>.ndjson`.
 */
export async function extendCoverage(db: Database, oldest: string | null, now: Date): Promise<void> {
  const [, day, hour, minute] = /\/(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)[^/]*$/.exec(oldest ?? '') ?? [];
  const since = day === undefined ? now.toISOString() : `${day}T${hour}:${minute}:00Z`;
  await sql`update traffic_state set since = ${since}::timestamptz
    where since is null or ${oldest !== null} and since > ${since}::timestamptz`.execute(db);
}

/**
 * Removes sums that are older than the settings allow. For days of which no late object can arrive any more, also
 * removes the notes of what was counted.
 */
export async function pruneTraffic({
  db,
  log,
  settings,
  clock,
}: Pick<Context, 'db' | 'log' | 'settings' | 'clock'>): Promise<void> {
  const { lateDays, minuteHours, hourDays, dayDays } = settings.traffic;
  const now = clock.date().getTime();
  const hourMs = 3_600_000;
  const keep = { 60: minuteHours / 24, 3600: hourDays, 86400: dayDays };
  try {
    for (const [seconds, { table, from }] of Object.entries(TRAFFIC_SPANS)) {
      const days = keep[Number(seconds) as keyof typeof keep]; // the keys of TRAFFIC_SPANS
      if (days === 0) continue;
      const time = new Date(daysBefore(now, days));
      // Removes minutes by whole hours, the rest by whole days, so that no hour or day is removed in part.
      const until =
        seconds === '60' ? Math.floor(time.getTime() / hourMs) * hourMs : Date.parse(dayAt(time.getTime()));
      await pruneSums(db, { table, from, until: new Date(until).toISOString() });
    }
    const collected = (await collectedUntil(db))?.getTime() ?? now;
    const first = dayAt(daysBefore(Math.min(now, collected), lateDays));
    await db.transaction().execute(async (trx) => {
      // Waits for transactions that are counting. From then on no record of a day before `first` is counted, so notes
      // of those days can be removed.
      await lockDeletions(trx);
      await sql`update traffic_state set notes_from = greatest(notes_from, ${first}::date)`.execute(trx);
    });
    for (const table of ['traffic_objects', 'traffic_batches']) {
      await deleteRows(db, table, sql`day < (select notes_from from traffic_state)`);
    }
    await sql`delete from traffic_faults where at < now() - make_interval(days => ${FAULT_DAYS})`.execute(db);
  } catch (err) {
    log.error({ err }, 'old traffic can’t be deleted');
  }
}

async function pruneSums(
  db: Database,
  { table, from, until }: { readonly table: string; readonly from: string; readonly until: string },
): Promise<void> {
  // First, so that no reader takes a removed row for a time without requests.
  await sql`update traffic_state set ${sql.ref(from)} = greatest(${sql.ref(from)}, ${until}::timestamptz)`.execute(
    db,
  );
  await deleteRows(db, table, sql`time < ${until}::timestamptz`);
}

async function deleteRows(db: Database, table: string, condition: ReturnType<typeof sql>): Promise<void> {
  for (let deleted = BATCH; deleted === BATCH; ) {
    const { numAffectedRows = 0n } = await sql`delete from ${sql.table(table)}
      where ctid in (select ctid from ${sql.table(table)} where ${condition} limit ${BATCH})`.execute(db);
    deleted = Number(numAffectedRows);
  }
}
