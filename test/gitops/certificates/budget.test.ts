import { expect, test } from 'vitest';
import { OrderBudget } from '../../../gitops/certificates/budget.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const fresh = (perHour = 60) => new OrderBudget(perHour, null, NOW);

/** Counts the orders that can be placed until a given time, each for a name of another registrable domain. */
function placed(budget: OrderBudget, until: number): number {
  let count = 0;
  let now = NOW;
  for (;;) {
    now = Math.max(now, budget.at(`www.shop-${count}.example`, now));
    if (now > until) return count;
    budget.take(now);
    count += 1;
  }
}

test.each([
  [60, NOW, 6],
  [60, NOW + HOUR, 66],
  [60, NOW + 10 * HOUR, 606],
  [5, NOW, 1],
])('a budget of %i orders an hour allows a tenth at once, then that rate', (perHour, until, count) => {
  expect(placed(fresh(perHour), until)).toBe(count);
});

test('a budget is filled neither by a restart nor by a clock that is set back', () => {
  const budget = fresh();
  for (let order = 0; order < 6; order += 1) budget.take(NOW);
  const restarted = new OrderBudget(60, budget.state, NOW);
  expect(restarted.at('a.example', NOW)).toBe(NOW + MINUTE);
  expect(restarted.at('a.example', NOW - HOUR)).toBe(NOW - HOUR + MINUTE);
});

test('a refusal blocks the names of one registrable domain for as long as the authority demands', () => {
  const budget = fresh();
  expect(budget.limit('www.acme.example', NOW + HOUR, NOW)).toBe(NOW + HOUR);
  expect(budget.at('tags.acme.example', NOW)).toBe(NOW + HOUR);
  expect(budget.at('www.beta.example', NOW)).toBe(NOW);
  expect(budget.at('tags.acme.example', NOW + HOUR)).toBe(NOW + HOUR);
});

test('a refusal blocks a domain for an hour if the authority names no time', () => {
  expect(fresh().limit('www.acme.example', null, NOW)).toBe(NOW + HOUR);
});

test('if two domains are limited at once, so is the whole account', () => {
  const budget = fresh();
  budget.limit('www.acme.example', NOW + 2 * HOUR, NOW);
  budget.limit('www.beta.example', NOW + HOUR, NOW);
  expect(budget.at('www.gamma.example', NOW)).toBe(NOW + HOUR);
  expect(budget.at('www.gamma.example', NOW + HOUR)).toBe(NOW + HOUR);
});
