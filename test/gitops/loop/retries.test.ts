import { beforeEach, describe, expect, test } from 'vitest';
import { GivenUpError, QuotaReachedError, RetryableError } from '../../../base/errors.ts';
import { Retries } from '../../../gitops/loop/retries.ts';
import { desiredSite } from '../../support/gitops/plans.ts';
import { testClock } from '../../support/test-clock.ts';

const broken = new Error('refused');
let clock: ReturnType<typeof testClock>;
let retries: Retries;
const shop = desiredSite('shop');
beforeEach(() => {
  clock = testClock();
  retries = new Retries(clock, () => 1);
});
const fail = (site = 'shop', errors = [broken], desired = shop) => retries.failed(site, desired, errors);

describe('a failing site', () => {
  test('is due after a pause that doubles up to five minutes', () => {
    const pauses = Array.from({ length: 11 }, () => {
      fail();
      const pause = retries.nextAt() - clock.now();
      clock.advance(pause - 1);
      expect(retries.due()).toEqual([]);
      clock.advance(1);
      expect(retries.due()).toEqual(['shop']);
      return pause / 1000;
    });
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  });

  test('waits for the longest retryAfter of its errors', () => {
    fail('shop', [broken, new RetryableError('429', { retryAfter: 60 }), new RetryableError('503')]);
    expect(retries.nextAt()).toBe(60_000);
    expect(retries.next('shop')).toBe('2026-01-01T00:01:00.000Z');
  });

  test('that a quota stops is tried again every half hour', () => {
    fail('shop', [broken, new QuotaReachedError('no more records')]);
    expect(retries.nextAt()).toBe(1_800_000);
  });

  test('shows its next retry by the wall clock, and keeps the pause when that clock is set', () => {
    fail('shop', [new RetryableError('429', { retryAfter: 60 })]);
    clock.setWallClock(-3_600_000);
    expect(retries.next('shop')).toBe('2025-12-31T23:01:00.000Z');
    clock.advance(60_000);
    expect(retries.due()).toEqual(['shop']);
  });

  test('that was given up is never due and has no next retry', () => {
    fail('shop', [new GivenUpError('it never starts'), new RetryableError('429', { retryAfter: 1 })]);
    clock.advance(1e12);
    expect([retries.due(), retries.next('shop'), retries.nextAt()]).toEqual([[], null, Infinity]);
    expect(retries.mayRun('shop', shop)).toBe(false);
  });

  test('starts afresh with another desired state', () => {
    fail();
    fail();
    expect(retries.failures('shop')).toBe(2);
    const other = desiredSite('shop');
    expect([retries.mayRun('shop', shop), retries.mayRun('shop', other)]).toEqual([false, true]);
    fail('shop', [broken], other);
    expect(retries.failures('shop')).toBe(1);
  });

  test('has no retry after it was cleared', () => {
    fail();
    retries.clear('shop');
    expect([retries.next('shop'), retries.failures('shop'), retries.nextAt()]).toEqual([null, 0, Infinity]);
    expect(retries.mayRun('shop', shop)).toBe(true);
  });
});

describe('of many failing sites', () => {
  const sites = Array.from({ length: 12 }, (_, number) => `bad-${number}`);

  test('eight run at once, the longest overdue first', () => {
    for (const site of sites.toReversed()) {
      fail(site);
      clock.advance(10);
    }
    clock.advance(60_000);
    const due = retries.due();
    expect(due).toEqual(sites.toReversed().slice(0, 8));
    for (const site of due) {
      expect(retries.mayRun(site, shop)).toBe(true);
      retries.started(site, shop);
    }
    expect([retries.due(), retries.nextAt(), retries.mayRun('bad-0', shop)]).toEqual([[], Infinity, false]);
    retries.ended('bad-11');
    expect(retries.mayRun('bad-0', shop)).toBe(true);
    expect(retries.due()).toHaveLength(1);
  });

  test('a run with another desired state doesn’t count towards the eight', () => {
    for (const site of sites) {
      fail(site);
      retries.started(site, desiredSite(site));
    }
    fail('shop');
    clock.advance(60_000);
    expect(retries.due()).toEqual(['shop']);
  });
});
