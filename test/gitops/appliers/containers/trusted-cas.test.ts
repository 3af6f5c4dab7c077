import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { joinCas } from '../../../../gitops/appliers/containers/trusted-cas.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tagyard-cas-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const at = (name: string) => join(directory, name);

test('all CAs are in one file that containers can read, and its hash changes with each of them', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) });
  await writeFile(at('one.pem'), 'one');
  const first = await joinCas(at('all.pem'), [at('one.pem')], log);
  await writeFile(at('two.pem'), 'two\n');
  const second = await joinCas(at('all.pem'), [at('one.pem'), at('two.pem')], log);
  expect(await readFile(second.caFile, 'utf8')).toBe('one\ntwo\n');
  expect((await stat(second.caFile)).mode & 0o777).toBe(0o644);
  expect(second.caHash).not.toBe(first.caHash);
  expect(lines).toEqual([]);

  const { ino } = await stat(second.caFile);
  expect(await joinCas(at('all.pem'), [at('one.pem'), at('two.pem')], log)).toEqual(second);
  // Containers have the file itself: one that hasn't changed is not replaced.
  expect((await stat(second.caFile)).ino).toBe(ino);
});

test('a file that can’t be read is named in the log, and the others are trusted', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) });
  await writeFile(at('one.pem'), 'one');
  const { caFile } = await joinCas(at('all.pem'), [at('one.pem'), at('missing.pem')], log);
  expect(await readFile(caFile, 'utf8')).toBe('one\n');
  expect(lines.join()).toContain(at('missing.pem'));
});
