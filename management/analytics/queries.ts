import { HIT_ROUTES } from '../../plugins/document.ts';

/**
 * Which data points are summed, and how. Their layout is that of edge/logs/request-record.ts. The queries use only
 * documented functions.
 */
export interface SumsQuery {
  /**
   * `null`: all points, also those of no site. `sites`: the containers’ sites; `null`: all sites, as some aren’t known.
   */
  readonly scope: { readonly containers: readonly string[]; readonly sites: readonly string[] | null } | null;
  /** Both are starts of steps. */
  readonly from: Date;
  readonly to: Date;
  /** Seconds. */
  readonly step: number;
  /** Whether probes of our own are counted, too. */
  readonly probes: boolean;
  /** Records of these containers from before these times don't count. */
  readonly deleted: readonly { readonly container: string; readonly until: Date }[];
}

interface SumsQueries {
  /** A row for each step: `t` in seconds since 1970, sums as `n_…`, latencies, and the largest `_sample_interval`. */
  readonly totals: string;
  /** Rows of `t`, `value` and `requests`. */
  readonly values: readonly { readonly letter: string; readonly sql: string }[];
}

export const QUANTILES = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;
/** The longest time from the arrival of a request to its point, which is written up to ten seconds after the answer. */
const SLACK_SECONDS = 120;

const CLASSES = [1, 2, 3, 4, 5];
const CACHES = ['hit', 'miss', 'stale', 'bypass'];
const CONSENTS = ['all', 'analytics', 'ads', 'none'];

const requests = (condition: string) => `sum(if(${condition}, _sample_interval, 0))`;
const octets = (column: string) => `sum(if(${column} > 0, _sample_interval * ${column}, 0.0))`;

/** The totals of each step; the sums have the letters of management/traffic/counts.ts. */
const TOTALS: Readonly<Record<string, string>> = {
  n_n: 'sum(_sample_interval)',
  n_e: 'sum(_sample_interval * double7)',
  n_i: octets('double3'),
  n_o: octets('double4'),
  n_b: requests('double8 = 1'),
  n_d: requests('double8 >= 0'),
  n_t: requests('double5 = 1'),
  n_x: requests(`blob3 <> ''`),
  n_h: requests(
    `blob3 = 'hit_refused' OR (blob3 <> '' AND blob2 IN (${HIT_ROUTES.map((route) => `'${route}'`).join(', ')}))`,
  ),
  ...Object.fromEntries(
    CLASSES.map((digit) => [`n_s_${digit}`, requests(`double1 >= ${digit}00 AND double1 < ${digit + 1}00`)]),
  ),
  n_s_0: requests('double1 < 100 OR double1 >= 600'),
  ...Object.fromEntries(CACHES.map((cache) => [`n_c_${cache}`, requests(`blob4 = '${cache}'`)])),
  ...Object.fromEntries(CONSENTS.map((consent) => [`n_p_${consent}`, requests(`blob12 = '${consent}'`)])),
  ...Object.fromEntries(
    Object.entries(QUANTILES).map(([name, level]) => [
      name,
      `quantileExactWeighted(${level})(double2, _sample_interval)`,
    ]),
  ),
  most: 'max(_sample_interval)',
};

/** Columns whose values aren't a closed list: routes, countries, versions of the web container. */
const VALUES = [
  { letter: 'r', column: 'blob2', condition: null },
  { letter: 'k', column: 'blob6', condition: `blob6 <> ''` },
  { letter: 'v', column: 'blob14', condition: `blob14 <> ''` },
] as const;

export function sumsQueries(dataset: string, query: SumsQuery): SumsQueries {
  const { step } = query;
  const time = `intDiv(toUInt32(double9), ${step}) * ${step} AS t`;
  const where = conditionsOf(query);
  const columns = Object.entries(TOTALS).map(([name, expression]) => `${expression} AS ${name}`);
  return {
    totals: `SELECT ${[time, ...columns].join(', ')} FROM ${dataset} WHERE ${where.join(' AND ')} GROUP BY t`,
    values: VALUES.map(({ letter, column, condition }) => ({
      letter,
      sql: `SELECT ${time}, ${column} AS value, sum(_sample_interval) AS requests FROM ${dataset} WHERE ${[...where, ...(condition === null ? [] : [condition])].join(' AND ')} GROUP BY t, value`,
    })),
  };
}

function conditionsOf({ scope, from, to, probes, deleted }: SumsQuery): string[] {
  const [first, end] = [secondsOf(from), secondsOf(to)];
  const inList = (column: string, list: readonly string[]) => `${column} IN (${list.map(quoted).join(', ')})`;
  return [
    `timestamp >= toDateTime(${Math.floor(first)})`,
    `timestamp < toDateTime(${Math.ceil(end) + SLACK_SECONDS})`,
    `double9 >= ${first}`,
    `double9 < ${end}`,
    ...(scope === null ? [] : [inList('blob9', scope.containers)]),
    ...(scope === null || scope.sites === null ? [] : [inList('index1', scope.sites)]),
    ...(probes ? [] : ['double6 = 0']),
    ...deleted.map(
      ({ container, until }) => `NOT (blob9 = ${quoted(container)} AND double9 < ${secondsOf(until)})`,
    ),
  ];
}

const secondsOf = (date: Date): number => date.getTime() / 1_000;
const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;
