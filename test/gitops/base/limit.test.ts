import { expect, test } from 'vitest';
import { limit } from '../../../gitops/base/limit.ts';

test('at most `width` pieces of work run at once, in order, and a failure affects no other', async () => {
  const limited = limit(2);
  const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const ends = gates.map(({ promise }, index) =>
    limited(async () => {
      begun.push(index);
      await promise;
      return index;
    }),
  );
  const settled = Promise.allSettled(ends);
  await expect.poll(() => begun).toEqual([0, 1]);
  gates[1]?.reject(new Error('no'));
  await expect.poll(() => begun).toEqual([0, 1, 2]);
  for (const { resolve } of gates) resolve();
  expect((await settled).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ]);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});
