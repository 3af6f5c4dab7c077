import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../../base/clock.ts';
import { initialStatus } from '../../../gitops/loop/conditions.ts';
import { type State, StateFile } from '../../../gitops/loop/state.ts';
import { testClock } from '../../support/test-clock.ts';

let dir: string;
let path: string;
const errors: unknown[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-state-'));
  path = join(dir, 'deep', 'state.json');
  errors.length = 0;
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const file = (clock?: Clock) => new StateFile(path, (error) => errors.push(error), clock);
const stateOf = (revision: string, sites = 1): State => ({
  version: 1,
  revision,
  sites: Array.from({ length: sites }, (_, number) => initialStatus(`site-${number}`, 'tag-1')),
  operations: [],
});

describe('the state file', () => {
  test('answers what was saved last', async () => {
    const state = file();
    expect(await state.read()).toBeNull();
    for (const revision of ['a', 'b', 'c']) state.save(() => stateOf(revision));
    await state.flush();
    expect(await file().read()).toEqual(stateOf('c'));
    expect(errors).toEqual([]);
  });

  test('of a newer version is refused, and stays as it is', async () => {
    const state = file();
    state.save(() => stateOf('a'));
    await state.flush();
    const newer = readFileSync(path, 'utf8').replace('"version":1', '"version":2');
    writeFileSync(path, newer);
    await expect(file().read()).rejects.toThrow(`${path} was written by a newer version of Tagyard`);
    expect(readFileSync(path, 'utf8')).toBe(newer);
  });

  test('of a newer version is read, if that says that this one can use it', async () => {
    const state = file();
    state.save(() => stateOf('a'));
    await state.flush();
    const newer = readFileSync(path, 'utf8').replace('"version":1', '"version":2,"readableFrom":1,"more":{}');
    writeFileSync(path, newer);
    expect(await file().read()).toEqual(stateOf('a'));
  });

  test('makes few writes of many changes, and the last write has the last change', async () => {
    const state = file();
    let states = 0;
    const CHANGES = 200;
    for (let change = 1; change <= CHANGES; change += 1) {
      state.save(() => {
        states += 1;
        return stateOf(String(change), 500);
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
    await state.flush();
    expect((await file().read())?.revision).toBe(String(CHANGES));
    expect(states).toBeLessThan(CHANGES / 4);
  });

  test.each([
    ['nine times as long as the write took', 100, 900],
    ['at most three seconds', 1_000, 3_000],
  ])('pauses after a write, %s', async (_what, tookMs, pause) => {
    const clock = testClock();
    const state = file(clock);
    state.save(() => {
      clock.advance(tookMs);
      return stateOf('a');
    });
    await expect.poll(() => clock.sleeps()).toEqual([pause]);
    state.save(() => stateOf('b'));
    clock.advance(pause - 1);
    expect((await file().read())?.revision).toBe('a');
    clock.advance(1);
    await expect.poll(async () => (await file().read())?.revision).toBe('b');
    await state.flush();
  });

  test('writes again after a flush', async () => {
    const state = file();
    state.save(() => stateOf('a'));
    await state.flush();
    state.save(() => stateOf('b'));
    await state.flush();
    expect((await file().read())?.revision).toBe('b');
  });

  test.each([
    ['cut off', (text: string) => text.slice(0, text.length / 2)],
    ['of an older version', (text: string) => text.replace('"version":1', '"version":0')],
    ['valid JSON of another shape', () => '[]'],
    ['empty', () => ''],
  ])('counts as lost where it is %s', async (_what, spoil) => {
    const state = file();
    state.save(() => stateOf('a'));
    await state.flush();
    writeFileSync(path, spoil(readFileSync(path, 'utf8')));
    expect(await file().read()).toBeNull();
  });

  test('reports a failed write, and writes the next change', async () => {
    writeFileSync(join(dir, 'deep'), 'a file where a folder should be');
    const state = file();
    state.save(() => stateOf('a'));
    await state.flush();
    expect(errors).toHaveLength(1);
    rmSync(join(dir, 'deep'));
    state.save(() => stateOf('b'));
    await state.flush();
    expect((await file().read())?.revision).toBe('b');
  });
});
