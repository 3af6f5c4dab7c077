import { expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import { Starts } from '../../../../gitops/kubernetes/gateway/starts.ts';
import { fakeClock } from '../../../support/fake-clock.ts';

const SERVICE = 'sites/tag-acme-preview';

/** `Starts` with a `start` that counts its calls, and fails with `fault` if that is set. */
function stage() {
  const clock = fakeClock();
  const warnings: unknown[] = [];
  const state = { calls: 0, fault: null as Error | null };
  const log = { info: () => undefined, warn: (fields: object) => void warnings.push(fields) };
  const starts = new Starts({ clock, log });
  const start = () =>
    starts.start(SERVICE, async () => {
      state.calls += 1;
      await Promise.resolve();
      if (state.fault !== null) throw state.fault;
    });
  return { clock, state, starts, start, warnings };
}

test('a service is started once for all of its requests within 55 seconds', async () => {
  const { clock, state, start } = stage();
  await Promise.all(Array.from({ length: 20 }, start));
  expect(state.calls).toBe(1);
  clock.advance(54_000);
  await start();
  expect(state.calls).toBe(1);
  clock.advance(1_000);
  await start();
  expect(state.calls).toBe(2);
});

test('an error is the outcome of all requests for five seconds, and is logged', async () => {
  const { clock, state, start, warnings } = stage();
  state.fault = new TerminalError('403');
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, start));
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
  clock.advance(4_999);
  await expect(start()).rejects.toThrow('403');
  expect(state.calls).toBe(1);
  expect(warnings).toEqual([{ service: SERVICE, reason: '403' }]);
  state.fault = null;
  clock.advance(1);
  await start();
  expect(state.calls).toBe(2);
});

test('a started service may have a pod until stopped; once it was ready, its next start isn’t delayed', async () => {
  const { state, starts, start, warnings } = stage();
  expect(starts.isAsked(SERVICE)).toBe(false);
  await start();
  expect(starts.isAsked(SERVICE)).toBe(true);
  for (let request = 0; request < 20; request += 1) starts.late(SERVICE);
  expect(warnings).toEqual([{ service: SERVICE }]);
  starts.ready(SERVICE);
  expect(starts.isAsked(SERVICE)).toBe(true);
  await start();
  expect(state.calls).toBe(2);
  starts.stopped(SERVICE);
  expect(starts.isAsked(SERVICE)).toBe(false);
  await start();
  expect(state.calls).toBe(3);
});

test('a failure is remembered, also during another start, until the service is ready or no longer on demand', async () => {
  const { clock, state, starts, start } = stage();
  const known = () => [...starts.failures];
  state.fault = new TerminalError('403');
  await expect(start()).rejects.toThrow();
  expect(known()).toEqual([[SERVICE, { number: 1, reason: '403' }]]);
  state.fault = null;
  clock.advance(5_000);
  await start();
  expect(known()).toEqual([[SERVICE, { number: 1, reason: '403' }]]);
  starts.late(SERVICE);
  starts.late(SERVICE);
  expect(known()).toEqual([[SERVICE, { number: 2, reason: '' }]]);
  starts.stopped(SERVICE);
  expect(known()).toHaveLength(1);
  starts.ready(SERVICE);
  expect(known()).toEqual([]);
  await start();
  starts.late(SERVICE);
  expect(known()).toEqual([[SERVICE, { number: 3, reason: '' }]]);
  starts.forget(SERVICE);
  expect([known(), starts.isAsked(SERVICE)]).toEqual([[], false]);
});

test('a service that can’t be started has no pod, but may have one if the start got no answer', async () => {
  const { clock, state, starts, start } = stage();
  state.fault = new TerminalError('403');
  await expect(start()).rejects.toThrow();
  expect(starts.isAsked(SERVICE)).toBe(false);
  clock.advance(5_000);
  state.fault = new RetryableError('no answer');
  await expect(start()).rejects.toThrow();
  expect(starts.isAsked(SERVICE)).toBe(true);
});
