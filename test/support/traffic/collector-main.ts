import { sql } from 'kysely';
import pg from 'pg';
import { z } from 'zod';
import { connectEmbedded } from '../../../management/db/connect.ts';
import { ConnectedDatabase } from '../../../management/db/connected.ts';
import { listenOnPostgres } from '../../../management/db/listen.ts';
import { openRawObjects } from '../../../management/raw-objects/open.ts';
import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';
import { Collector } from '../../../management/traffic/collector.ts';
import { MortalDialect } from '../management/mortal-dialect.ts';
import { signalSelf } from '../signal.ts';
import { collectorParts } from './collector.ts';

/**
 * A process that collects, with `once` only once. It kills itself at the boundary number `end`, counted from 1. Each
 * read of the bucket is a boundary, and so is each write to PostgreSQL that others can see.
 */
const given = z
  .object({
    /** A URL of PostgreSQL, or a folder of the embedded database. */
    database: z.string(),
    bucket: z.record(z.string(), z.string()),
    end: z.number().nullable(),
    once: z.boolean(),
  })
  .parse(JSON.parse(process.argv[2] ?? '{}'));

let passed = 0;
function boundary(): void {
  passed += 1;
  if (passed === given.end) signalSelf('SIGKILL', import.meta.filename);
}

function open(): ConnectedDatabase {
  if (!given.database.startsWith('postgres:')) return connectEmbedded(given.database);
  const pool = new pg.Pool({ connectionString: given.database });
  return new ConnectedDatabase(
    new MortalDialect({ pool }, boundary),
    listenOnPostgres(given.database, () => undefined),
  );
}

function mortal(objects: RawObjects): RawObjects {
  return {
    ...objects,
    async read(key) {
      const body = await objects.read(key);
      boundary();
      return body;
    },
  };
}

const objects = openRawObjects({
  RAW_LOGS_BUCKET: 'tagyard-raw-logs',
  RAW_LOGS_API_RATE: 1e6,
  ...given.bucket,
});
if (objects === null) throw new Error('the bucket isn’t named');
const db = open();
// As if fifteen seconds had passed, after which the leases of a killed process have ended.
if (!given.database.startsWith('postgres:')) {
  await sql`update traffic_leases set until = now() - interval '1 s'`.execute(db);
  await sql`update traffic_collectors set seen_at = now() - interval '1 min'`.execute(db);
}
const collector = new Collector(collectorParts(db, mortal(objects)));
if (given.once) {
  const start = performance.now();
  const before = process.cpuUsage();
  await collector.collect();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(before);
  await db.destroy();
  const figures = { ms, cpuMs: (user + system) / 1_000, peakMiB: process.resourceUsage().maxRSS / 1_024 };
  process.send?.({ passed, ...figures }, () => process.exit(0));
} else {
  process.send?.('started');
  await collector.run(AbortSignal.timeout(600_000));
}
