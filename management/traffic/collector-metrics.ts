import { sql } from 'kysely';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Database } from '../db/database.ts';
import type { Collector } from './collector.ts';
import { collectedUntil } from './leases.ts';

const COUNTERS = {
  objects: ['tagyard_traffic_objects_total', 'Objects of the raw logs that this process has counted'],
  failed: ['tagyard_traffic_failed_objects_total', 'Failed reads of objects; they are repeated'],
  refused: ['tagyard_traffic_refused_objects_total', 'Objects in the bucket that the edge has not written'],
  records: ['tagyard_traffic_records_total', 'Records that this process has counted'],
  doubledBatches: [
    'tagyard_traffic_doubled_batches_total',
    'Batches with a record that was counted before, each counted once per object',
  ],
} as const;

/**
 * What the collector of this process has done, and how far all collectors are. Without a bucket there are no such
 * metrics.
 */
export function registerTrafficMetrics(
  register: Registry,
  { db, collector }: { readonly db: Database; readonly collector: Collector },
): void {
  for (const [figure, [name, help]] of Object.entries(COUNTERS)) {
    new Counter({
      name,
      help,
      registers: [register],
      collect() {
        this.reset();
        this.inc(collector.figures[figure as keyof typeof COUNTERS]); // Object.entries drops the key type
      },
    });
  }
  new Gauge({
    name: 'tagyard_traffic_lag_seconds',
    help: 'Seconds since all processes together had counted the whole bucket; NaN: they never had',
    registers: [register],
    async collect() {
      const until = await collectedUntil(db);
      this.set(until === null ? Number.NaN : Math.max(0, (Date.now() - until.getTime()) / 1_000));
    },
  });
  new Gauge({
    name: 'tagyard_traffic_parts',
    help: 'Parts of the raw logs by who has leased them: this process, another one, or none',
    labelNames: ['holder'],
    registers: [register],
    async collect() {
      const { rows } = await sql<{ own: string; other: string; none: string }>`
        select count(*) filter (where holder = ${collector.id} and until > now()) as own,
          count(*) filter (where holder <> ${collector.id} and until > now()) as other,
          count(*) filter (where holder is null or until <= now()) as none from traffic_leases`.execute(db);
      const { own = 0, other = 0, none = 0 } = rows[0] ?? {};
      for (const [holder, count] of Object.entries({ this: own, other, none }))
        this.set({ holder }, Number(count));
    },
  });
}
