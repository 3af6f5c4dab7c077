import { describe, expect, test } from 'vitest';
import { Recycling } from '../../../../gitops/appliers/containers/recycling.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 10, 21);

describe('recycling', () => {
  const sites = Array.from({ length: 200 }, (_, index) => `site-${index}`);

  test('replaces each container at its age limit, not earlier or later', () => {
    let now = START;
    const recycling = new Recycling({ days: 10, now: () => now });
    for (const site of sites) {
      now = START;
      const changes: number[] = [];
      let last = recycling.edition(site);
      for (let hour = 0; hour <= 40 * 24; hour += 1) {
        now = START + hour * HOUR_MS;
        const edition = recycling.edition(site);
        if (edition !== last) changes.push(hour);
        last = edition;
      }
      const gaps = changes.slice(1).map((hour, index) => hour - (changes[index] ?? 0));
      expect(changes.length).toBe(4);
      // The test samples every hour.
      for (const gap of gaps) expect(Math.abs(gap - 240)).toBeLessThanOrEqual(1);
    }
  });

  test('spreads the sites over the days: about a tenth of them a day', () => {
    let now = START;
    const recycling = new Recycling({ days: 10, now: () => now });
    const editions = () => sites.map((site) => recycling.edition(site));
    for (let day = 0; day < 10; day += 1) {
      const before = editions();
      now += DAY_MS;
      const changed = editions().filter((edition, index) => edition !== before[index]).length;
      expect(changed).toBeGreaterThan(5);
      expect(changed).toBeLessThan(40);
    }
  });

  test('gives the next process the same edition, and is off with 0 days', () => {
    const build = (days: number, now: number) => new Recycling({ days, now: () => now });
    expect(build(10, START).edition('shop')).toBe(build(10, START).edition('shop'));
    expect(build(0, START).edition('shop')).toBe(build(0, START + 1000 * DAY_MS).edition('shop'));
  });

  test('changes a site’s edition at each renewal, and no other site’s', () => {
    const recycling = new Recycling({ days: 10, now: () => START });
    const [shop, other] = [recycling.edition('shop'), recycling.edition('other')];
    recycling.renew('shop');
    const renewed = recycling.edition('shop');
    recycling.renew('shop');
    expect(new Set([shop, renewed, recycling.edition('shop')]).size).toBe(3);
    expect(recycling.edition('other')).toBe(other);
  });
});
