import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { deletedRecords } from '../records/traffic-deletions.repository.ts';
import {
  dayOf,
  eitherOf,
  type ReadObject,
  type SetSums,
  type Sum,
  sumObjects,
  TOTAL,
  uuidOf,
  widen,
  withQuarter,
} from './object-set.ts';

/** The tables of sums; the first `letters` of `2026-11-23T06:22` name one span. */
export const TRAFFIC_SPANS = {
  60: { table: 'traffic_minutes', letters: 16, from: 'minutes_from' },
  3600: { table: 'traffic_hours', letters: 13, from: 'hours_from' },
  86400: { table: 'traffic_days', letters: 10, from: 'days_from' },
} as const;

/** Seconds. */
type Span = keyof typeof TRAFFIC_SPANS;
export const spanOf = (seconds: number) => TRAFFIC_SPANS[seconds as Span]; // the callers' schemas name the same three

/** The id of an object in the list of objects that were read. An object that has grown since gets another id. */
export const objectId = ({ key, size }: { readonly key: string; readonly size: number }): string =>
  uuidOf(`${size} ${key}`);

/** The name of the lock that all counting transactions hold together, and a deletion alone. */
const DELETIONS = 'tagyard traffic deletions';

/** Waits for the transactions that count. New ones wait for the end of this one, and know what it has done. */
export async function lockDeletions(trx: Database): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext(${DELETIONS}))`.execute(trx);
}

/** The day from which the notes of counted objects and records are kept; empty: all are kept. */
export async function notedFrom(db: Database): Promise<string> {
  const { rows } = await sql<{
    day: string | null;
  }>`select notes_from::text as day from traffic_state`.execute(db);
  return rows[0]?.day ?? '';
}

interface Stored {
  readonly records: number;
  readonly doubledBatches: number;
  readonly faults: SetSums['faults'];
  readonly deletedIn: readonly string[];
}

/**
 * Counts the records of objects, and notes in the same transaction what was counted: both happen or neither. A record
 * that was counted before, by this process or another one, doesn't count again.
 */
export async function storeObjects(db: Database, given: readonly ReadObject[]): Promise<Stored> {
  return await db.transaction().execute(async (trx) => {
    // Either a deletion waits for this transaction, or this transaction waits for it and knows of it.
    await sql`select pg_advisory_xact_lock_shared(hashtext(${DELETIONS}))`.execute(trx);
    const deleted = await deletedContainers(trx);
    const first = await notedFrom(trx);
    // Notes of earlier days may be deleted, so that their objects could count twice: they are omitted.
    const objects = given.filter(({ key }) => (dayOf(key) ?? '') >= first);
    let sums = sumObjects(objects, { counted: new Map(), deleted });
    const counted = await claimRecords(trx, sums);
    if (counted.size > 0) sums = sumObjects(objects, { counted, deleted });
    await addSums(trx, sums.minutes.values());
    await noteVisits(trx, sums.visits);
    // An object with deleted records is read again until those are gone from it.
    await noteObjects(
      trx,
      objects.filter(({ key }) => !sums.deletedIn.includes(key)),
    );
    await noteFaults(trx, sums.faults);
    return sums;
  });
}

/** By container, the time before which its records are deleted (ISO 8601, as in records). */
export async function deletedContainers(db: Database): Promise<Map<string, string>> {
  const deleted = await deletedRecords(db);
  return new Map([...deleted].map(([container, until]) => [container, until.toISOString()]));
}

/**
 * Notes the records as counted. Resolves, by block, to those that were counted before. Of two processes that count
 * copies of one record at once, one waits for the other's end. All processes lock the rows in the same order, so that
 * none deadlocks.
 */
async function claimRecords(db: Database, { blocks }: SetSums): Promise<Map<string, number>> {
  const rows = JSON.stringify([...blocks.values()]);
  const { rows: claimed } = await sql<{ batch: string; block: number }>`
    insert into traffic_batches (batch, block, seen, day)
    select batch, block, seen, day
    from jsonb_to_recordset(${rows}::jsonb) as given(batch uuid, block smallint, seen bigint, day date)
    order by batch, block
    on conflict do nothing returning batch, block`.execute(db);
  if (claimed.length === blocks.size) return new Map();
  const own = new Set(claimed.map(({ batch, block }) => `${batch}:${block}`));
  const others = JSON.stringify([...blocks].filter(([name]) => !own.has(name)).map(([, block]) => block));
  const { rows: counted } = await sql<{ batch: string; block: number; seen: string }>`
    select known.batch, known.block, known.seen::text
    from jsonb_to_recordset(${others}::jsonb) as given(batch uuid, block smallint)
    join traffic_batches as known on known.batch = given.batch and known.block = given.block
    order by known.batch, known.block for update of known`.execute(db);
  const before = new Map(counted.map(({ batch, block, seen }) => [`${batch}:${block}`, Number(seen)]));
  const both = [...before].map(([name, seen]) => ({
    ...blocks.get(name),
    seen: eitherOf(seen, blocks.get(name)?.seen ?? 0),
  }));
  await sql`
    update traffic_batches as known set seen = given.seen
    from jsonb_to_recordset(${JSON.stringify(both)}::jsonb) as given(batch uuid, block smallint, seen bigint)
    where known.batch = given.batch and known.block = given.block and known.seen <> given.seen`.execute(db);
  return before;
}

/** Notes the first visit of each container that had none. */
async function noteVisits(db: Database, visits: SetSums['visits']): Promise<void> {
  const rows = [...visits].map(([id, at]) => ({ id, at }));
  if (rows.length === 0) return;
  await sql`
    with unvisited as (
      select containers.id, given.at
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given(id uuid, at timestamptz)
      join containers on containers.id = given.id and containers.first_visit_at is null
      order by containers.id for no key update of containers
    )
    update containers set first_visit_at = unvisited.at from unvisited where containers.id = unvisited.id`.execute(
    db,
  );
}

async function addSums(db: Database, minutes: Iterable<Sum>): Promise<void> {
  const all = [...minutes];
  if (all.length === 0) return;
  const state = await db.selectFrom('traffic_state').selectAll().executeTakeFirstOrThrow();
  const spans = Object.values(TRAFFIC_SPANS).map(({ table, letters, from }) => {
    const oldest = state[from]?.toISOString().slice(0, 16) ?? '';
    const rows = widen(letters === TRAFFIC_SPANS[3600].letters ? all.map(withQuarter) : all, letters)
      .map(({ container, minute, probe, counts }) => ({
        container,
        time: `${minute}${'T00:00'.slice(letters - 10)}:00Z`,
        probe,
        counts: Object.fromEntries(counts),
      }))
      .filter(({ time }) => time >= oldest);
    return { table, rows };
  });
  // Every process adds to the totals: they come last, so that other processes wait for these rows as briefly as
  // possible.
  for (const isTotal of [false, true]) {
    for (const { table, rows } of spans) {
      const some = rows.filter(({ container }) => (container === TOTAL) === isTotal);
      await addRows(db, table, JSON.stringify(some));
    }
  }
}

async function addRows(db: Database, table: string, rows: string): Promise<void> {
  await sql`
    insert into ${sql.table(table)} as known (container, time, probe, counts)
    select container, time, probe, counts
    from jsonb_to_recordset(${rows}::jsonb) as given(container uuid, time timestamptz, probe boolean, counts jsonb)
    order by container, time, probe
    on conflict (container, time, probe) do update
    set counts = add_counts(known.counts, excluded.counts)`.execute(db);
}

/** Which of these were read. */
export async function readBefore(db: Database, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const { rows } = await sql<{ id: string }>`
    select id from traffic_objects
    where id in (select value::uuid from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`.execute(
    db,
  );
  return new Set(rows.map(({ id }) => id));
}

/** Forgets that an object was read, so that it is read again if it is delivered again. */
export async function forgetObject(db: Database, object: Pick<ReadObject, 'key' | 'size'>): Promise<void> {
  await db.deleteFrom('traffic_objects').where('id', '=', objectId(object)).execute();
}

export async function noteObjects(
  db: Database,
  objects: readonly { readonly key: string; readonly size: number }[],
  day?: string,
): Promise<void> {
  const rows = objects.map((object) => ({ id: objectId(object), day: dayOf(object.key) ?? day }));
  await sql`
    insert into traffic_objects (id, day)
    select id, day from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given(id uuid, day date)
    order by id on conflict do nothing`.execute(db);
}

export async function noteFaults(
  db: Database,
  faults: readonly { readonly key: string; readonly kind: string; readonly lines: number }[],
): Promise<void> {
  for (const { key, kind, lines } of faults) {
    await db
      .insertInto('traffic_faults')
      .values({ key: key.slice(0, 1_024), kind, lines })
      .onConflict((conflict) => conflict.columns(['key', 'kind']).doUpdateSet({ lines }))
      .execute();
  }
}
