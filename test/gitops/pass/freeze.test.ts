import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { frozenBy } from '../../../gitops/pass/freeze.ts';

let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), 'tagyard-freeze-')), 'freeze');
});
afterEach(() => rmSync(join(path, '..'), { recursive: true, force: true }));

test.each<[string, () => void, RegExp | null]>([
  ['no file', () => undefined, null],
  ['an empty file', () => writeFileSync(path, '\n'), /freeze stops all changes$/],
  ['a file with a reason', () => writeFileSync(path, 'migration\n'), /freeze stops all changes: migration$/],
  ['a long file', () => writeFileSync(path, 'x'.repeat(500)), /: x{200}$/],
  ['an unreadable file', () => mkdirSync(path), /can't be read, so all changes are stopped$/],
])('given %s, the reason for a freeze is $2', async (_what, prepare, expected) => {
  prepare();
  const reason = await frozenBy(path);
  if (expected === null) expect(reason).toBeNull();
  else expect(reason).toMatch(expected);
});
