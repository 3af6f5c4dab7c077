import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type RawLogsBucket, startRawLogs } from '../../support/management/raw-logs.ts';
import { World } from '../../support/management/world.ts';
import { batchOf, deliver, recordAt } from '../../support/traffic/records.ts';

let bucket: RawLogsBucket;
let world: World;
/** The key of the object that can't be read now. */
let broken: string | null = null;

beforeAll(async () => {
  bucket = await startRawLogs();
  const { objects } = bucket;
  const read = async (key: string) => {
    if (key === broken) throw new Error('the bucket doesn’t answer');
    return await objects.read(key);
  };
  world = await World.open({ rawObjects: { ...objects, read }, logLevel: 'silent' });
});
afterAll(async () => {
  await world.close();
  await bucket.close();
});

/** All values of the collector, by name with labels. */
async function metrics(): Promise<Record<string, number>> {
  const text = await (await fetch(`${await world.listen()}/metrics`)).text();
  const lines = [...text.matchAll(/^tagyard_traffic_(\S+) (\S+)$/gm)];
  return Object.fromEntries(lines.map(([, name, value]) => [name, Number(value)]));
}

test('the collector’s metrics show its work, its lag, and which parts of the raw logs it has', async () => {
  const time = new Date().toISOString();
  const batches = [1, 2, 3].map(() => batchOf([recordAt(time), recordAt(time)]));
  await deliver(bucket.objects, batches.flat());
  await eventually(async () => expect(await metrics()).toMatchObject({ objects_total: 1, records_total: 6 }));
  await deliver(bucket.objects, batches.slice(1).flat());
  await bucket.objects.write(
    `raw/dt=${time.slice(0, 10)}/${time.slice(0, 15).replace(':', '')}notes.txt`,
    Buffer.from('x'),
  );
  await eventually(async () =>
    expect(await metrics()).toMatchObject({
      objects_total: 2,
      records_total: 6,
      doubled_batches_total: 2,
      refused_objects_total: 1,
      failed_objects_total: 0,
      'parts{holder="this"}': 16,
      'parts{holder="other"}': 0,
      'parts{holder="none"}': 0,
    }),
  );
  broken = `raw/dt=${time.slice(0, 10)}/${time.replaceAll(':', '')}-broken.ndjson`;
  await deliver(bucket.objects, batchOf([recordAt(time)]), broken);
  const before = await eventually(async () => {
    const { failed_objects_total: failed = 0, lag_seconds: lag = 0 } = await metrics();
    expect(failed).toBeGreaterThan(2);
    return lag;
  });
  // No later time is noted as collected as long as one object isn't collected.
  await eventually(async () => expect((await metrics()).lag_seconds).toBeGreaterThan(before + 1));
  broken = null;
  await eventually(async () => {
    const now = await metrics();
    expect(now.records_total).toBe(7);
    expect(now.lag_seconds).toBeLessThan(before + 1);
  });
  const text = await (await fetch(`${await world.listen()}/metrics`)).text();
  const names = new Set([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name]) => name));
  for (const line of text.split('\n').filter((one) => one.startsWith('tagyard_traffic_'))) {
    expect(names).toContain(/^[a-z_]+/.exec(line)?.[0]);
  }
});
