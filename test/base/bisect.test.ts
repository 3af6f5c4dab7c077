import { expect, test } from 'vitest';
import { bisect } from '../../base/bisect.ts';

const refusal = new Error('refused');
const isRefusal = (error: unknown) => error === refusal;

async function run(items: readonly number[], faulty: readonly number[], error = refusal) {
  const sent: number[][] = [];
  const outcomes = await bisect(
    items,
    async (batch) => {
      sent.push([...batch]);
      if (batch.some((item) => faulty.includes(item))) throw error;
    },
    isRefusal,
  );
  return {
    sent,
    failed: items.filter((_, index) => outcomes[index]?.status === 'rejected'),
    count: outcomes.length,
  };
}

test.each([
  ['nothing is faulty', [], 1],
  ['the first item is', [0], 7],
  ['the last item is', [7], 7],
  ['two are', [2, 5], 11],
  ['all are', [0, 1, 2, 3, 4, 5, 6, 7], 15],
])('finds exactly the faulty items when %s', async (_name, faulty, calls) => {
  const { sent, failed, count } = await run([0, 1, 2, 3, 4, 5, 6, 7], faulty);
  expect(failed).toEqual(faulty);
  expect(count).toBe(8);
  expect(sent).toHaveLength(calls);
});

test('sends nothing again after an error that no single item causes', async () => {
  const { sent, failed } = await run([0, 1, 2], [1], new Error('timeout'));
  expect(sent).toHaveLength(1);
  expect(failed).toEqual([0, 1, 2]);
});
