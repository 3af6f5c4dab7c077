import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectEmbedded } from '../../../management/db/connect.ts';
import type { Database } from '../../../management/db/database.ts';
import { migrate } from '../../../management/db/migrate.ts';
import { prepare } from '../../../management/prepare.ts';
import { TOTAL } from '../../../management/traffic/object-set.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { PostgresqlFixture } from '../../support/management/postgresql.ts';
import { s3Bucket, type TestBucket } from '../../support/traffic/buckets.ts';
import { batchOf, deliver, keyAt, recordAt } from '../../support/traffic/records.ts';

const MAIN = fileURLToPath(new URL('../../support/traffic/collector-main.ts', import.meta.url));
const DAY_MS = 86_400_000;
const SHOPS = [crypto.randomUUID(), crypto.randomUUID()];

describeWith(['postgresql', 'versitygw'], 'collectors that are killed', () => {
  let postgresql: PostgresqlFixture;
  let bucket: TestBucket;
  const children: ChildProcess[] = [];
  beforeAll(async () => {
    [postgresql, bucket] = await Promise.all([PostgresqlFixture.start(), s3Bucket()]);
  });
  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await bucket?.close();
    await postgresql?.stop();
  });

  function start(database: string, options: { end: number | null; once: boolean }): ChildProcess {
    const given = { database, bucket: bucket.settings, ...options };
    const child = fork(MAIN, [JSON.stringify(given)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: [],
    });
    children.push(child);
    return child;
  }

  /** Runs a process until it has collected all, or has killed itself. */
  async function run(database: string, end: number | null): Promise<'killed' | number> {
    const child = start(database, { end, once: true });
    const said = once(child, 'message').then(([message]) => Number(message.passed));
    const [, signal] = await once(child, 'exit');
    return signal === 'SIGKILL' ? 'killed' : await said;
  }

  /** Deliveries of three days, some of them twice and in pieces. Resolves to the number of records. */
  async function fill(): Promise<number> {
    let records = 0;
    for (const day of [0, 1, 2]) {
      const time = new Date(Date.now() - day * DAY_MS).toISOString();
      const batches = Array.from({ length: 4 }, (_, index) =>
        batchOf(
          Array.from({ length: 50 }, (_, place) => recordAt(time, { container: SHOPS[(index + place) % 2] })),
        ),
      );
      records += batches.flat().length;
      for (const batch of batches) await deliver(bucket.objects, batch, keyAt(time));
      await deliver(bucket.objects, batches.slice(0, 2).flat(), keyAt(time));
      await deliver(bucket.objects, batches[3]?.slice(10, 20) ?? [], keyAt(time));
    }
    return records;
  }

  async function sums(db: Database): Promise<Record<string, number>> {
    const result: Record<string, number> = {};
    for (const table of ['traffic_minutes', 'traffic_hours', 'traffic_days'] as const) {
      for (const [name, container] of Object.entries({ total: TOTAL, one: SHOPS[0], other: SHOPS[1] })) {
        const rows = await db
          .selectFrom(table)
          .select('counts')
          .where('container', '=', container ?? '')
          .execute();
        result[`${table} ${name}`] = rows.reduce((sum, { counts }) => sum + (counts.n ?? 0), 0);
      }
    }
    return result;
  }

  const expected = (records: number) =>
    Object.fromEntries(
      ['traffic_minutes', 'traffic_hours', 'traffic_days'].flatMap((table) => [
        [`${table} total`, records],
        [`${table} one`, records / 2],
        [`${table} other`, records / 2],
      ]),
    );

  /** Makes the leases end, as they do after fifteen seconds: the killed process has lost its parts. */
  async function expire(db: Database): Promise<void> {
    await sql`update traffic_leases set until = now() - interval '1 s'`.execute(db);
    await sql`update traffic_collectors set seen_at = now() - interval '1 min'`.execute(db);
  }

  test('one after another, each after more reads and writes: the next one continues, and sums are exact', {
    timeout: 300_000,
  }, async () => {
    const { urls, db, owner } = await postgresql.connections();
    await prepare(db, owner, { host: 'tag-1', ports: { first: 20000, last: 20099 } });
    const records = await fill();
    let kills = 0;
    // Each process continues the work of the one before, and is killed after more reads and writes. The last one isn’t.
    for (let end = 1; (await run(urls.api, end)) === 'killed'; end += 2) {
      kills += 1;
      await expire(owner);
    }
    expect(kills).toBeGreaterThan(5);
    expect(await sums(owner)).toEqual(expected(records));
    await expire(owner);
    await run(urls.api, null);
    expect(await sums(owner)).toEqual(expected(records));
    await db.destroy();
    await owner.destroy();
  });

  test('while two divide the objects: the other one takes over the parts when the killed one’s leases end', {
    timeout: 120_000,
  }, async () => {
    const { urls, db, owner } = await postgresql.connections();
    await prepare(db, owner, { host: 'tag-1', ports: { first: 20000, last: 20099 } });
    const [one, other] = [
      start(urls.api, { end: null, once: false }),
      start(urls.api, { end: null, once: false }),
    ];
    await eventually(async () => {
      const { rows } = await sql`select holder from traffic_leases where holder is not null
        group by holder having count(*) = 8`.execute(owner);
      expect(rows).toHaveLength(2);
    });
    const known = await fill();
    one.kill('SIGKILL');
    const later = await fill();
    // The objects of the test before are in the bucket as well.
    const all = known + later + 600;
    await eventually(async () => expect((await sums(owner))['traffic_days total']).toBe(all), {
      timeoutMs: 60_000,
    });
    expect(await sums(owner)).toEqual(expected(all));
    other.kill('SIGKILL');
    await db.destroy();
    await owner.destroy();
  });

  test('on the embedded database: what was committed is kept, and nothing counts twice', {
    timeout: 120_000,
  }, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tagyard-traffic-'));
    const database = join(dir, 'pglite');
    const open = async <T>(work: (db: Database) => Promise<T>): Promise<T> => {
      const db = connectEmbedded(database);
      try {
        return await work(db);
      } finally {
        await db.destroy();
      }
    };
    await open((db) => migrate(db));
    // 18 objects a day: the second process is killed in its second day.
    for (const end of [1, 25]) expect(await run(database, end)).toBe('killed');
    await run(database, null);
    const { 'traffic_days total': total, ...rest } = await open(sums);
    expect(total).toBe(1_800);
    expect(rest).toMatchObject({
      'traffic_minutes total': 1_800,
      'traffic_hours total': 1_800,
      'traffic_days one': 900,
    });
    await rm(dir, { recursive: true, force: true });
  });
});
