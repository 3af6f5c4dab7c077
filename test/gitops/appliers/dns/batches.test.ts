import { expect, test } from 'vitest';
import { inBatches } from '../../../../gitops/appliers/dns/batches.ts';
import type { RecordChange } from '../../../../gitops/appliers/dns/provider.ts';

const { signal } = new AbortController();
const change = (keep: string, surplus = 0): RecordChange => ({
  keep,
  surplus: Array.from({ length: surplus }, (_, index) => `${keep}-${index}`),
});

/** Batches of at most 4 operations, and what became of each change. */
async function sent(changes: readonly RecordChange[], mayBeOneRecord: boolean) {
  const batches: (string | null)[][] = [];
  const enqueue = inBatches({
    sender: () => async (items) => {
      batches.push(items.map(({ keep }) => keep));
      if (items.some(({ keep }) => keep === 'bad')) throw new Error('refused');
    },
    cost: ({ surplus }) => 1 + surplus.length,
    room: 4,
    mayBeOneRecord: () => mayBeOneRecord,
  });
  const outcomes = await Promise.allSettled(changes.map((one) => enqueue(one, signal)));
  return { batches, outcomes: outcomes.map(({ status }) => status) };
}

test('concurrent changes are packed into transactions by their cost', async () => {
  const { batches } = await sent([change('a'), change('b', 2), change('c'), change('d', 3)], true);
  expect(batches).toEqual([['a', 'b'], ['c'], ['d']]);
});

test('a change that is larger than a transaction is sent alone', async () => {
  expect((await sent([change('a'), change('b', 9), change('c')], true)).batches).toEqual([
    ['a'],
    ['b'],
    ['c'],
  ]);
});

test('a refused batch is bisected, so that only the bad record fails', async () => {
  const { outcomes } = await sent([change('a'), change('bad'), change('c')], true);
  expect(outcomes).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

test('an error that no single record can have caused fails the whole batch', async () => {
  const { batches, outcomes } = await sent([change('a'), change('bad'), change('c')], false);
  expect(batches).toHaveLength(1);
  expect(outcomes).toEqual(['rejected', 'rejected', 'rejected']);
});
