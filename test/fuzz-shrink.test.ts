import { expect, test } from 'vitest';
import { shrink } from './fuzz/shrink.ts';

const range = Array.from({ length: 40 }, (_, number) => number);
const needs =
  (...numbers: number[]) =>
  async (items: readonly number[]) =>
    numbers.every((number) => items.includes(number));

test.each([
  { what: 'the last step alone', needed: [39] },
  { what: 'two steps', needed: [3, 39] },
  { what: 'the first and neighbours', needed: [0, 20, 21, 39] },
  { what: 'every step', needed: range },
])('shrinking a failure that needs $what keeps exactly these, in their order', async ({ needed }) => {
  expect(await shrink(range, needs(...needed))).toEqual(needed);
});

test('shrinking tries the last step alone first', async () => {
  const tried: (readonly number[])[] = [];
  await shrink(range, async (items) => {
    tried.push(items);
    return true;
  });
  expect(tried).toEqual([[39]]);
});
