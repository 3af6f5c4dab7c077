import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CertificatePaths } from '../../../gitops/appliers/proxy/certificates.ts';
import { openInsideCas } from '../../../sites/local/inside-cas.ts';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';

const ONE = `${'a'.repeat(48)}-preview-01234`;
const TWO = 'two-preview-01234';
const DAY_MS = 86_400_000;
let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-inside-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** `null` if a client that trusts this CA accepts a server with that certificate, or else OpenSSL's message. */
async function visit(name: string, paths: CertificatePaths | null, caFile: string): Promise<string | null> {
  if (paths === null) throw new Error(`${name} has no certificate`);
  const server = createServer({ cert: await readFile(paths.cert), key: await readFile(paths.key) });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server has one
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const ca = await readFile(caFile);
  const socket = connect({ host: '127.0.0.1', port, servername: name, ca }, () => resolve(null));
  socket.once('error', (error) => resolve(error.message));
  return await promise.finally(() => {
    socket.destroy();
    server.close();
  });
}

test('a CA for one name signs that name, and clients refuse its certificates for other names', async () => {
  const ca = await ensureLocalCa(join(home, 'ca'), { onlyName: ONE });
  expect(await visit(ONE, await ca.pathsFor(ONE), ca.caFile)).toBeNull();
  for (const name of ['oauth2.googleapis.com', 'googleapis.com', TWO]) {
    expect(await visit(name, await ca.pathsFor(name), ca.caFile)).toBe('permitted subtree violation');
  }
  // The control: a certificate of a CA that isn't limited to one name is accepted.
  const any = await ensureLocalCa(join(home, 'any'));
  expect(await visit(TWO, await any.pathsFor(TWO), any.caFile)).toBeNull();
});

test.each([64, 128, 253])('a CA can be limited to a name of %i characters', async (length) => {
  const name = `${'a.'.repeat(length).slice(0, length - 1)}b`;
  const ca = await ensureLocalCa(join(home, 'ca'), { onlyName: name });
  expect(await visit(name, await ca.pathsFor(name), ca.caFile)).toBeNull();
  expect(await visit(TWO, await ca.pathsFor(TWO), ca.caFile)).toBe('permitted subtree violation');
});

test('a CA that isn’t limited to one name is replaced by one that is', async () => {
  const before = await readFile((await ensureLocalCa(join(home, 'ca'))).caFile, 'utf8');
  const limited = await ensureLocalCa(join(home, 'ca'), { onlyName: ONE });
  const after = await readFile(limited.caFile, 'utf8');
  expect(after).not.toBe(before);
  await ensureLocalCa(join(home, 'ca'), { onlyName: ONE });
  expect(await readFile(limited.caFile, 'utf8')).toBe(after);
});

test('each name has a CA of its own, which is read again after a restart', async () => {
  const cas = await openInsideCas(home);
  const [one, two] = await Promise.all([cas.caFileOf(ONE), cas.caFileOf(TWO), cas.caFileOf(ONE)]);
  expect(await visit(ONE, await cas.pathsFor(ONE), one)).toBeNull();
  expect(await visit(TWO, await cas.pathsFor(TWO), one)).not.toBeNull();
  const text = await readFile(two, 'utf8');
  const again = await openInsideCas(home);
  expect(again.id).toBe(cas.id);
  expect(await readFile(await again.caFileOf(TWO), 'utf8')).toBe(text);
});

test('the id of the authorities changes if they are lost', async () => {
  const { id } = await openInsideCas(home);
  await rm(home, { recursive: true });
  expect((await openInsideCas(home)).id).not.toBe(id);
});

test('authorities that are lost are made again from a secret: who trusts the old one accepts the new one', async () => {
  const cas = await openInsideCas(home, { secret: 'secret' });
  const trusted = join(await mkdtemp(join(tmpdir(), 'tagyard-trusted-')), 'ca.pem');
  await copyFile(await cas.caFileOf(ONE), trusted);
  const other = await cas.caFileOf(TWO);
  expect(await readFile(other, 'utf8')).not.toBe(await readFile(trusted, 'utf8'));
  await rm(home, { recursive: true });
  const again = await openInsideCas(home, { secret: 'secret' });
  expect(again.id).toBe(cas.id);
  expect(await visit(ONE, await again.pathsFor(ONE), trusted)).toBeNull();
  expect(await visit(TWO, await again.pathsFor(TWO), trusted)).not.toBeNull();
  await rm(dirname(trusted), { recursive: true });
});

test('the CA of a name is removed after one whole day in which the name was never served', async () => {
  let time = Date.now();
  const cas = await openInsideCas(home, { now: () => new Date(time) });
  const names = async () => (await readdir(home)).filter((name) => name !== 'id').sort();
  await Promise.all([cas.caFileOf(ONE), cas.caFileOf(TWO)]);
  const one = { host: ONE, tls: 'inside' as const };
  await cas.retain([one]);
  time += DAY_MS / 2;
  await cas.retain([one, { ...one, host: TWO }]);
  time += DAY_MS;
  await cas.retain([one]);
  expect(await names()).toEqual([ONE, TWO]);
  time += DAY_MS;
  await cas.retain([one]);
  expect(await names()).toEqual([ONE]);
  // A site of the same name gets another one.
  await cas.caFileOf(TWO);
  expect(await names()).toEqual([ONE, TWO]);
});

test('a folder that a container engine created in place of a CA’s file is replaced', async () => {
  const file = await (await openInsideCas(home)).caFileOf(ONE);
  await rm(file);
  await mkdir(file);
  const again = await openInsideCas(home);
  expect(await again.caFileOf(ONE)).toBe(file);
  expect(await readFile(file, 'utf8')).toContain('BEGIN CERTIFICATE');
});
