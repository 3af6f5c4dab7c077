import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { coalesce } from '../../base/coalesce.ts';

describe('concurrent calls', () => {
  const batches: { at: number; items: number[] }[] = [];
  const flush = (tookMs: number) => async (items: readonly number[]) => {
    batches.push({ at: performance.now(), items: [...items] });
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, tookMs);
    await promise;
    return items.map((value) => ({ status: 'fulfilled', value }) as const);
  };

  beforeEach(() => {
    vi.useFakeTimers({ now: 0 });
    batches.length = 0;
  });
  afterEach(() => vi.useRealTimers());

  test('form one batch; calls during a batch form the next one', async () => {
    const call = coalesce(flush(100), { windowMs: 50 });
    const start = performance.now();
    const answers = [call(1), call(2)];
    await vi.advanceTimersByTimeAsync(60);
    answers.push(call(3), call(4));
    await vi.advanceTimersByTimeAsync(500);
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4]);
    expect(batches.map(({ at, items }) => [at - start, items])).toEqual([
      [50, [1, 2]],
      [150, [3, 4]],
    ]);
  });

  test('over a long time form few batches, with a pause after each', async () => {
    const call = coalesce(flush(100), { windowMs: 50, restMs: (tookMs) => 3 * tookMs });
    const start = performance.now();
    for (let number = 0; number < 100; number += 1) {
      void call(number);
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(1_000);
    expect(batches.map(({ at }) => at - start)).toEqual([50, 450, 850, 1_250]);
    expect(batches.flatMap(({ items }) => items)).toHaveLength(100);
  });

  test('wait in a pause only until the last expected one has arrived', async () => {
    let expected = 3;
    const call = coalesce(flush(100), { windowMs: 50, restMs: () => 3_000, isExpecting: () => expected > 0 });
    const start = performance.now();
    const arrive = (value: number) => {
      expected -= 1;
      void call(value);
    };
    arrive(1);
    await vi.advanceTimersByTimeAsync(500);
    arrive(2);
    await vi.advanceTimersByTimeAsync(500);
    arrive(3);
    await vi.advanceTimersByTimeAsync(1_000);
    // No more calls were expected when this pause began, so it takes its full time.
    void call(4);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(batches.map(({ at, items }) => [at - start, items])).toEqual([
      [50, [1]],
      [expect.closeTo(1_050, -2), [2, 3]],
      [expect.closeTo(4_150, -2), [4]],
    ]);
  });

  test('wait only for the rest of the pause, and not at all once it is over', async () => {
    const call = coalesce(flush(100), { windowMs: 50, restMs: () => 300 });
    const start = performance.now();
    void call(1);
    await vi.advanceTimersByTimeAsync(200);
    void call(2);
    await vi.advanceTimersByTimeAsync(1_000);
    void call(3);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(batches.map(({ at }) => at - start)).toEqual([50, 450, 1_250]);
  });

  test('fail with their batch; the next batch is not affected', async () => {
    let times = 0;
    const call = coalesce<number, number>(
      async (items) => {
        times += 1;
        if (times === 1) throw new Error('the first fails');
        return items.map((value) => ({ status: 'fulfilled', value }));
      },
      { windowMs: 50 },
    );
    const first = expect(call(1)).rejects.toThrow('the first fails');
    await vi.advanceTimersByTimeAsync(60);
    await first;
    const second = call(2);
    await vi.advanceTimersByTimeAsync(60);
    expect(await second).toBe(2);
  });
});
