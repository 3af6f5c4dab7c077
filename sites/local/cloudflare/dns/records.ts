import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { ApiError } from '../api/envelope.ts';
import { newId, transaction, type Zone } from '../api/state.ts';
import { dnsRecord, type EmulatedRecord, identifiedRecordInput, recordInput, recordPatch } from './record.ts';
import { absoluteName, invalidRecord, PROXIABLE, refuseConflict, refuseInvalid } from './rules.ts';

/** Limit of operations in one batch on a free zone. */
const MAX_BATCH = 200;

const batchInput = z.object({
  deletes: z.array(z.object({ id: z.string() })).default([]),
  patches: z.array(z.looseObject({ id: z.string() })).default([]),
  puts: z.array(identifiedRecordInput).default([]),
  posts: z.array(recordInput).default([]),
});

const bodyRow = z.object({ body: z.string() });
const countRow = z.object({ total: z.number() });

interface ZoneRecordsOptions {
  readonly db: DatabaseSync;
  readonly zone: Zone;
  readonly now: () => Date;
  /** Records that the zone can have. */
  readonly limit: number;
}

/** The records of one zone, with the real API's rules for conflicts. */
export function zoneRecords({ db, zone, now, limit }: ZoneRecordsOptions) {
  function all(): EmulatedRecord[] {
    return db
      .prepare('SELECT body FROM records WHERE zone = ? ORDER BY type, name, content')
      .all(zone.id)
      .map((row) => dnsRecord.parse(JSON.parse(bodyRow.parse(row).body)));
  }

  /** One page in the list's default order, without reading the other records. */
  function page(number: number, perPage: number): { records: EmulatedRecord[]; total: number } {
    const records = db
      .prepare('SELECT body FROM records WHERE zone = ? ORDER BY type, name, content LIMIT ? OFFSET ?')
      .all(zone.id, perPage, (number - 1) * perPage)
      .map((row) => dnsRecord.parse(JSON.parse(bodyRow.parse(row).body)));
    return { records, total: count() };
  }

  function count(): number {
    return countRow.parse(db.prepare('SELECT count(*) AS total FROM records WHERE zone = ?').get(zone.id))
      .total;
  }

  /** The records of one name in the list's default order, without reading the others. */
  function named(name: string): EmulatedRecord[] {
    return db
      .prepare('SELECT body FROM records WHERE zone = ? AND name = ? ORDER BY type, name, content')
      .all(zone.id, name)
      .map((row) => dnsRecord.parse(JSON.parse(bodyRow.parse(row).body)));
  }

  function get(id: string): EmulatedRecord {
    const row = db.prepare('SELECT body FROM records WHERE zone = ? AND id = ?').get(zone.id, id);
    if (row === undefined) throw new ApiError('unknownRecord', 'Record does not exist.');
    return dnsRecord.parse(JSON.parse(bodyRow.parse(row).body));
  }

  function write(input: z.infer<typeof recordInput>, id: string, createdOn: string): EmulatedRecord {
    const { comment, priority, data, ...rest } = input;
    const record: EmulatedRecord = {
      ...rest,
      id,
      zone_id: zone.id,
      zone_name: zone.name,
      name: absoluteName(input.name, zone.name),
      // The real API sets the TTL of proxied records to automatic.
      ttl: input.proxied ? 1 : input.ttl,
      proxiable: PROXIABLE.includes(input.type),
      ...(comment ? { comment } : {}),
      ...(priority === undefined ? {} : { priority }),
      ...(data === undefined ? {} : { data }),
      meta: {},
      settings: {},
      created_on: createdOn,
      modified_on: now().toISOString(),
    };
    refuseInvalid(record);
    refuseConflict(
      record,
      named(record.name).filter((other) => other.id !== id),
    );
    db.prepare(
      'INSERT OR REPLACE INTO records (id, zone, name, type, content, body) VALUES (?, ?, ?, ?, ?, ?)',
    ).run(id, zone.id, record.name, record.type, record.content, JSON.stringify(record));
    return record;
  }

  function create(input: unknown): EmulatedRecord {
    const record = parseRecord(recordInput, input);
    refuseAbove(1);
    return write(record, newId(), now().toISOString());
  }

  /** Counting reads the whole zone, so a batch asks once. */
  function refuseAbove(added: number): void {
    if (count() + added > limit) throw new ApiError('recordQuota', 'Record quota exceeded.');
  }

  function replace(id: string, input: unknown): EmulatedRecord {
    return write(parseRecord(recordInput, input), id, get(id).created_on);
  }

  function patch(id: string, input: unknown): EmulatedRecord {
    const current = get(id);
    const changes = parseRecord(recordPatch, input);
    return write(
      parseRecord(recordInput, { ...current, ...definedOnly(input, changes) }),
      id,
      current.created_on,
    );
  }

  function remove(id: string): EmulatedRecord {
    const record = get(id);
    db.prepare('DELETE FROM records WHERE id = ?').run(id);
    return record;
  }

  /** One transaction: deletes, then patches, puts and posts. The first error rolls all of it back. */
  function batch(input: unknown) {
    const { deletes, patches, puts, posts } = parseRecord(batchInput, input);
    if (deletes.length + patches.length + puts.length + posts.length > MAX_BATCH) {
      throw new ApiError('malformedBody', `A batch holds at most ${MAX_BATCH} operations.`);
    }
    return transaction(db, () => {
      const removed = deletes.map(({ id }) => remove(id));
      const patched = patches.map(({ id, ...changes }) => patch(id, changes));
      const replaced = puts.map(({ id, ...record }) => replace(id, record));
      if (posts.length > 0) refuseAbove(posts.length);
      const created = posts.map((record) => write(record, newId(), now().toISOString()));
      return { deletes: removed, patches: patched, puts: replaced, posts: created };
    });
  }

  return { all, page, count, named, get, create, replace, patch, remove, batch };
}

function parseRecord<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw invalidRecord(9207, `${issue?.path.join('.')}: ${issue?.message}`);
}

/** Drops the defaults that a partial schema still fills in: a patch changes only what it names. */
function definedOnly(input: unknown, parsed: object): object {
  const named = new Set(Object.keys(z.looseObject({}).parse(input)));
  return Object.fromEntries(Object.entries(parsed).filter(([key]) => named.has(key)));
}
