import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { z } from 'zod';
import type { Database } from '../../management/db/database.ts';
import { prepare } from '../../management/prepare.ts';
import { trafficPoints } from '../../management/traffic/points.ts';
import { type DatabaseUrls, PostgresqlFixture } from '../support/management/postgresql.ts';
import { s3Bucket, type TestBucket } from '../support/traffic/buckets.ts';
import type { Bench, Suite } from './bench.ts';
import { writeBacklog } from './traffic-backlog.ts';
import { severalCollectors } from './traffic-collectors.ts';

/** Records in the larger backlog; the smaller one has a tenth. The default number makes about 1 GB of objects. */
const RECORDS = Number(process.env.BENCH_TRAFFIC_RECORDS ?? 1_850_000);
const SITES = Number(process.env.BENCH_TRAFFIC_SITES ?? 1_000);
const HOUR_MS = 3_600_000;
const MAIN = fileURLToPath(new URL('../support/traffic/collector-main.ts', import.meta.url));
const report = z.object({ ms: z.number(), cpuMs: z.number(), peakMiB: z.number() });
type Report = z.output<typeof report>;

/**
 * Measures collecting a backlog, with DuckDB's sums of its objects as the control, and reading one chart from a table
 * with many sums.
 */
export const traffic: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  const bucket = await s3Bucket();
  const containers = Array.from({ length: SITES }, () => crypto.randomUUID());
  try {
    const backlog = (records: number) =>
      writeBacklog({
        ...{ folder: bucket.folder ?? '', containers, records },
        ...{ from: Date.now() - HOUR_MS, spanMs: HOUR_MS / 2 },
      });
    const small = await backlog(RECORDS / 10);
    const first = await collected(postgresql, bucket);
    await rm(join(bucket.folder ?? '', 'raw'), { recursive: true });
    const octets = await backlog(RECORDS);
    const second = await collected(postgresql, bucket);
    const { report: large, db } = second;
    await speed(bench, large);
    await control(bench, bucket);
    await bench(`memory with ${mb(octets)} of backlog (aim 300)`, { unit: 'MiB', run: () => large.peakMiB });
    await bench(`  against that with ${mb(small)} (aim 1.1)`, {
      unit: '×',
      run: () => large.peakMiB / first.report.peakMiB,
    });
    await storage(bench, db, octets);
    await charts(bench, db, containers);
    await severalCollectors(bench, { postgresql, bucket, containers, records: RECORDS / 10 });
    await first.close();
    await second.close();
  } finally {
    await bucket.close();
    await postgresql.stop();
  }
};

const mb = (octets: number) => `${Math.round(octets / 1e6)} MB`;

/** Collects all objects in a process of its own, into a new database. */
async function collected(postgresql: PostgresqlFixture, bucket: TestBucket) {
  const { urls, db, owner } = await postgresql.connections(() => undefined);
  await prepare(db, owner, { host: 'tag-1', ports: { first: 20_000, last: 20_099 } });
  const close = async () => {
    await db.destroy();
    await owner.destroy();
  };
  return { report: await collect(urls, bucket), db: owner, close };
}

async function collect(urls: DatabaseUrls, bucket: TestBucket): Promise<Report> {
  const given = { database: urls.api, bucket: bucket.settings, end: null, once: true };
  const child = fork(MAIN, [JSON.stringify(given)], { execArgv: [] });
  const [message] = await once(child, 'message');
  return report.parse(message);
}

async function speed(bench: Bench, { ms, cpuMs }: Report): Promise<void> {
  await bench('records collected per minute (aim 1)', { unit: 'M', run: () => (RECORDS / ms) * 0.06 });
  await bench('  per minute of the process’s own CPU time', {
    unit: 'M',
    run: () => (RECORDS / cpuMs) * 0.06,
  });
}

async function control(bench: Bench, { folder = '' }: TestBucket): Promise<void> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
  await bench('control: DuckDB sums the same objects, one thread: records per minute', {
    unit: 'M',
    async run() {
      const start = performance.now();
      const result = await connection.runAndReadAll(`
        select container, date_trunc('minute', "time"::timestamp) as minute, count(*), sum(bytesIn), sum(bytesOut),
          count(*) filter (status >= 500), histogram(route), histogram(country)
        from read_ndjson('${folder}/raw/**/*.ndjson') group by all`);
      if (result.currentRowCount === 0) throw new Error('DuckDB found nothing');
      return (RECORDS / (performance.now() - start)) * 0.06;
    },
  });
  connection.closeSync();
}

async function storage(bench: Bench, db: Database, octets: number): Promise<void> {
  await bench('size per million records: the bucket’s objects', { unit: 'MB', run: () => octets / RECORDS });
  for (const table of ['batches', 'objects', 'minutes', 'hours', 'days']) {
    const { rows } = await sql<{ size: string }>`
      select pg_total_relation_size(${`traffic_${table}`}::regclass)::text as size`.execute(db);
    const size = Number(rows[0]?.size);
    await bench(`  traffic_${table}`, { unit: 'MB', run: () => size / RECORDS });
  }
}

/** Measures a chart after giving each container 90 days of hours, each with the counts of a collected hour. */
async function charts(bench: Bench, db: Database, containers: readonly string[]): Promise<void> {
  await sql`insert into traffic_hours (time, container, probe, counts)
    select date_trunc('hour', now()) - make_interval(hours => hour), container::uuid, false,
      (select counts from traffic_hours where container <> '00000000-0000-0000-0000-000000000000' limit 1)
    from generate_series(2, ${90 * 24}::integer) as hour,
      jsonb_array_elements_text(${JSON.stringify(containers)}::jsonb) as container`.execute(db);
  await sql`update traffic_state set since = now() - interval '90 days'`.execute(db);
  await sql`analyze traffic_hours`.execute(db);
  const to = new Date(Math.ceil(Date.now() / HOUR_MS) * HOUR_MS);
  const from = new Date(to.getTime() - 30 * 24 * HOUR_MS);
  await bench(`chart of 30 days of one of ${SITES} containers with 90 days of hours (aim 50)`, {
    unit: 'ms',
    times: 20,
    async run() {
      const container = containers[Math.floor(Math.random() * containers.length)];
      const start = performance.now();
      const one = { containers: sql`select ${container}::uuid` };
      const { points } = await trafficPoints(db, one, { from, to, step: 3_600, probes: false });
      if (points.length < 700) throw new Error(`the chart has ${points.length} points`);
      return performance.now() - start;
    },
  });
}
