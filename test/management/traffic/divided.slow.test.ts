import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ConnectedDatabase } from '../../../management/db/connected.ts';
import { Collector } from '../../../management/traffic/collector.ts';
import { eventually } from '../../support/eventually.ts';
import { migratedDatabase } from '../../support/management/embedded.ts';
import { cloudflareBucket, type TestBucket } from '../../support/traffic/buckets.ts';
import { collectorParts } from '../../support/traffic/collector.ts';
import { batchOf, deliver, recordAt } from '../../support/traffic/records.ts';

const SHOP = crypto.randomUUID();
const OBJECTS = 64;

let bucket: TestBucket;
let db: ConnectedDatabase;
beforeAll(async () => {
  [bucket, db] = await Promise.all([cloudflareBucket(), migratedDatabase()]);
});
afterAll(async () => {
  await bucket.close();
  await db.destroy();
});

async function requests(): Promise<number> {
  const rows = await db.selectFrom('traffic_days').select('counts').where('container', '=', SHOP).execute();
  return rows.reduce((sum, { counts }) => sum + (counts.n ?? 0), 0);
}

test('a collector that starts during a backlog takes over part of it, and no object counts twice', async () => {
  const time = new Date(Date.now() - 120_000).toISOString();
  for (let each = 0; each < OBJECTS; each += 1)
    await deliver(bucket.objects, batchOf([recordAt(time, { container: SHOP })]));
  const { objects } = bucket;
  // Each object is half as large as a set may be, so the backlog takes many sets.
  const list = async function* (...given: Parameters<typeof objects.list>) {
    for await (const { key } of objects.list(...given)) yield { key, size: 4 * 2 ** 20 };
  };
  const gate = Promise.withResolvers<void>();
  const first: string[] = [];
  const second: string[] = [];
  const collector = (reads: string[]) => {
    const read = async (key: string) => {
      reads.push(key);
      if (reads === first) await gate.promise;
      return await objects.read(key);
    };
    return new Collector(collectorParts(db, { ...objects, list, read }));
  };
  const stop = new AbortController();
  const running = collector(first).run(stop.signal);
  await eventually(() => expect(first).not.toHaveLength(0));
  const later = collector(second);
  await eventually(async () => {
    // The second collector gets its parts when the first one renews its own.
    await later.collect();
    expect(second).not.toHaveLength(0);
  });
  gate.resolve();
  await eventually(async () => expect(await requests()).toBe(OBJECTS));
  stop.abort();
  await running;
  expect(new Set([...first, ...second]).size).toBe(OBJECTS);
  // The first one was reading a set of two objects when it gave back parts, so the second one may read these again.
  expect(first.filter((key) => second.includes(key)).length).toBeLessThanOrEqual(2);
}, 60_000);
