import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { presentCounts } from './counts.ts';
import { collectedUntil } from './leases.ts';
import { TOTAL } from './object-set.ts';
import { spanOf } from './store.ts';

/** Whose traffic. `all`: of the whole installation, including requests for hostnames of no site. */
export type Whose = 'all' | { readonly containers: ReturnType<typeof sql> };

interface Range {
  readonly from: Date;
  readonly to: Date;
}

interface PointsRange extends Range {
  /** Seconds. */
  readonly step: number;
  readonly probes: boolean;
}

/** The time of which everything is known; `null`: none. */
type Known = { readonly since: Date; readonly until: Date } | null;

/** If a range has more rows, the database sums them. */
const MOST_ROWS = 20_000;

/**
 * The parts of a range for which the sums per `span` seconds are not completely known. With `quarters`, also the
 * parts without sums by quarter of an hour.
 */
export async function missingIn(
  db: Database,
  span: number,
  range: Range,
  { quarters = false } = {},
): Promise<Range[]> {
  return outside(range, await knownRange(db, span, quarters));
}

async function knownRange(db: Database, span: number, quarters = false): Promise<Known> {
  const state = await db.selectFrom('traffic_state').selectAll().executeTakeFirstOrThrow();
  const until = await collectedUntil(db);
  if (state.since === null || until === null) return null;
  const kept = latest(state.since, state[spanOf(span).from] ?? state.since);
  return { since: quarters ? latest(kept, state.quarters_from ?? kept) : kept, until };
}

function outside({ from, to }: Range, known: Known): Range[] {
  if (known === null) return from < to ? [{ from, to }] : [];
  const { since, until } = known;
  if (since >= until) return [{ from, to }];
  const missing = [
    { from, to: earliest(to, since) },
    { from: latest(from, until), to },
  ];
  return missing.filter((range) => range.from < range.to);
}

const latest = (one: Date, other: Date) => (one > other ? one : other);
const earliest = (one: Date, other: Date) => (one < other ? one : other);

/** One point for each step of which something is known. The range begins and ends where steps do. */
export async function trafficPoints(db: Database, scope: Whose, { from, to, step, probes }: PointsRange) {
  const known = await knownRange(db, step);
  const { table } = spanOf(step);
  const state = await db.selectFrom('traffic_state').selectAll().executeTakeFirstOrThrow();
  const oldest = latest(from, state[spanOf(step).from] ?? from);
  const containers = scope === 'all' ? sql`select ${TOTAL}::uuid` : scope.containers;
  const rows = sql`
    from ${sql.table(table)} as sums
    where container in (${containers}) and time >= ${oldest.toISOString()}::timestamptz
      and time < ${to.toISOString()}::timestamptz and (not probe or ${probes})`;
  const sums = new Map<number, Map<string, number>>();
  const found = await sql<{ time: Date; counts: Record<string, number> }>`
    select time, counts ${rows} limit ${MOST_ROWS + 1}`.execute(db);
  const all = found.rows.length > MOST_ROWS ? await summed(db, rows) : found.rows;
  for (const { time, counts } of all) {
    const sum = sums.get(time.getTime()) ?? new Map<string, number>();
    for (const [name, count] of Object.entries(counts)) sum.set(name, (sum.get(name) ?? 0) + count);
    sums.set(time.getTime(), sum);
  }
  const missing = outside({ from, to }, known);
  const points = [];
  for (let time = from.getTime(); time < to.getTime(); time += step * 1_000) {
    const counts = sums.get(time);
    const isMissing = missing.some(
      (range) => range.from.getTime() <= time && time + step * 1_000 <= range.to.getTime(),
    );
    if (isMissing && counts === undefined) continue;
    points.push({ time: new Date(time).toISOString(), ...presentCounts(counts ?? new Map()) });
  }
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    step,
    points,
    missing: missing.map(presentRange),
  };
}

export const presentRange = ({ from, to }: Range) => ({ from: from.toISOString(), to: to.toISOString() });

async function summed(db: Database, rows: ReturnType<typeof sql>) {
  const { rows: sums } = await sql<{ time: Date; counts: Record<string, number> }>`
    select time, jsonb_object_agg(name, total) as counts from (
      select time, name, sum(count) as total from (
        select time, key as name, value::bigint as count
        from (select time, counts ${rows}) as picked, jsonb_each_text(counts)
      ) as each group by time, name
    ) as totals group by time`.execute(db);
  return sums;
}
