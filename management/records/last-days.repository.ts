import { sql } from 'kysely';
import type { Database } from '../db/database.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;

/** What lists show of a container's traffic. */
interface LastDay {
  readonly requests: number;
  readonly errors: number;
  /** Requests of each of the last 24 hours, the running one last; `null`: not known. */
  readonly hours: (number | null)[];
  readonly lastVisitAt: string | null;
}

/** The traffic of each container; `null`: this installation has never collected any. */
export async function lastDays(
  db: Database,
  containers: readonly string[],
  now: Date,
): Promise<((container: string) => LastDay) | null> {
  const end = Math.ceil((now.getTime() + 1) / HOUR_MS) * HOUR_MS;
  const from = new Date(end - HOURS * HOUR_MS);
  const { rows: known } = await sql<{ since: Date | null; until: Date | null }>`
    select greatest(since, hours_from) as since,
      (select case when bool_and(collected_until is not null) then min(collected_until) end from traffic_leases) as until
    from traffic_state where since is not null`.execute(db);
  const [state] = known;
  if (state === undefined) return null;
  const { rows } = await sql<{ container: string; time: Date; requests: number; errors: number }>`
    select container, time, coalesce((counts->>'n')::float8, 0) as requests, coalesce((counts->>'x')::float8, 0) as errors
    from traffic_hours where container = any (${[...containers]}::uuid[])
      and time >= ${from.toISOString()}::timestamptz and not probe`.execute(db);
  const { rows: visits } = await sql<{ container: string; at: Date | null }>`
    select container, coalesce(
      (select max(time) from traffic_minutes as sums where sums.container = asked.container and not probe),
      (select max(time) from traffic_hours as sums where sums.container = asked.container and not probe),
      (select max(time) from traffic_days as sums where sums.container = asked.container and not probe)) as at
    from unnest(${[...containers]}::uuid[]) as asked (container)`.execute(db);
  const sums = Map.groupBy(rows, ({ container }) => container);
  const visited = new Map(visits.map(({ container, at }) => [container, at]));
  const starts = Array.from({ length: HOURS }, (_, index) => from.getTime() + index * HOUR_MS);
  const isMissing = (start: number) =>
    state.until === null ||
    start + HOUR_MS <= (state.since?.getTime() ?? 0) ||
    start >= Math.max(state.until.getTime(), state.since?.getTime() ?? 0);
  return (container) => {
    const own = sums.get(container) ?? [];
    const byTime = new Map(own.map(({ time, requests }) => [time.getTime(), requests]));
    return {
      requests: own.reduce((sum, { requests }) => sum + requests, 0),
      errors: own.reduce((sum, { errors }) => sum + errors, 0),
      hours: starts.map((start) => byTime.get(start) ?? (isMissing(start) ? null : 0)),
      lastVisitAt: visited.get(container)?.toISOString() ?? null,
    };
  };
}
