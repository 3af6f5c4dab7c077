import { expect, test } from 'vitest';
import { KeyedMutex, limit } from '../../base/limit.ts';
import { privateEntries } from '../support/private-entries.ts';

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

test('a mutex by key runs one piece of work of a key at a time, in order, and keeps no key without work', async () => {
  const mutex = new KeyedMutex();
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const ends = gates.map(({ promise }, index) =>
    mutex.run(index === 2 ? 'other' : 'one', async () => {
      begun.push(index);
      await promise;
      return index;
    }),
  );
  const settled = Promise.allSettled(ends);
  await expect.poll(() => begun).toEqual([0, 2]);
  gates[0]?.reject(new Error('no'));
  await expect.poll(() => begun).toEqual([0, 2, 1]);
  for (const { resolve } of gates) resolve();
  expect((await settled).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ]);
  expect(begun).toEqual([0, 2, 1, 3]);
  expect(privateEntries(mutex)).toEqual({});
});
