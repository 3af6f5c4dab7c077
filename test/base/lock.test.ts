import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { acquireLock, LockHeldError } from '../../base/lock.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-lock-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test('one process holds the lock, the error names it, and the lock ends with a SIGKILL of the process', async () => {
  const path = join(dir, 'lock');
  const script = `const { acquireLock } = await import(${JSON.stringify(new URL('../../base/lock.ts', import.meta.url).href)});
    acquireLock(${JSON.stringify(path)}); console.log('held'); setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  expect(() => acquireLock(path)).toThrow(LockHeldError);
  expect(() => acquireLock(path)).toThrow(String(holder.pid));
  const exit = once(holder, 'exit');
  holder.kill('SIGKILL');
  await exit;
  const lock = acquireLock(path);
  lock.release();
  expect(readdirSync(dir)).toEqual([]);
  acquireLock(path).release();
});

test('refuses a file with other content', () => {
  const path = join(dir, 'lock');
  writeFileSync(
    path,
    'notes of an operator, longer than the 100 octets of a database’s header, so that SQLite doesn’t take the file for an empty one',
  );
  expect(() => acquireLock(path)).toThrow(/not a database/);
});
