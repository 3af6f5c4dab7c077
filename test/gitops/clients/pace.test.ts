import { describe, expect, test } from 'vitest';
import { createPace } from '../../../gitops/clients/pace.ts';
import { fakeClock } from '../../support/fake-clock.ts';

describe('the pace', () => {
  const { signal } = new AbortController();

  test('gives a burst at once, and then tokens at its rate per second', async () => {
    const clock = fakeClock();
    const pace = createPace({ perSecond: 3.5, burst: 10 }, clock);
    for (let token = 0; token < 10; token += 1) await pace.take(signal);
    expect(clock.now()).toBe(0);
    for (let token = 0; token < 35; token += 1) await pace.take(signal);
    expect(clock.now()).toBeCloseTo(10_000, 0);
  });

  test('stays under 1,200 calls in any five minutes with the defaults of the client', async () => {
    const clock = fakeClock();
    const pace = createPace({ perSecond: 3.5, burst: 100 }, clock);
    const times: number[] = [];
    clock.advance(3_600_000);
    while (clock.now() < 3_600_000 + 900_000) {
      await pace.take(signal);
      times.push(clock.now());
    }
    const most = Math.max(
      ...times.map((start, first) => times.findLastIndex((time) => time < start + 300_000) - first + 1),
    );
    expect(most).toBeLessThanOrEqual(1200);
    expect(most).toBeGreaterThan(1100);
  });

  test('refuses all tokens during a pause, also to callers that already wait', async () => {
    const clock = fakeClock();
    const pace = createPace(
      { perSecond: 1, burst: 1 },
      {
        ...clock,
        async sleep(milliseconds) {
          clock.advance(milliseconds);
          pace.pause(10);
        },
      },
    );
    await pace.take(signal);
    await expect(pace.take(signal)).rejects.toMatchObject({ name: 'RetryableError', retryAfter: 10 });
    await expect(pace.take(signal)).rejects.toMatchObject({ retryAfter: 10 });
    clock.advance(10_000);
    await pace.take(signal);
  });
});
