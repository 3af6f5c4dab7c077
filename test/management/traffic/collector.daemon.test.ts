import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../base/clock.ts';
import type { ConnectedDatabase } from '../../../management/db/connected.ts';
import { Collector } from '../../../management/traffic/collector.ts';
import { continueDeletions, demandDeletion, listDeletions } from '../../../management/traffic/deletions.ts';
import { collectedUntil } from '../../../management/traffic/leases.ts';
import { TOTAL } from '../../../management/traffic/object-set.ts';
import { pruneTraffic } from '../../../management/traffic/retention.ts';
import { eventually } from '../../support/eventually.ts';
import { migratedDatabase } from '../../support/management/embedded.ts';
import { TRAFFIC } from '../../support/management/world.ts';
import { cloudflareBucket, type TestBucket } from '../../support/traffic/buckets.ts';
import { collectorParts } from '../../support/traffic/collector.ts';
import { batchOf, deliver, keyAt, ndjson, recordAt } from '../../support/traffic/records.ts';

const SHOP = crypto.randomUUID();
const OTHER = crypto.randomUUID();
const now = new Date();
const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000).toISOString();
const daysAgo = (days: number) => ago(days * 1_440);

let bucket: TestBucket;
let db: ConnectedDatabase;
beforeAll(async () => {
  [bucket, db] = await Promise.all([cloudflareBucket(), migratedDatabase()]);
});
afterAll(async () => {
  await bucket.close();
  await db.destroy();
});
afterEach(async () => {
  await sql`truncate traffic_objects, traffic_batches, traffic_faults, traffic_minutes, traffic_hours, traffic_days,
    traffic_deletions`.execute(db);
  await sql`update traffic_state set since = null, minutes_from = null, hours_from = null, days_from = null,
    notes_from = null`.execute(db);
  await sql`update traffic_leases set collected_until = null`.execute(db);
  for await (const { key } of bucket.objects.list('')) await bucket.objects.remove(key);
});

const parts = () => collectorParts(db, bucket.objects);
/** A process that has just been started. No other process leases a part of the objects. */
async function started(): Promise<Collector> {
  await db.updateTable('traffic_leases').set({ holder: null, until: null }).execute();
  await db.deleteFrom('traffic_collectors').execute();
  return new Collector(parts());
}
const collect = async () => (await started()).collect();

async function requests(
  container: string,
  table: 'traffic_minutes' | 'traffic_hours' | 'traffic_days' = 'traffic_days',
  name = 'n',
): Promise<number> {
  const rows = await db.selectFrom(table).select('counts').where('container', '=', container).execute();
  return rows.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);
}

const some = (count: number, time = ago(2), container = SHOP) =>
  Array.from({ length: count }, () => recordAt(time, { container }));

