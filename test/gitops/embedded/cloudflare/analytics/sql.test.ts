import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Points } from '../../../../../gitops/embedded/cloudflare/api/points.ts';
import { openState } from '../../../../../gitops/embedded/cloudflare/api/state.ts';
import {
  EMULATOR_TOKEN,
  NO_LIMITS,
  startEmulator,
  type TestEmulator,
} from '../../../../support/cloudflare/emulator.ts';
import { testClock } from '../../../../support/test-clock.ts';

const clock = testClock(new Date('2026-11-20T12:00:00Z'));
const db = openState(':memory:');
const points = new Points(db, { now: clock.date, limits: NO_LIMITS.sampling });
let cloudflare: TestEmulator;

const point = (time: string, city: string, heat: number) => ({
  dataset: 'weather',
  time: Date.parse(time),
  index: city.toLowerCase(),
  blobs: [city, ''],
  doubles: [heat],
});

beforeAll(async () => {
  // Not checked against the API's document, which describes no answers in text formats.
  cloudflare = await startEmulator({ checked: false, now: clock.date, limits: NO_LIMITS, db, points });
  points.write([
    point('2026-11-20T10:00:00Z', 'Oslo', -4),
    point('2026-11-20T10:20:00Z', 'Oslo', -2),
    point('2026-11-20T11:05:00Z', 'Oslo', 0),
    point('2026-11-20T11:10:00Z', 'Köln', 9.5),
    point('2026-08-19T11:10:00Z', 'Köln', 30),
  ]);
});
afterAll(() => cloudflare.close());

async function ask(sql: string, token = EMULATOR_TOKEN, account = cloudflare.account) {
  return await cloudflare.call('POST', `/accounts/${account}/analytics_engine/sql`, sql, {
    authorization: `Bearer ${token}`,
    'content-type': 'text/plain',
  });
}

