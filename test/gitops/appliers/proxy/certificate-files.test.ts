import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TerminalError } from '../../../../gitops/appliers/contract.ts';
import { certificateFiles } from '../../../../gitops/appliers/proxy/certificate-files.ts';
import { ensureLocalCa, type LocalCa } from '../../../../gitops/embedded/local-ca.ts';

const HOST = 'a.example.net';
const DAY_MS = 86_400_000;

describe('certificates from files', () => {
  let home: string;
  let ca: LocalCa;
  let directory: string;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-tls-'));
    ca = await ensureLocalCa(join(home, 'ca'));
  });
  beforeEach(async () => {
    directory = join(home, 'tls');
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory);
  });
  afterAll(() => rm(home, { recursive: true, force: true }));

  const file = (name: string) => join(directory, name);
  /** Puts a pair for `name` there, as an operator would. */
  const put = async (stem: string, name: string) => {
    const { cert, key } = await ca.pathsFor(name);
    await copyFile(cert, file(`${stem}.pem`));
    await copyFile(key, file(`${stem}.key`));
  };
  const asked = (now = Date.now()) => certificateFiles(directory, { now: () => now }).pathsFor(HOST, 'files');
  const paths = (stem: string) => ({ cert: file(`${stem}.pem`), key: file(`${stem}.key`) });

  it.each([
    ['the name’s own', HOST, () => Promise.resolve()],
    ['its parent’s wildcard where there is no other', '_.example.net', () => rm(file(`${HOST}.pem`))],
    ['the wildcard where a key is missing', '_.example.net', () => rm(file(`${HOST}.key`))],
    ['the wildcard where its own is no use', '_.example.net', () => put(HOST, 'b.example.net')],
  ])('are %s', async (_case, expected, spoil) => {
    await put(HOST, HOST);
    await put('_.example.net', '*.example.net');
    await spoil();
    expect(await asked()).toEqual(paths(expected));
  });

  it('say which file belongs where, when there is none', async () => {
    await expect(asked()).rejects.toBeInstanceOf(TerminalError);
    await expect(asked()).rejects.toThrow(
      `put a.example.net.pem and a.example.net.key, or _.example.net.pem and _.example.net.key into ${directory}`,
    );
  });

  const swapChain = async () => {
    const [leaf = '', issuer = ''] = (await readFile(file(`${HOST}.pem`), 'utf8')).split(/(?=-----BEGIN)/);
    await writeFile(file(`${HOST}.pem`), issuer + leaf);
  };
  const foreignChain = async () => {
    const [leaf = ''] = (await readFile(file(`${HOST}.pem`), 'utf8')).split(/(?=-----BEGIN)/);
    const other = await ensureLocalCa(join(home, 'other-ca'));
    await writeFile(file(`${HOST}.pem`), leaf + (await readFile(other.caFile, 'utf8')));
  };

  it.each([
    ['no certificate', () => writeFile(file(`${HOST}.pem`), 'nothing'), 'holds no certificate in PEM'],
    [
      'a damaged one',
      () => writeFile(file(`${HOST}.pem`), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'),
      'holds no certificate in PEM',
    ],
    ['no key', () => writeFile(file(`${HOST}.key`), 'nothing'), 'holds no unencrypted private key in PEM'],
    [
      'the key of another',
      async () => copyFile((await ca.pathsFor('c.example.net')).key, file(`${HOST}.key`)),
      'the key is not that of the certificate',
    ],
    [
      'a certificate of another name',
      () => put(HOST, 'b.example.net'),
      'the certificate is for b.example.net, not for a.example.net',
    ],
    ['the chain the wrong way round', swapChain, 'the key is not that of the certificate'],
    [
      'a chain that is another’s',
      foreignChain,
      'certificate 2 of the file is not the issuer of the one before',
    ],
  ])('are refused for %s, with the reason', async (_case, spoil, reason) => {
    await put(HOST, HOST);
    await spoil();
    await expect(asked()).rejects.toBeInstanceOf(TerminalError);
    await expect(asked()).rejects.toThrow(`no certificate for ${HOST}: ${file(`${HOST}.pem`)}`);
    await expect(asked()).rejects.toThrow(reason);
  });

  it.each([
    ['past its end', 398 * DAY_MS, /the certificate ended on \d{4}-\d\d-\d\d$/],
    ['before its beginning', -2 * DAY_MS, /begins on \d{4}-\d\d-\d\d only/],
  ])('are refused %s', async (_case, away, reason) => {
    await put(HOST, HOST);
    await expect(asked(Date.now() + away)).rejects.toThrow(reason);
  });

  it('tell nothing of the key', async () => {
    await put(HOST, HOST);
    const key = await readFile(file(`${HOST}.key`), 'utf8');
    await copyFile((await ca.pathsFor('c.example.net')).key, file(`${HOST}.key`));
    const error = await asked().catch((cause: unknown) => String(cause));
    for (const line of key.split('\n').slice(1, -2)) expect(error).not.toContain(line);
  });
});
