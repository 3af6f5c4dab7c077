import { sql } from 'kysely';
import type { Context } from '../context/context.ts';
import type { Database } from '../db/database.ts';
import type { RawObjects } from '../raw-objects/raw-objects.ts';
import { dayOf, TOTAL } from './object-set.ts';
import { readRecord } from './record.ts';
import {
  deletedContainers,
  forgetObject,
  lockDeletions,
  noteObjects,
  objectId,
  readBefore,
  TRAFFIC_SPANS,
} from './store.ts';

type Parts = Pick<Context, 'db' | 'log'> & { readonly rawObjects: RawObjects };

/** The search records its position each time after this many objects. */
const PER_NOTE = 50;
/** A multiple of `PER_NOTE`. */
const OBJECTS_AT_ONCE = 200;

interface Deletion {
  readonly container: string;
  readonly until: string;
  readonly requestedAt: string;
  readonly objects: number;
  readonly records: number;
  readonly completedAt: string | null;
  readonly logsDeletedAt: string | null;
}

/**
 * Deletes the sums of these containers, also from the totals, and demands that their records in the bucket are deleted.
 * Records of requests after `at` are kept. What the containers have printed until `at` is deleted on their host.
 */
export async function demandDeletion(
  db: Database,
  { containers, by, at }: { readonly containers: readonly string[]; readonly by: string; readonly at: Date },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockDeletions(trx);
    for (const container of containers.toSorted()) {
      await trx
        .insertInto('traffic_deletions')
        .values({ container, until: at, requested_by: by, requested_at: at, objects: 0, records: 0 })
        .onConflict((conflict) =>
          conflict.column('container').doUpdateSet({
            ...{ until: at, requested_by: by, requested_at: at },
            ...{ position: null, objects: 0, records: 0, completed_at: null, logs_deleted_at: null },
          }),
        )
        .execute();
      for (const { table } of Object.values(TRAFFIC_SPANS)) {
        const name = sql.table(table);
        await sql`
          with gone as (delete from ${name} where container = ${container} returning time, probe, counts)
          update ${name} as total set counts = add_counts(total.counts, gone.counts, -1)
          from gone where total.container = ${TOTAL} and total.time = gone.time and total.probe = gone.probe`.execute(
          trx,
        );
      }
    }
  });
}

export async function listDeletions(db: Database, containers: readonly string[]): Promise<Deletion[]> {
  if (containers.length === 0) return [];
  const rows = await db
    .selectFrom('traffic_deletions')
    .selectAll()
    .where('container', 'in', containers)
    .orderBy('container')
    .execute();
  return rows.map((row) => ({
    container: row.container,
    until: row.until.toISOString(),
    requestedAt: row.requested_at.toISOString(),
    objects: row.objects,
    records: row.records,
    completedAt: row.completed_at?.toISOString() ?? null,
    logsDeletedAt: row.logs_deleted_at?.toISOString() ?? null,
  }));
}

/**
 * Searches the bucket for one demanded deletion at a time, and continues where the last call or process ended. A call
 * ends after some objects, so that new objects are counted in between: the search reads the objects of all clients.
 * From each object, the records of all demanded deletions are deleted.
 */
export async function continueDeletions(parts: Parts, signal: AbortSignal): Promise<void> {
  const { db, rawObjects, log } = parts;
  const next = await db
    .selectFrom('traffic_deletions')
    .select(['container', 'until', 'position'])
    .where('completed_at', 'is', null)
    .orderBy('requested_at')
    .limit(1)
    .executeTakeFirst();
  if (next === undefined) return;
  const { container, until } = next;
  const own = (query: ReturnType<typeof sql>) =>
    sql`update traffic_deletions set ${query} where container = ${container} and until = ${until.toISOString()}::timestamptz`.execute(
      db,
    );
  const note = (key: string, objects: number, records: number) =>
    own(sql`position = ${key}, objects = objects + ${objects}, records = records + ${records}`);

  let [seen, objects, records] = [0, 0, 0];
  let isWhole = true;
  let last = next.position ?? undefined;
  for await (const { key } of rawObjects.list('raw/', last)) {
    if (signal.aborted || seen >= OBJECTS_AT_ONCE) {
      isWhole = false;
      break;
    }
    const removed = dayOf(key) === null ? 0 : await rewriteObject(parts, key);
    last = key;
    seen += 1;
    objects += removed > 0 ? 1 : 0;
    records += removed;
    if (seen % PER_NOTE !== 0) continue;
    await note(key, objects, records);
    [objects, records] = [0, 0];
  }
  if (last !== undefined && seen % PER_NOTE !== 0) await note(last, objects, records);
  if (!isWhole) return;
  await own(sql`completed_at = now()`);
  log.info({ container }, 'the records of a container were deleted');
}

/**
 * In an object, empties the lines of deleted records. Empty lines remain, so that the others keep their numbers: by
 * key and line number, records of older releases count only once. Resolves to the number of deleted records.
 */
export async function rewriteObject({ db, rawObjects }: Parts, key: string): Promise<number> {
  const body = await rawObjects.read(key);
  if (body === null) return 0;
  const deleted = await deletedContainers(db);
  let removed = 0;
  const lines = body
    .toString()
    .split('\n')
    .map((line) => {
      const record = readRecord(line);
      if (typeof record === 'string' || record.container === null) return line;
      if (record.time >= (deleted.get(record.container) ?? '')) return line;
      removed += 1;
      return '';
    });
  if (removed === 0) return 0;
  const rewritten = Buffer.from(lines.join('\n'));
  // With its new size it counts as a new object. Its other records are counted already, so it is noted as read.
  const read = await readBefore(db, [objectId({ key, size: body.length })]);
  if (read.size > 0) await noteObjects(db, [{ key, size: rewritten.length }]);
  // A queue may deliver the object again with the deleted records: then it must be read again.
  await forgetObject(db, { key, size: body.length });
  await rawObjects.write(key, rewritten);
  return removed;
}