describe('the collector', () => {
  test('never counts a time in the future as collected, even if its clock was ahead', async () => {
    const ahead = { ...systemClock, date: () => new Date(Date.now() + 86_400_000) };
    await db.updateTable('traffic_leases').set({ holder: null, until: null }).execute();
    await db.deleteFrom('traffic_collectors').execute();
    await new Collector({ ...parts(), clock: ahead }).collect();
    expect((await collectedUntil(db))?.getTime()).toBeLessThanOrEqual(Date.now());
    // A time in the future that an earlier version has noted is corrected.
    await sql`update traffic_leases set collected_until = now() + interval '1 day'`.execute(db);
    await collect();
    expect((await collectedUntil(db))?.getTime()).toBeLessThanOrEqual(Date.now());
  });

  test('counts the records of each container by minute, hour and day, and all together', async () => {
    await deliver(bucket.objects, batchOf([...some(3), ...some(2, ago(2), OTHER), ...some(1, ago(2))]));
    await deliver(
      bucket.objects,
      batchOf([recordAt(ago(1)), recordAt(ago(1), { status: 404, error: 'unknown_host' })]),
    );
    await collect();
    for (const table of ['traffic_minutes', 'traffic_hours', 'traffic_days'] as const) {
      expect([
        await requests(SHOP, table),
        await requests(OTHER, table),
        await requests(TOTAL, table),
      ]).toEqual([4, 2, 8]);
    }
    expect(await requests(TOTAL, 'traffic_days', 'e')).toBe(16);
    expect(await requests(TOTAL, 'traffic_days', 'o')).toBe(800);
    expect(await requests(TOTAL, 'traffic_days', 's:4')).toBe(1);
    expect((await collectedUntil(db))?.getTime()).toBeGreaterThanOrEqual(now.getTime());
  });

  test('counts a batch once, whatever object it is in, in whatever order the objects come', async () => {
    const [one, two] = [batchOf(some(5)), batchOf(some(7))];
    const key = await deliver(bucket.objects, [...two, ...one]);
    await deliver(bucket.objects, one);
    await collect();
    expect(await requests(SHOP)).toBe(12);
    await deliver(bucket.objects, [...one, ...two.toReversed()]);
    await deliver(bucket.objects, two, keyAt(ago(30)));
    await deliver(bucket.objects, [...two, ...one], key);
    await collect();
    expect([await requests(SHOP), await requests(TOTAL)]).toEqual([12, 12]);
  });

  test('counts what a torn copy lacks when a whole one comes, and names what is no record', async () => {
    const batch = batchOf(some(60));
    const whole = ndjson(batch);
    const torn = keyAt(ago(2));
    await bucket.objects.write(torn, Buffer.from(whole.slice(0, whole.length / 2)));
    await collect();
    const half = await requests(SHOP);
    expect(half).toBeGreaterThan(20);
    expect(half).toBeLessThan(40);
    await deliver(bucket.objects, batch);
    const foreign = keyAt(ago(2));
    // The database would refuse the last two, and with them all lines of the set.
    const lines = [
      '[1]',
      '{"time":"yesterday"}',
      '{"half',
      JSON.stringify(recordAt(daysAgo(1))),
      JSON.stringify({ ...recordAt(ago(2)), time: `${ago(2).slice(0, 10)}T25:61:00Z` }),
      JSON.stringify({ ...recordAt(ago(2)), route: '/\u0000' }),
    ];
    await bucket.objects.write(foreign, Buffer.from(`${lines.join('\n')}\n\n${ndjson(some(1))}`));
    await bucket.objects.write(`raw/dt=${ago(2).slice(0, 10)}/notes.txt`, Buffer.from('hello'));
    await collect();
    expect(await requests(SHOP)).toBe(61);
    const faults = await db.selectFrom('traffic_faults').select(['key', 'kind', 'lines']).execute();
    expect(new Set(faults)).toEqual(
      new Set([
        { key: torn, kind: 'torn', lines: 1 },
        { key: foreign, kind: 'foreign', lines: 4 },
        { key: foreign, kind: 'unreadable', lines: 1 },
        { key: foreign, kind: 'misplaced', lines: 1 },
        { key: `raw/dt=${ago(2).slice(0, 10)}/notes.txt`, kind: 'object', lines: 0 },
      ]),
    );
  });

  test('counts records of older releases once, by their object and line', async () => {
    const old = some(3).map(({ bytesIn, bytesOut, bot, consent, events, probe, ...rest }) => rest);
    const key = await deliver(bucket.objects, old);
    await collect();
    await deliver(bucket.objects, [...old, ...some(1)], key);
    await collect();
    expect(await requests(SHOP)).toBe(4);
  });

  test('finds late objects as far back as `lateDays`, and none of earlier days', async () => {
    await collect();
    await deliver(bucket.objects, batchOf(some(4, daysAgo(TRAFFIC.lateDays))));
    await deliver(bucket.objects, batchOf(some(8, daysAgo(TRAFFIC.lateDays + 1))));
    await collect();
    expect(await requests(SHOP)).toBe(4);
  });

  test('finds new objects by itself while it runs, and counts none twice', async () => {
    const stopping = new AbortController();
    const running = (await started()).run(stopping.signal);
    for (const sum of [3, 6, 9]) {
      await deliver(bucket.objects, batchOf(some(3, new Date().toISOString())));
      await eventually(async () => expect(await requests(SHOP)).toBe(sum));
    }
    stopping.abort();
    await running;
    const leases = await db.selectFrom('traffic_leases').select('holder').execute();
    expect(leases.filter(({ holder }) => holder !== null)).toEqual([]);
  });
});

describe('retention', () => {
  test('removes sums by their age, says from when on they are whole, and adds nothing before that', async () => {
    const settings = {
      ...parts().settings,
      traffic: { ...TRAFFIC, minuteHours: 24, hourDays: 2, dayDays: 4 },
    };
    for (const day of [0, 1.5, 3, 5]) await deliver(bucket.objects, batchOf(some(1, daysAgo(day))));
    await collect();
    expect(await requests(SHOP, 'traffic_minutes')).toBe(4);
    await pruneTraffic({ ...parts(), settings });
    const kept = async () => [
      await requests(SHOP, 'traffic_minutes'),
      await requests(SHOP, 'traffic_hours'),
      await requests(SHOP, 'traffic_days'),
    ];
    expect(await kept()).toEqual([1, 2, 3]);
    await deliver(bucket.objects, batchOf(some(1, daysAgo(3.1))));
    await collect();
    expect(await kept()).toEqual([1, 2, 4]);
  });

  test('forgets what was counted, but only when no late copy can come any more', async () => {
    const old = daysAgo(TRAFFIC.lateDays);
    await deliver(bucket.objects, batchOf(some(1, old)));
    await deliver(bucket.objects, batchOf(some(1)));
    await collect();
    const days = async () =>
      (await db.selectFrom('traffic_batches').select('day').execute()).length +
      (await db.selectFrom('traffic_objects').select('day').execute()).length;
    await pruneTraffic(parts());
    expect(await days()).toBe(4);
    await pruneTraffic({
      ...parts(),
      settings: { ...parts().settings, traffic: { ...TRAFFIC, lateDays: 3 } },
    });
    expect(await days()).toBe(2);
  });
});