describe('the SQL of Analytics Engine', () => {
  test('answers columns with their types; whole numbers of 64 bits are texts', async () => {
    const { status, json } = await ask(`
      SELECT blob1 AS city, toStartOfInterval(timestamp, INTERVAL '1' HOUR) AS hour, -- the documented example
        SUM(_sample_interval) AS n, SUM(_sample_interval * double1) / SUM(_sample_interval) AS mean,
        quantileExactWeighted(0.5)(double1, _sample_interval) AS median
      FROM weather WHERE timestamp > NOW() - INTERVAL '1' DAY GROUP BY city, hour ORDER BY hour, n DESC, city DESC FORMAT JSON`);
    expect(status).toBe(200);
    expect(json).toEqual({
      meta: [
        { name: 'city', type: 'String' },
        { name: 'hour', type: 'DateTime' },
        { name: 'n', type: 'UInt64' },
        { name: 'mean', type: 'Float64' },
        { name: 'median', type: 'Float64' },
      ],
      data: [
        { city: 'Oslo', hour: '2026-11-20 10:00:00', n: '2', mean: -3, median: -4 },
        { city: 'Oslo', hour: '2026-11-20 11:00:00', n: '1', mean: 0, median: 0 },
        { city: 'Köln', hour: '2026-11-20 11:00:00', n: '1', mean: 9.5, median: 9.5 },
      ],
      rows: 3,
    });
  });

  test.each([
    [`SELECT 'Hello' AS message`, [{ message: 'Hello' }]],
    ['SELECT count() AS n, count(DISTINCT blob1) AS c FROM weather', [{ n: '4', c: '2' }]],
    ['SELECT count() AS n FROM weather WHERE double1 > 100', [{ n: '0' }]],
    [`SELECT intDiv(toUInt32(timestamp), 3600) * 3600 AS t FROM weather LIMIT 1`, [{ t: '1795168800' }]],
    ['SELECT double1 AS d FROM weather ORDER BY d DESC LIMIT 1 OFFSET 1', [{ d: 0 }]],
    [`SELECT blob1 FROM weather WHERE blob1 LIKE 'K_l%' OR blob1 ILIKE 'k%'`, [{ blob1: 'Köln' }]],
    [
      `SELECT if(double1 < 0, 'frost', 'mild') AS how, count() AS n FROM weather GROUP BY how HAVING n > 1 ORDER BY how`,
      [
        { how: 'frost', n: '2' },
        { how: 'mild', n: '2' },
      ],
    ],
    [
      `SELECT max(n) AS most FROM (SELECT blob1 AS city, count() AS n FROM weather GROUP BY city)`,
      [{ most: '3' }],
    ],
    [
      `SELECT double1 AS d FROM weather WHERE double1 BETWEEN -3 AND 0 AND blob1 NOT IN ('Köln') ORDER BY d`,
      [{ d: -2 }, { d: 0 }],
    ],
    [
      `SELECT double2 AS none, blob20 AS empty, -double1 AS minus FROM weather WHERE NOT double1 <> -4`,
      [{ none: 0, empty: '', minus: 4 }],
    ],
    [
      `SELECT argMax(blob1, double1) AS hot, topK(1)(blob1) AS often FROM weather`,
      [{ hot: 'Köln', often: ['Oslo'] }],
    ],
    [
      `SELECT position('l' IN blob1) AS p, upper(substring(blob1, 1, 2)) AS s FROM weather WHERE index1 = 'köln'`,
      [{ p: '3', s: 'Kö'.toUpperCase().replace('Ö', 'ö') }],
    ],
    [`SELECT avg(double1) AS a FROM weather WHERE double1 > 99`, [{ a: null }]],
    [
      `SELECT min(blob1) AS a, argMax(blob1, double1) AS b, first_value(blob1) AS c, last_value(blob1) AS d FROM weather WHERE double1 > 99`,
      [{ a: '', b: '', c: '', d: '' }],
    ],
    [
      `SELECT first_value(double1) AS a, quantileExactWeighted(0.5)(double1, _sample_interval) AS b, quantileExactWeighted(0.5)(_sample_interval, _sample_interval) AS c, quantileExactWeighted(0.5)(timestamp, _sample_interval) AS d FROM weather WHERE double1 > 99`,
      [{ a: 0, b: null, c: 0, d: '1970-01-01 00:00:00' }],
    ],
    [
      `SELECT toDateTime('2026-01-31 00:00:00') + INTERVAL '1' MONTH AS a, toDateTime('2024-02-29 00:00:00') - INTERVAL '1' YEAR AS b FROM weather LIMIT 1`,
      [{ a: '2026-02-28 00:00:00', b: '2023-02-28 00:00:00' }],
    ],
    [`SHOW TABLES`, [{ dataset: 'weather' }]],
  ])('%s', async (sql, rows) => {
    const { json, text } = await ask(sql);
    expect(json?.data, text).toEqual(rows);
  });

  test('answers in the other formats', async () => {
    const sql = `SELECT blob1, count() AS n FROM weather GROUP BY blob1 ORDER BY n FORMAT`;
    expect((await ask(`${sql} JSONEachRow`)).text).toBe(
      '{"blob1":"Köln","n":"1"}\n{"blob1":"Oslo","n":"3"}\n',
    );
    expect((await ask(`${sql} TabSeparated`)).text).toBe('Köln\t1\nOslo\t3\n');
  });

  test('keeps points for three months', async () => {
    const all = `SELECT count() AS n FROM weather WHERE timestamp < toDateTime('2026-09-01 00:00:00')`;
    expect((await ask(all)).json.data).toEqual([{ n: '0' }]);
  });

  test.each([
    ['SELECT nullif(double1, 0) FROM weather', 'unsupported function: nullif'],
    ['SELECT sum(CASE WHEN double1 > 1 THEN 1 ELSE 0 END) FROM weather', 'unsupported expression type: CASE'],
    ['SELECT a FROM weather', 'unable to find type of column: a'],
    ['SELECT blob21 FROM weather', 'unable to find type of column: blob21'],
    ['SELECT blob1 FROM nowhere', 'unknown table: nowhere'],
    ['SELECT blob1 FROM weather UNION SELECT blob2 FROM weather', 'unexpected UNION'],
    ['SELECT blob1 FROM weather JOIN others', 'unexpected JOIN'],
    ['SELECT blob1, count() FROM weather', 'neither in GROUP BY'],
    ['SELECT sum(blob1) FROM weather', 'illegal type String'],
    [`SELECT if(double1 > 1, 'a', 1) FROM weather`, 'no common type'],
    [`SELECT blob1 FROM weather WHERE blob1 = 1`, 'no common type'],
    [`SELECT blob1 FROM weather WHERE blob1`, 'must be a boolean'],
    ['SELECT blob1 FROM weather WHERE count() > 1', 'function of groups'],
    ['SELECT count(*) FROM weather', 'unexpected *'],
    ['SELECT if(1, 2) FROM weather', 'takes 3 arguments'],
    [`SELECT toStartOfInterval(timestamp, 60) FROM weather`, 'an INTERVAL'],
    [`SELECT quantileExactWeighted(2)(double1, _sample_interval) FROM weather`, 'level'],
    [`SELECT blob1 FROM weather WHERE timestamp > 'soon'`, 'can’t read a DateTime'],
    ['SELECT blob1 FROM weather FORMAT CSV', 'unsupported format'],
    ['SELECT blob1 FROM weather; DROP TABLE weather', 'unexpected text'],
    ['DELETE FROM weather', 'expected SELECT'],
    ['', 'expected SELECT'],
  ])('refuses %s', async (sql, reason) => {
    const { status, text, headers } = await ask(sql);
    expect([status, headers.get('content-type')]).toEqual([422, 'text/plain; charset=utf-8']);
    expect(text).toContain('Input was invalid: ');
    expect(text.replace('expected a name, found', 'unexpected')).toContain(reason);
  });

  test('refuses another token and another account', async () => {
    expect((await ask('SHOW TABLES', 'other')).json).toMatchObject({
      success: false,
      errors: [{ code: 10000 }],
    });
    expect((await ask('SHOW TABLES', EMULATOR_TOKEN, '0'.repeat(32))).status).toBe(403);
  });
});

