import { expect, test } from 'vitest';
import { HistoryIndex } from '../../../sites/repo/history-index.ts';

test('updates the index from 500 sites on, one update at a time, and survives a failure', async () => {
  const updates: PromiseWithResolvers<void>[] = [];
  const warnings: unknown[] = [];
  const repo = {
    indexHistory() {
      const update = Promise.withResolvers<void>();
      updates.push(update);
      return update.promise;
    },
  };
  const index = new HistoryIndex(repo, { warn: (fields) => void warnings.push(fields) });
  index.update(499);
  expect(updates).toHaveLength(0);
  index.update(500);
  index.update(500);
  expect(updates).toHaveLength(1);
  const failure = new Error('no space left');
  updates[0]?.reject(failure);
  await index.ended();
  expect(warnings).toEqual([{ err: failure }]);
  index.update(500);
  expect(updates).toHaveLength(2);
  updates[1]?.resolve();
  await index.ended();
});