test('with a larger `lateDays`, no object is counted again whose notes have been deleted', async () => {
  await deliver(bucket.objects, batchOf(some(3, daysAgo(5))));
  await deliver(bucket.objects, batchOf(some(2)));
  await collect();
  const settings = (lateDays: number) => ({ ...parts().settings, traffic: { ...TRAFFIC, lateDays } });
  await pruneTraffic({ ...parts(), settings: settings(3) });
  await deliver(bucket.objects, batchOf(some(1, daysAgo(5))));
  await collect();
  expect([await requests(SHOP), await requests(TOTAL)]).toEqual([5, 5]);
  // The notes of later days are complete, so late objects of these days are still found.
  await deliver(bucket.objects, batchOf(some(4, daysAgo(3))));
  await collect();
  expect(await requests(SHOP)).toBe(9);
});

test('a collector that is killed in its first backlog has noted since when there are records', async () => {
  const oldest = daysAgo(3);
  await deliver(bucket.objects, batchOf(some(1, oldest)));
  await deliver(bucket.objects, batchOf(some(1, daysAgo(1))));
  const since = async () =>
    (await db.selectFrom('traffic_state').select('since').executeTakeFirstOrThrow()).since?.toISOString();
  // The newest days come first. The collector is killed when the oldest day is counted, before the poll has ended.
  const killed = new Error('killed');
  const { objects } = bucket;
  const list = async function* (...given: Parameters<typeof objects.list>) {
    yield* objects.list(...given);
    if (given[0] === `raw/dt=${daysAgo(4).slice(0, 10)}/`) throw killed;
  };
  await started();
  const first = new Collector({ ...parts(), rawObjects: { ...objects, list } });
  await expect(first.collect()).rejects.toBe(killed);
  expect(await requests(SHOP)).toBe(2);
  await collect();
  expect(await since()).toBe(`${oldest.slice(0, 16)}:00.000Z`);
});

describe('deletion', () => {
  test('is repeated where a queue delivers the same object again, and counts nothing twice', async () => {
    const mixed = batchOf([...some(2), ...some(3, ago(2), OTHER)]);
    const key = await deliver(bucket.objects, mixed);
    let elapsed = 0;
    const stop = new AbortController();
    const clock = { ...parts().clock, now: () => systemClock.now() + elapsed };
    await started();
    const collector = new Collector({ ...parts(), clock });
    await collector.collect();
    await demandDeletion(db, { containers: [SHOP], by: 'owner', at: new Date() });
    await continueDeletions(parts(), stop.signal);
    await collector.collect();
    expect(String(await bucket.objects.read(key))).not.toContain(SHOP);
    await deliver(bucket.objects, mixed, key);
    await collector.collect();
    // All keys of today are read again every ten minutes.
    elapsed = 601_000;
    await collector.collect();
    expect(String(await bucket.objects.read(key))).not.toContain(SHOP);
    expect([await requests(SHOP), await requests(OTHER), await requests(TOTAL)]).toEqual([0, 3, 3]);
  });

  test('removes a container’s records from the sums and from the bucket, also late ones, and nothing else', async () => {
    const mixed = batchOf([...some(2), ...some(3, ago(2), OTHER)]);
    const key = await deliver(bucket.objects, mixed);
    const old = await deliver(bucket.objects, some(2, daysAgo(20)));
    await collect();
    const at = new Date();
    await demandDeletion(db, { containers: [SHOP], by: 'owner', at });
    expect([await requests(SHOP), await requests(OTHER), await requests(TOTAL)]).toEqual([0, 3, 3]);

    const stopping = new AbortController();
    const running = (await started()).run(stopping.signal);
    await eventually(async () => expect((await listDeletions(db, [SHOP]))[0]?.completedAt).not.toBeNull());
    expect(await listDeletions(db, [SHOP])).toMatchObject([
      { objects: 2, records: 4, until: at.toISOString() },
    ]);
    const late = await deliver(bucket.objects, batchOf([...some(1, ago(1)), ...some(1, ago(1), OTHER)]));
    const after = new Date(Date.now() + 60_000).toISOString();
    await deliver(bucket.objects, batchOf(some(1, after)));
    await eventually(async () =>
      expect([await requests(SHOP), await requests(OTHER), await requests(TOTAL)]).toEqual([1, 4, 5]),
    );
    stopping.abort();
    await running;
    for (const one of [key, old, late]) expect(String(await bucket.objects.read(one))).not.toContain(SHOP);
    // Read again from the start, nothing changes.
    await db.deleteFrom('traffic_objects').execute();
    await collect();
    expect([await requests(SHOP), await requests(OTHER), await requests(TOTAL)]).toEqual([1, 4, 5]);
  });
});