describe('sampling', () => {
  /** Points of two indexes in one second: many of a large one, few of a small one. */
  const written = (large: number, small: number) =>
    [...Array.from({ length: large }, () => 'large'), ...Array.from({ length: small }, () => 'small')].map(
      (index) => ({
        dataset: 'load',
        time: clock.date().getTime(),
        index,
        blobs: [],
        doubles: [2],
      }),
    );

  function seeded(): () => number {
    let state = 1;
    return () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
  }

  async function sums(
    limits: { points: number; seconds: number; rows: number },
    large: number,
    small: number,
  ) {
    const own = openState(':memory:');
    const sampled = new Points(own, { now: clock.date, limits, random: seeded() });
    sampled.write(written(large, small));
    await using stack = new AsyncDisposableStack();
    const emulator = await startEmulator({
      checked: false,
      now: clock.date,
      limits: NO_LIMITS,
      db: own,
      points: sampled,
    });
    stack.defer(() => emulator.close());
    const { json } = await emulator.call(
      'POST',
      `/accounts/${emulator.account}/analytics_engine/sql`,
      'SELECT index1 AS name, count() AS rows, sum(_sample_interval) AS n, sum(_sample_interval * double1) AS s, max(_sample_interval) AS most FROM load GROUP BY name ORDER BY name',
      { 'content-type': 'text/plain' },
    );
    return json.data.map(({ name, rows, n, s, most }: Record<string, string>) => [
      name,
      Number(rows),
      Number(n),
      s,
      most,
    ]);
  }

  test('on write thins out large indexes, and loses nothing of small ones', async () => {
    const [[, rows, count, sum, most], small] = await sums(
      { points: 500, seconds: 5, rows: 1e9 },
      20_000,
      400,
    );
    expect(small).toEqual(['small', 400, 400, 800, 1]);
    expect(rows).toBeLessThan(3_000);
    expect(most).toBe(64);
    expect(sum).toBe(2 * count);
    expect(Math.abs(count - 20_000)).toBeLessThan(20_000 * 0.12);
  });

  test('on read makes a row stand for a power of ten points', async () => {
    const [[, rows, count, , most]] = await sums({ points: 1e9, seconds: 5, rows: 5_000 }, 20_000, 0);
    expect(most).toBe(10);
    expect(count).toBe(rows * 10);
    expect(Math.abs(count - 20_000)).toBeLessThan(20_000 * 0.1);
  });
});
