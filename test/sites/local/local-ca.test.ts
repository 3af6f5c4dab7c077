import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';

const HOST = 'acme-shop-preview.tagyard.localhost';
const DAY_MS = 86_400_000;

describe('the local CA', () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'tagyard-ca-')), 'ca');
  });
  afterEach(() => rm(join(directory, '..'), { recursive: true, force: true }));

  const certificate = async (path: string) => new X509Certificate(await readFile(path));

  test('is created once and read afterwards', async () => {
    const first = await ensureLocalCa(directory);
    const before = await readFile(first.caFile, 'utf8');
    expect((await ensureLocalCa(directory)).caFile).toBe(first.caFile);
    expect(await readFile(first.caFile, 'utf8')).toBe(before);
    expect((await certificate(first.caFile)).ca).toBe(true);
  });

  test('signs a certificate for the requested host and appends its own', async () => {
    const ca = await ensureLocalCa(directory);
    const { cert } = await ca.pathsFor(HOST);
    const leaf = await certificate(cert);
    const issuer = await certificate(ca.caFile);
    expect(leaf.checkHost(HOST)).toBe(HOST);
    expect(leaf.checkHost('other.tagyard.localhost')).toBeUndefined();
    expect(leaf.checkIssued(issuer) && leaf.verify(issuer.publicKey)).toBe(true);
    expect(await readFile(cert, 'utf8')).toContain(await readFile(ca.caFile, 'utf8'));
  });

  test('signs names that are too long for a common name', async () => {
    const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.tagyard.localhost`;
    const { cert } = await (await ensureLocalCa(directory)).pathsFor(long);
    expect((await certificate(cert)).checkHost(long)).toBe(long);
  });

  test('writes keys readable by their owner only', async () => {
    const { key } = await (await ensureLocalCa(directory)).pathsFor(HOST);
    for (const path of [key, join(directory, 'ca.key')]) expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
  });

  test('returns the same certificate to later and simultaneous requests', async () => {
    const ca = await ensureLocalCa(directory);
    const [first] = await Promise.all(Array.from({ length: 5 }, () => ca.pathsFor(HOST)));
    if (first === undefined) throw new Error('no certificate');
    const text = await readFile(first.cert, 'utf8');
    await (await ensureLocalCa(directory)).pathsFor(HOST);
    expect(await readFile(first.cert, 'utf8')).toBe(text);
    expect((await certificate(first.cert)).checkPrivateKey(createPrivateKey(await readFile(first.key)))).toBe(
      true,
    );
  });

  test.each([
    ['its file is damaged', (paths: { cert: string }) => writeFile(paths.cert, 'damaged')],
    ['its key is lost', (paths: { key: string }) => rm(paths.key)],
    ['the CA is a new one', () => rm(join(directory, 'ca.key'))],
  ])('makes a certificate anew where %s', async (_case, spoil) => {
    const paths = await (await ensureLocalCa(directory)).pathsFor(HOST);
    const before = await readFile(paths.cert, 'utf8');
    await spoil(paths);
    const ca = await ensureLocalCa(directory);
    await ca.pathsFor(HOST);
    expect(await readFile(paths.cert, 'utf8')).not.toBe(before);
    expect((await certificate(paths.cert)).verify((await certificate(ca.caFile)).publicKey)).toBe(true);
  });

  test.each([
    [200, false],
    [300, true],
    [500, true],
  ])('renews a certificate in the last third of its life: after %i days, %s', async (days, renewed) => {
    const { cert } = await (await ensureLocalCa(directory)).pathsFor(HOST);
    const before = await readFile(cert, 'utf8');
    const later = new Date(Date.now() + days * DAY_MS);
    await (await ensureLocalCa(directory, { now: () => later })).pathsFor(HOST);
    expect((await readFile(cert, 'utf8')) !== before).toBe(renewed);
  });
});
