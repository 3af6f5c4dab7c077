import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TerminalError } from '../../../../gitops/appliers/contract.ts';
import { certificateFiles } from '../../../../gitops/appliers/proxy/certificates.ts';

describe('certificates from files', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tagyard-tls-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  it.each([
    [
      'the name’s own',
      ['a.example.net.pem', 'a.example.net.key', '_.example.net.pem', '_.example.net.key'],
      'a.example.net',
    ],
    ['its parent’s wildcard', ['_.example.net.pem', '_.example.net.key'], '_.example.net'],
    [
      'the wildcard where a key is missing',
      ['a.example.net.pem', '_.example.net.pem', '_.example.net.key'],
      '_.example.net',
    ],
  ])('are %s', async (_case, files, expected) => {
    for (const name of files) await writeFile(join(directory, name), '');
    expect(await certificateFiles(directory).pathsFor('a.example.net', 'files')).toEqual({
      cert: join(directory, `${expected}.pem`),
      key: join(directory, `${expected}.key`),
    });
  });

  it('say which file belongs where, when there is none', async () => {
    const missing = certificateFiles(directory).pathsFor('a.example.net', 'files');
    await expect(missing).rejects.toBeInstanceOf(TerminalError);
    await expect(missing).rejects.toThrow(
      `put a.example.net.pem and a.example.net.key, or _.example.net.pem and _.example.net.key into ${directory}`,
    );
  });
});
