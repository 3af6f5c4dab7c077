import { expect, test } from 'vitest';
import { RecentRequests } from '../../../management/requests/recent.ts';
import { compareRows, type KeyedRow, keyedRow } from '../../../management/requests/rows/record.ts';
import { batchOf } from '../../support/management/raw-logs.ts';

const rowsOf = (container: string, ids: readonly string[]): KeyedRow[] =>
  batchOf(ids.map((requestId) => ({ container, requestId }))).flatMap(
    (record) => keyedRow(JSON.stringify(record), null) ?? [],
  );
const found = (recent: RecentRequests, container: string) =>
  recent.find({ containers: [container], probes: false }).map(({ row }) => row.requestId);

test('a busy container displaces its own rows, never those of a quiet one', () => {
  const recent = new RecentRequests({ ofOne: 50, all: 60 });
  recent.add(rowsOf('quiet', ['q1', 'q2']), 0);
  for (const busy of ['a', 'b', 'c']) {
    recent.add(
      rowsOf(
        busy,
        Array.from({ length: 80 }, (_, index) => `${busy}${index}`),
      ),
      0,
    );
  }
  expect(found(recent, 'quiet')).toEqual(['q1', 'q2']);
  const all = recent.find({ containers: null, probes: false });
  expect(all.length).toBeLessThanOrEqual(60);
  expect(found(recent, 'c').at(-1)).toBe('c79');
});

test('a record is kept once, and for a quarter of an hour', () => {
  const recent = new RecentRequests();
  const rows = rowsOf('one', ['r1', 'r2']);
  expect(recent.add(rows, 0)).toHaveLength(2);
  expect(recent.add(rows, 60_000)).toEqual([]);
  recent.add(rowsOf('one', ['r3']), 60_000);
  expect(found(recent, 'one')).toEqual(['r1', 'r2', 'r3']);
  const [first] = rows;
  expect(recent.after('one', first?.row.id ?? '')?.map(({ row }) => row.requestId)).toEqual(['r2', 'r3']);
  recent.expire(15 * 60_000);
  expect(found(recent, 'one')).toEqual(['r3']);
  expect(recent.after('one', first?.row.id ?? '')).toBeNull();
  recent.expire(60 * 60_000);
  expect(found(recent, 'one')).toEqual([]);
});

test('a record that names no batch is accepted only with its line number and its object’s key', () => {
  const [{ batch: _, ...record } = {}] = batchOf([{ container: 'one' }]);
  const line = JSON.stringify(record);
  expect(keyedRow(line, null)).toBeNull();
  const rows = [3, 10, 2].flatMap((index) => keyedRow(line, { batch: 'raw/x.ndjson', index }) ?? []);
  expect(rows.sort(compareRows).map(({ index }) => index)).toEqual([10, 3, 2]);
  for (const bad of ['', 'null', '[]', '{"time":"yesterday"}', line.slice(0, -1), '{"time":1}'])
    expect(keyedRow(bad, { batch: 'x', index: 0 })).toBeNull();
});
