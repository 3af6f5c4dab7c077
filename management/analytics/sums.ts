import { type AnalyticsClient, AnalyticsError } from '../clients/analytics-client.ts';
import { type QUANTILES, type SumsQuery, sumsQueries } from './queries.ts';

/** What is known of one step, an interval of `SumsQuery.step` seconds. */
interface Step {
  /** By the names of management/traffic/counts.ts. */
  readonly counts: Map<string, number>;
  readonly latency: Record<keyof typeof QUANTILES, number | null>;
}

interface AnalyticsSums {
  /** By the start of each step, milliseconds since 1970. */
  readonly steps: ReadonlyMap<number, Step>;
  /** Whether a point counts for more than one request. */
  readonly sampled: boolean;
}

type Answer = Readonly<Record<string, unknown>>;

/** Milliseconds for which the time of the oldest point is cached. It changes only as points expire. */
const FIRST_MS = 600_000;
const firsts = new WeakMap<AnalyticsClient, { readonly time: Date; readonly until: number }>();

/** The sums of requests by step. Throws `AnalyticsError`. */
export async function analyticsSums(client: AnalyticsClient, query: SumsQuery): Promise<AnalyticsSums> {
  const { totals, values } = sumsQueries(client.dataset, query);
  const [rows, ...others] = await Promise.all([
    client.query(totals),
    ...values.map(async ({ letter, sql }) => ({ letter, rows: await client.query(sql) })),
  ]);
  const steps = new Map<number, Step>();
  for (const row of rows) {
    const counts = new Map<string, number>();
    for (const [name, value] of Object.entries(row)) {
      const [, letter, rest] = /^n_([a-z])(?:_(\w+))?$/.exec(name) ?? [];
      const count = whole(value);
      if (letter !== undefined && count > 0)
        counts.set(rest === undefined ? letter : `${letter}:${rest}`, count);
    }
    steps.set(timeOf(row), { counts, latency: latencyOf(row) });
  }
  for (const { letter, rows: own } of others) {
    for (const row of own) steps.get(timeOf(row))?.counts.set(`${letter}:${row.value}`, whole(row.requests));
  }
  return { steps, sampled: rows.some(({ most }) => numberOf(most) > 1) };
}

/** The time of the oldest point that Cloudflare still has; `null`: there is none. Throws `AnalyticsError`. */
export async function firstPoint(client: AnalyticsClient, now: number): Promise<Date | null> {
  const known = firsts.get(client);
  if (known !== undefined && known.until > now) return known.time;
  // A dataset exists from its first point on.
  const tables = await client.query('SHOW TABLES');
  if (!tables.some((table) => Object.values(table).includes(client.dataset))) return null;
  const rows = await client.query(
    `SELECT dataset, min(double9) AS first FROM ${client.dataset} WHERE double9 > 0 GROUP BY dataset`,
  );
  const [row] = rows;
  if (row === undefined) return null;
  const time = new Date(numberOf(row.first) * 1_000);
  firsts.set(client, { time, until: now + FIRST_MS });
  return time;
}

const timeOf = (row: Answer) => numberOf(row.t) * 1_000;
const whole = (value: unknown) => Math.round(numberOf(value));

function latencyOf(row: Answer): Step['latency'] {
  const of = (name: keyof typeof QUANTILES) => (row[name] === null ? null : numberOf(row[name]));
  return { p50: of('p50'), p95: of('p95'), p99: of('p99') };
}

function numberOf(value: unknown): number {
  const number = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  if (!Number.isFinite(number))
    throw new AnalyticsError('Analytics Engine’s answer has a text in the place of a number');
  return number;
}
