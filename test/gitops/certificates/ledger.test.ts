import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Ledger, type LedgerState } from '../../../gitops/certificates/ledger.ts';

const state = (tokens: number): LedgerState => ({
  version: 1,
  budget: { tokens, at: 5, limited: { 'example.net': 9 } },
  failures: { 'a.example.net': { count: 1, message: 'refused', retryAt: 7 } },
});

describe('the ledger of orders', () => {
  let home: string;
  let path: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-ledger-'));
    path = join(home, 'ledger.json');
  });
  afterEach(() => rm(home, { recursive: true }));

  test('is read as it was written, by the next process too', async () => {
    await new Ledger(path).write(state(3));
    expect(await new Ledger(path).read()).toEqual(state(3));
  });

  test('keeps the last of many writes', async () => {
    const ledger = new Ledger(path);
    await Promise.all(Array.from({ length: 20 }, (_, index) => ledger.write(state(index))));
    expect(await ledger.read()).toEqual(state(19));
  });

  test.each(['', '{', '{"version":1}', JSON.stringify({ ...state(1), failures: { a: { count: 0 } } })])(
    'counts as empty if it contains %j',
    async (content) => {
      await writeFile(path, content);
      expect(await new Ledger(path).read()).toBeNull();
    },
  );

  test('is refused if a newer version has written it', async () => {
    await writeFile(path, '{"version":2}');
    await expect(new Ledger(path).read()).rejects.toThrow('was written by a newer version of Tagyard');
  });

  test('counts as empty if it is missing, and can’t be written where its folder is missing', async () => {
    const ledger = new Ledger(join(home, 'folder', 'ledger.json'));
    expect(await ledger.read()).toBeNull();
    await expect(ledger.write(state(1))).rejects.toThrow('ENOENT');
    const other = new Ledger(path);
    await other.write(state(2));
    expect(await other.read()).toEqual(state(2));
  });
});
