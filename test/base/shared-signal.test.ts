import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { withSharedSignal } from '../../base/shared-signal.ts';

test('the shared signal aborts when the last caller has aborted', async () => {
  const [one, two] = [new AbortController(), new AbortController()];
  const seen: boolean[] = [];
  await withSharedSignal([one.signal, two.signal, one.signal], async (signal) => {
    seen.push(signal.aborted);
    one.abort();
    seen.push(signal.aborted);
    two.abort();
    seen.push(signal.aborted);
  });
  expect(seen).toEqual([false, false, true]);
});

test('the shared signal is aborted from the start where all callers have aborted before', async () => {
  const aborted = await withSharedSignal([AbortSignal.abort()], async (signal) => signal.aborted);
  expect(aborted).toBe(true);
});

test('nothing listens to the callers’ signals after the work, failed or not', async () => {
  const { signal } = new AbortController();
  await withSharedSignal([signal], async () => expect(getEventListeners(signal, 'abort')).toHaveLength(1));
  const failing = withSharedSignal([signal], () => Promise.reject(new Error('refused')));
  await expect(failing).rejects.toThrow('refused');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
