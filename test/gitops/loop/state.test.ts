import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { initialStatus } from '../../../gitops/loop/conditions.ts';
import { type State, StateFile } from '../../../gitops/loop/state.ts';

let dir: string;
let path: string;
const errors: unknown[] = [];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-state-'));
  path = join(dir, 'deep', 'state.json');
  errors.length = 0;
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const file = () => new StateFile(path, (error) => errors.push(error));
const stateOf = (revision: string, sites = 1): State => ({
  version: 1,
  revision,
  sites: Array.from({ length: sites }, (_, number) => initialStatus(`site-${number}`, 'tag-1')),
  operations: [],
});

describe('the state file', () => {
  test('gives back what was saved last', async () => {
    const state = file();
    expect(await state.read()).toBeNull();
    for (const revision of ['a', 'b', 'c']) state.save(() => stateOf(revision));
    await state.flush();
    expect(await file().read()).toEqual(stateOf('c'));
    expect(errors).toEqual([]);
  });

  test('makes few writes of many changes, and the last change is in it', async () => {
    const state = file();
    let asked = 0;
    const CHANGES = 200;
    for (let change = 1; change <= CHANGES; change += 1) {
      state.save(() => {
        asked += 1;
        return stateOf(String(change), 500);
      });
      await new Promise((resolve) => setImmediate(resolve));
    }
    await state.flush();
    expect((await file().read())?.revision).toBe(String(CHANGES));
    expect(asked).toBeLessThan(CHANGES / 4);
  });

  test('takes up writing again after a flush', async () => {
    const state = file();
    state.save(() => stateOf('a'));
    await state.flush();
    state.save(() => stateOf('b'));
    await state.flush();
    expect((await file().read())?.revision).toBe('b');
  });

  test.each([
    ['cut off', (text: string) => text.slice(0, text.length / 2)],
    ['of another version', (text: string) => text.replace('"version":1', '"version":2')],
    ['of something else', () => '[]'],
    ['empty', () => ''],
  ])('that is %s counts as lost', async (_what, spoil) => {
    const state = file();
    state.save(() => stateOf('a'));
    await state.flush();
    writeFileSync(path, spoil(readFileSync(path, 'utf8')));
    expect(await file().read()).toBeNull();
  });

  test('says when it can’t be written, and goes on', async () => {
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
