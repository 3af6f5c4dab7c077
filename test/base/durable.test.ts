import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { syncDirectory, syncFile, writeDurably } from '../../base/durable.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-durable-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test.each<[string, string | string[], number | undefined, number]>([
  ['a text, readable by the owner only', 'new', undefined, 0o600],
  ['chunks, with another mode', ['ne', 'w'], 0o640, 0o640],
])('replaces a file by %s', async (_what, text, mode, expected) => {
  const path = join(dir, 'state');
  writeFileSync(path, 'an older and longer text', { mode: 0o644 });
  await writeDurably(path, text, mode);
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(statSync(path).mode & 0o777).toBe(expected);
  expect(readdirSync(dir)).toEqual(['state']);
});

test('keeps the old file where the new one can’t be written', async () => {
  const path = join(dir, 'state');
  writeFileSync(path, 'old');
  const failing = function* () {
    yield 'half';
    throw new Error('no space left');
  };
  await expect(writeDurably(path, failing())).rejects.toThrow('no space left');
  expect(readFileSync(path, 'utf8')).toBe('old');
  await writeDurably(path, 'new');
  expect(readFileSync(path, 'utf8')).toBe('new');
});

test('syncs what exists, and throws for what doesn’t', async () => {
  mkdirSync(join(dir, 'folder'));
  writeFileSync(join(dir, 'file'), 'x');
  await syncFile(join(dir, 'file'));
  await syncDirectory(join(dir, 'folder'));
  await expect(syncFile(join(dir, 'missing'))).rejects.toThrow('ENOENT');
  await expect(syncDirectory(join(dir, 'missing'))).rejects.toThrow('ENOENT');
});
