import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rotateLogs } from '../../../../gitops/appliers/proxy/nginx/logs.ts';

describe('the logs of nginx', () => {
  const now = Date.parse('2026-11-21T00:00:00Z');
  const days = (count: number) => new Date(now - count * 24 * 60 * 60 * 1000);
  let directory: string;
  const keep = () => rotateLogs({ directory, sites: new Set(['acme']), now, maxBytes: 10 });
  const path = (name: string) => join(directory, 'sites', name);

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tagyard-logs-'));
    await mkdir(join(directory, 'sites'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  test('stay as they are while they are small', async () => {
    await writeFile(path('acme.log'), 'sho');
    expect(await keep()).toBe(false);
    expect(await readdir(join(directory, 'sites'))).toEqual(['acme.log']);
  });

  test('are rotated when they are full, and the oldest is removed', async () => {
    for (const text of ['first, long enough', 'second, long enough', 'third, long enough']) {
      await writeFile(path('acme.log'), text);
      expect(await keep()).toBe(true);
    }
    expect((await readdir(join(directory, 'sites'))).sort()).toEqual(['acme.log.1', 'acme.log.2']);
    expect(await readFile(path('acme.log.1'), 'utf8')).toContain('third');
    expect(await readFile(path('acme.log.2'), 'utf8')).toContain('second');
  });

  test('are reopened if the process that rotated them was killed before nginx reopened them', async () => {
    await writeFile(path('acme.log.1'), 'nginx still writes to this one');
    expect(await keep()).toBe(true);
    expect(await readdir(join(directory, 'sites'))).toEqual(['acme.log.1']);
  });

  test('take no more than the limit, rotated logs included', async () => {
    for (const bytes of [3, 4]) {
      await writeFile(path('acme.log'), 'x'.repeat(bytes));
      // The limit is ten bytes, a third of it for each of the three files.
      expect(await keep()).toBe(bytes > 3);
    }
  });

  test('of a removed site are deleted after a week, and no others', async () => {
    for (const [name, date] of [
      ['gone.log', days(8)],
      ['gone.log.1', days(9)],
      ['left.log', days(6)],
      ['acme.log', days(30)],
      ['notes.txt', days(30)],
    ] as const) {
      await writeFile(path(name), '');
      await utimes(path(name), date, date);
    }
    expect(await keep()).toBe(false);
    expect((await readdir(join(directory, 'sites'))).sort()).toEqual(['acme.log', 'left.log', 'notes.txt']);
  });
});
