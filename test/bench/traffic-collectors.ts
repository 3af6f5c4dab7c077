import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import type { Database } from '../../management/db/database.ts';
import { prepare } from '../../management/prepare.ts';
import { eventually } from '../support/eventually.ts';
import type { PostgresqlFixture } from '../support/management/postgresql.ts';
import type { TestBucket } from '../support/traffic/buckets.ts';
import type { Bench } from './bench.ts';
import { cpuMs } from './cpu.ts';
import { writeBacklog } from './traffic-backlog.ts';

const MAIN = fileURLToPath(new URL('../support/traffic/collector-main.ts', import.meta.url));
const PARTS = 16;
const SPAN_MS = 60_000;

interface Load {
  readonly postgresql: PostgresqlFixture;
  readonly bucket: TestBucket;
  readonly containers: readonly string[];
  readonly records: number;
}

/** The same load for one collector, and for two that have already divided the parts between them. */
export async function severalCollectors(bench: Bench, load: Load): Promise<void> {
  const one = await collectedBy(1, load);
  const two = await collectedBy(2, load);
  await bench(`${load.records} records: two collectors against one (aim 2, on idle cores)`, {
    unit: '×',
    run: () => one.ms / two.ms,
  });
  await bench('  by the CPU time of the busiest one', { unit: '×', run: () => one.cpu / two.cpu });
}

async function collectedBy(count: number, { postgresql, bucket, containers, records }: Load) {
  const { urls, db, owner } = await postgresql.connections(() => undefined);
  await prepare(db, owner, { host: 'tag-1', ports: { first: 20_000, last: 20_099 } });
  const folder = bucket.folder ?? '';
  const beside = `${folder}-next`;
  const given = { database: urls.api, bucket: bucket.settings, end: null, once: false };
  const children: ChildProcess[] = [];
  try {
    await rm(join(folder, 'raw'), { recursive: true, force: true });
    for (let index = 0; index < count; index += 1) {
      const child = fork(MAIN, [JSON.stringify(given)], { execArgv: [] });
      children.push(child);
      await once(child, 'message');
    }
    await eventually(() => divided(owner, count), { timeoutMs: 60_000 });
    // Objects of the last minutes, which collectors list in every pass.
    await writeBacklog({
      folder: beside,
      containers,
      records,
      from: Date.now() - 2 * SPAN_MS,
      spanMs: SPAN_MS,
    });
    const pids = children.map(({ pid = 0 }) => pid);
    const before = pids.map(cpuMs);
    const start = performance.now();
    await rename(join(beside, 'raw'), join(folder, 'raw'));
    await eventually(() => counted(owner, records), { timeoutMs: 600_000, intervalMs: 50 });
    const ms = performance.now() - start;
    return { ms, cpu: Math.max(...pids.map((pid, index) => cpuMs(pid) - (before[index] ?? 0))) };
  } finally {
    for (const child of children) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
    await rm(beside, { recursive: true, force: true });
    await db.destroy();
    await owner.destroy();
  }
}

async function divided(db: Database, count: number): Promise<void> {
  const { rows } = await sql<{ parts: number }>`
    select count(*)::integer as parts from traffic_leases where holder is not null and collected_until is not null
    group by holder`.execute(db);
  if (rows.length !== count || rows.some(({ parts }) => parts !== PARTS / count))
    throw new Error(`the parts are divided ${rows.map(({ parts }) => parts)}`);
}

async function counted(db: Database, records: number): Promise<void> {
  const { rows } = await sql<{ sum: number | null }>`
    select sum((counts->>'n')::integer)::integer as sum from traffic_days
    where container = '00000000-0000-0000-0000-000000000000'`.execute(db);
  if (rows[0]?.sum !== records) throw new Error(`${rows[0]?.sum} are counted`);
}
