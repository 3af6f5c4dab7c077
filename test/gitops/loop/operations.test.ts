import { beforeEach, describe, expect, test } from 'vitest';
import { Operations } from '../../../gitops/loop/operations.ts';
import type { Step } from '../../../gitops/report/report.ts';
import { testClock } from '../../support/test-clock.ts';

const step = (key: string, status: Step['status'] = 'running'): Step => ({
  target: 'dns',
  key,
  op: 'delete',
  status,
  ms: 0,
});
let clock: ReturnType<typeof testClock>;
let changes: number;
let operations: Operations;
const build = (known: ConstructorParameters<typeof Operations>[0] = []) =>
  new Operations(
    known,
    () => {
      changes += 1;
    },
    clock,
  );
beforeEach(() => {
  clock = testClock();
  changes = 0;
  operations = build();
});

describe('an operation', () => {
  test('is queued, runs with its first step, and keeps one entry per step', () => {
    const { id } = operations.create('shop', 'provision', 'r1');
    expect(operations.get(id)).toMatchObject({
      status: 'queued',
      startedAt: '2026-01-01T00:00:00.000Z',
      finishedAt: null,
    });
    expect(operations.isQueued('shop')).toBe(true);
    for (const one of [step('a'), step('b'), step('a', 'succeeded')]) operations.step('shop', [id], one);
    expect(operations.get(id)).toMatchObject({
      status: 'running',
      steps: [step('b'), step('a', 'succeeded')],
    });
    expect(operations.isQueued('shop')).toBe(false);
    clock.advance(1500);
    operations.finish([id], 'failed', { reason: 'refused', fault: 'host' });
    expect(operations.get(id)).toMatchObject({
      status: 'failed',
      reason: 'refused',
      fault: 'host',
      finishedAt: '2026-01-01T00:00:01.500Z',
    });
    expect(changes).toBe(5);
  });

  test('stays finished, whatever is reported of it afterwards', () => {
    const { id } = operations.create('shop', 'deprovision', 'a1');
    operations.finish([id], 'succeeded');
    operations.step('shop', [id], step('x'));
    operations.finish([id], 'failed', { reason: 'late' });
    expect(operations.get(id)).toMatchObject({ status: 'succeeded', steps: [] });
  });

  test('shows the steps of a run that its commit started before the operation was recorded', () => {
    operations.begin('shop', false);
    operations.step('shop', [], step('a', 'succeeded'));
    const { id } = operations.create('shop', 'provision', 'r1');
    operations.step('shop', [], step('b', 'succeeded'));
    operations.end('shop');
    const shown = { status: 'queued', steps: [step('a', 'succeeded'), step('b', 'succeeded')] };
    expect(operations.get(id)).toMatchObject(shown);
    expect(operations.create('shop', 'deprovision', 'r2').steps).toEqual([]);
    expect(operations.create('shop', 'image', 'r2').steps).toEqual([]);
    expect(operations.create('other', 'provision', 'r2').steps).toEqual([]);
    clock.advance(60_001);
    expect(operations.create('shop', 'provision', 'r2').steps).toEqual([]);
    operations.begin('shop', true);
    operations.step('shop', [], step('a', 'succeeded'));
    expect(operations.create('shop', 'deprovision', 'r3').steps).toHaveLength(1);
  });

  test('is listed by site until it is finished', () => {
    const [one, two] = [
      operations.create('shop', 'provision', 'r1'),
      operations.create('shop', 'apply', 'r2'),
    ];
    operations.create('other', 'apply', 'r2');
    operations.finish([one.id], 'succeeded');
    expect(operations.open('shop')).toEqual([two.id]);
    expect([...operations.openBySite().keys()]).toEqual(['shop', 'other']);
  });
});

test('operations that an earlier process didn’t finish are queued again', () => {
  const { id } = operations.create('shop', 'provision', 'r1');
  const done = operations.create('shop', 'apply', 'r1');
  operations.step('shop', [id], step('a'));
  operations.finish([done.id], 'succeeded');
  const restarted = build(operations.all());
  expect(restarted.get(id)).toMatchObject({ status: 'queued', steps: [step('a')] });
  expect(restarted.get(done.id)).toMatchObject({ status: 'succeeded' });
});

test('the last 500 finished operations are kept, and all unfinished ones', () => {
  const first = operations.create('shop', 'provision', 'r1');
  const finished = Array.from({ length: 501 }, () => operations.create('shop', 'apply', 'r1').id);
  for (const id of finished) operations.finish([id], 'succeeded');
  expect(operations.get(finished[0] ?? '')).toBeNull();
  expect(operations.get(finished[1] ?? '')).not.toBeNull();
  expect(operations.get(first.id)).not.toBeNull();
  expect(operations.all()).toHaveLength(501);
});

describe('a wait for an operation', () => {
  const endsBy = async (act: (id: string) => void, finishBefore = false) => {
    const { id } = operations.create('shop', 'provision', 'r1');
    if (finishBefore) operations.finish([id], 'succeeded');
    let ended = false;
    void operations.finished(id, 1000).then(() => {
      ended = true;
    });
    act(id);
    await new Promise(setImmediate);
    return ended;
  };
  test.each<[string, (id: string) => void, boolean]>([
    ['a step', (id) => operations.step('shop', [id], step('a')), false],
    ['its end', (id) => operations.finish([id], 'failed'), true],
    [
      'the end of another one',
      () => operations.finish([operations.create('x', 'apply', 'r').id], 'failed'),
      false,
    ],
    ['less than the timeout', () => clock.advance(999), false],
    ['the timeout', () => clock.advance(1000), true],
  ])('has ended after %s: $2', async (_what, act, expected) => {
    expect(await endsBy(act)).toBe(expected);
  });

  test('ends at once for a finished operation or an unknown one', async () => {
    expect(await endsBy(() => undefined, true)).toBe(true);
    const unknown = operations.finished('no-such-id', 1000);
    clock.advance(1000);
    await unknown;
  });
});
