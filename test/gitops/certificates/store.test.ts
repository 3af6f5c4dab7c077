import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CertificateStore } from '../../../gitops/certificates/store.ts';
import type { Issued } from '../../../gitops/clients/acme.ts';
import { ensureLocalCa, type LocalCa } from '../../../sites/local/local-ca.ts';

const HOST = 'a.example';

describe('the certificate store', () => {
  let home: string;
  let directory: string;
  let ca: LocalCa;
  let store: CertificateStore;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-store-'));
    directory = join(home, 'names');
    ca = await ensureLocalCa(join(home, 'ca'));
    store = new CertificateStore(directory);
    await store.prepare();
  });
  afterEach(() => rm(home, { recursive: true, force: true }));

  const issued = async (host: string): Promise<Issued> => {
    const { cert, key } = await ca.pathsFor(host);
    return { chain: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  };

  test('keeps a certificate that is written while others are removed', async () => {
    const certificate = await issued(HOST);
    let writing = true;
    const write = async () => {
      for (let round = 0; round < 50; round += 1) await store.write(HOST, certificate, Date.now());
    };
    const written = write().finally(() => {
      writing = false;
    });
    const kept = async () => {
      while (writing) await store.keepOnly(new Set([HOST]));
    };
    await Promise.all([written, kept()]);
    expect(await readdir(directory)).toEqual([`${HOST}.pem`]);
  });

  test('removes the certificates of all names but those to keep, and nothing else', async () => {
    for (const host of [HOST, 'b.example']) await store.write(host, await issued(host), Date.now());
    await writeFile(join(directory, `${HOST}.pem.1.tmp`), '');
    await store.keepOnly(new Set([HOST]));
    expect((await readdir(directory)).sort()).toEqual([`${HOST}.pem`, `${HOST}.pem.1.tmp`]);
    expect(store.edition(HOST)).toEqual(expect.any(String));
    expect(store.edition('b.example')).toBeUndefined();
  });

  test('removes the unfinished files of an earlier process when it starts', async () => {
    await store.write(HOST, await issued(HOST), Date.now());
    await writeFile(join(directory, `${HOST}.pem.1.tmp`), 'half a key');
    const next = new CertificateStore(directory);
    await next.prepare();
    expect(await readdir(directory)).toEqual([`${HOST}.pem`]);
    expect(next.edition(HOST)).toBe(store.edition(HOST));
  });
});
