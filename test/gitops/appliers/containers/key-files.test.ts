import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KeyFiles } from '../../../../gitops/appliers/containers/key-files.ts';
import { Secret } from '../../../../sites/manifest/secrets.ts';
import { testWith } from '../../../support/components.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-keys-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

test('a key file is readable by its owner only, in a folder that others can’t enter', async () => {
  const files = new KeyFiles(join(home, 'keys'), null);
  const path = await files.write('one', new Secret('first'));
  expect(await files.write('one', new Secret('second'))).toBe(path);
  expect(await readFile(path, 'utf8')).toBe('second');
  expect((await stat(path)).mode & 0o777).toBe(0o400);
  expect((await stat(join(home, 'keys'))).mode & 0o777).toBe(0o700);
  expect(await files.names()).toEqual(['one']);
  await files.remove('one');
  await files.remove('one');
  expect(await files.names()).toEqual([]);
});

testWith('root', 'a container’s key file belongs to the container’s user', async () => {
  const path = await new KeyFiles(home, { uid: 65532, gid: 65532 }).write('one', new Secret('key'));
  expect(await stat(path)).toMatchObject({ uid: 65532, gid: 65532 });
});

test('a file that a crash left half written is listed and removed like a finished one', async () => {
  const files = new KeyFiles(home, null);
  await writeFile(join(home, 'one.json.tmp'), 'half');
  expect(await files.names()).toEqual(['one']);
  await files.remove('one');
  expect(await readdir(home)).toEqual([]);
});

test('a folder that can’t be read is an error, not an empty one', async () => {
  await writeFile(join(home, 'file'), '');
  await expect(new KeyFiles(join(home, 'file'), null).names()).rejects.toThrow('ENOTDIR');
});

test('a folder that doesn’t exist yet has no files', async () => {
  expect(await new KeyFiles(join(home, 'none'), null).names()).toEqual([]);
});
