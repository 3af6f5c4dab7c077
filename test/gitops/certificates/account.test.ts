import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { folderOf, openAccount } from '../../../gitops/certificates/account.ts';

test.each([
  ['https://acme-v02.api.letsencrypt.org/directory', 'acme-v02.api.letsencrypt.org-directory'],
  ['https://127.0.0.1:14000/dir/', '127.0.0.1-14000-dir'],
])('the folder of %s is %s', (url, folder) => {
  expect(folderOf(url)).toBe(folder);
});

describe('an account at an authority', () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-account-'));
  });
  afterEach(() => rm(home, { recursive: true }));

  test('keeps its key and its URL across restarts, readable by its owner only', async () => {
    const first = await openAccount(home, 'secret');
    expect(first.url).toBeNull();
    await first.saveUrl('https://authority.example/1');
    const { key, thumbprint, url } = await openAccount(home, 'secret');
    expect({ key, thumbprint, url }).toEqual({
      key: first.key,
      thumbprint: first.thumbprint,
      url: 'https://authority.example/1',
    });
    expect((await stat(join(home, 'account.key'))).mode & 0o777).toBe(0o600);
  });

  test('has the same key again after a loss of its folder, and another one at another authority', async () => {
    const at = (authority: string, secret = 'secret') => openAccount(join(home, authority), secret);
    const { key, thumbprint } = await at('one');
    await rm(join(home, 'one'), { recursive: true });
    expect(await at('one')).toMatchObject({ key, thumbprint });
    expect((await at('two')).key).not.toBe(key);
    await rm(join(home, 'one'), { recursive: true });
    expect((await at('one', 'another secret')).key).not.toBe(key);
  });

  test('keeps a damaged key and throws', async () => {
    const file = join(home, 'account.key');
    await writeFile(file, 'damaged');
    await expect(openAccount(home, 'secret')).rejects.toThrow();
    expect(await readFile(file, 'utf8')).toBe('damaged');
  });

  test('keeps its key, but not a damaged URL', async () => {
    const { key } = await openAccount(home, 'secret');
    await writeFile(join(home, 'account.json'), '{');
    expect(await openAccount(home, 'secret')).toMatchObject({ key, url: null });
  });
});
