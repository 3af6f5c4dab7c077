import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { recentPrefixes } from '../../management/traffic/calendar.ts';
import { latencyBucket, quantile } from '../../management/traffic/latency.ts';
import { localDays, TimeZoneError } from '../../management/traffic/local-days.ts';
import { eitherOf, hasBit } from '../../management/traffic/object-set.ts';
import { edgeOperations, listPrice } from '../../management/traffic/prices.ts';
import { keyAt } from '../support/traffic/records.ts';

describe('quantiles', () => {
  test.each([0.5, 0.95, 0.99])('are at most a tenth off (%d)', (fraction) => {
    const durations = Array.from({ length: 5_000 }, (_, index) => 1 + ((index * 7_919) % 30_011));
    const buckets = new Map<number, number>();
    for (const ms of durations) buckets.set(latencyBucket(ms), (buckets.get(latencyBucket(ms)) ?? 0) + 1);
    const exact = durations.sort((a, b) => a - b)[Math.ceil(durations.length * fraction) - 1] ?? 0;
    expect(Math.abs((quantile(buckets, fraction) ?? 0) / exact - 1)).toBeLessThan(0.1);
  });

  test('of nothing are unknown', () => expect(quantile(new Map(), 0.5)).toBeNull());
});

test('blocks of 52 records keep every bit', () => {
  const all = 2 ** 52 - 1;
  expect(eitherOf(2 ** 51, 1)).toBe(2 ** 51 + 1);
  expect(eitherOf(all, 5)).toBe(all);
  expect([hasBit(all, 51), hasBit(2 ** 51, 50), hasBit(2 ** 51, 51)]).toEqual([true, false, true]);
});

test.each(['2026-11-23T00:00:00.000Z', '2026-11-23T12:09:59.999Z', '2026-12-31T23:59:30.000Z'])(
  'the recent prefixes at %s have the keys of the last five minutes, and of clocks a minute ahead',
  (time) => {
    const prefixes = recentPrefixes(Date.parse(time));
    expect(prefixes.length).toBeLessThanOrEqual(3);
    for (const seconds of [-299, -200, -60, 0, 59]) {
      const key = keyAt(new Date(Date.parse(time) + seconds * 1_000).toISOString());
      expect(prefixes.some((prefix) => key.startsWith(prefix))).toBe(true);
    }
  },
);

describe('days of a time zone', () => {
  const hours = (first: string, zone: string) =>
    localDays(first, first, zone).map(({ from, to }) => (to.getTime() - from.getTime()) / 3_600_000);

  test.each<[day: string, zone: string, hours: number]>([
    ['2026-03-29', 'Europe/Berlin', 23],
    ['2026-10-25', 'Europe/Berlin', 25],
    ['2026-11-23', 'Europe/Berlin', 24],
    // Midnight itself doesn't exist.
    ['2026-04-24', 'Africa/Cairo', 23],
    ['2026-03-29', 'UTC', 24],
    ['2026-11-23', 'Asia/Kolkata', 24],
    ['2026-11-23', 'Asia/Kathmandu', 24],
    ['2026-04-05', 'Australia/Adelaide', 25],
    ['2026-10-04', 'Australia/Adelaide', 23],
    ['2026-04-05', 'Australia/Lord_Howe', 24.5],
    ['2026-10-04', 'Australia/Lord_Howe', 23.5],
  ])('%s in %s has %d hours', (day, zone, expected) => expect(hours(day, zone)).toEqual([expected]));

  test('follow each other without a gap', () => {
    const days = localDays('2026-01-01', '2026-12-31', 'America/New_York');
    expect(days).toHaveLength(365);
    expect(days[0]?.from.toISOString()).toBe('2026-01-01T05:00:00.000Z');
    for (const [index, { from }] of days.slice(1).entries()) expect(days[index]?.to).toEqual(from);
  });

  test.each([
    ['Asia/Kolkata', '2026-01-01', '2025-12-31T18:30:00.000Z'],
    ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00.000Z'],
    ['America/St_Johns', '2026-01-01', '2026-01-01T03:30:00.000Z'],
    ['Pacific/Chatham', '2026-01-01', '2025-12-31T10:15:00.000Z'],
  ])('begin in %s on %s at %s', (zone, day, from) => {
    expect(localDays(day, day, zone)[0]?.from.toISOString()).toBe(from);
  });

  test('that begin at no quarter of an hour are refused', () => {
    expect(() => hours('1950-01-01', 'Africa/Monrovia')).toThrow(TimeZoneError);
  });
});

test('the list price is that of docs/costs.md', () => {
  const page = readFileSync(new URL('../../docs/costs.md', import.meta.url), 'utf8');
  const [, price] = /\| all \| \| \| \$(\d+\.\d+) \|/.exec(page) ?? [];
  expect(listPrice(edgeOperations(5_800)).toFixed(5)).toBe(price);
  for (const operation of Object.values(edgeOperations(5_800))) expect(page).toContain(`| ${operation} |`);
});
