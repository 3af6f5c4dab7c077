import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { trustedCas } from '../../../../gitops/appliers/containers/trusted-cas.ts';
import { openInsideCas } from '../../../../sites/local/inside-cas.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tagyard-cas-'));
  await writeFile(at('own.pem'), `${OWN}\n`);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const OWN = '-----BEGIN CERTIFICATE-----\nown\n-----END CERTIFICATE-----';
const SPEC = { previewHost: 'acme-preview-01234' };
const at = (name: string) => join(directory, name);
const inside = () => openInsideCas(at('inside'));

test('a container trusts the CA of its own preview server and the operator’s, in one file that it can read', async () => {
  const cas = await inside();
  const plain = await trustedCas(undefined, cas);
  const ca = await readFile((await plain.caFileOf?.(SPEC)) ?? '', 'utf8');
  const both = await trustedCas(at('own.pem'), cas);
  const [file = ''] = await Promise.all([both.caFileOf?.(SPEC), both.caFileOf?.(SPEC)]);
  expect(await readFile(file, 'utf8')).toBe(`${ca.trim()}\n${OWN}\n`);
  expect((await stat(file)).mode & 0o777).toBe(0o644);
  const other = await readFile((await both.caFileOf?.({ previewHost: 'other-preview-01234' })) ?? '', 'utf8');
  expect(other).toContain(OWN);
  expect(other).not.toContain(ca.trim());
  expect(both.caHash).not.toBe(plain.caHash);

  // Containers mount the file itself, so a file that hasn't changed is not replaced.
  const { ino } = await stat(file);
  const again = await trustedCas(at('own.pem'), await inside());
  expect(await again.caFileOf?.(SPEC)).toBe(file);
  expect(again.caHash).toBe(both.caHash);
  expect((await stat(file)).ino).toBe(ino);
});

test('the file is there again for a site that was removed and comes back days later', async () => {
  let time = new Date('2026-01-01T00:00:00Z');
  const cas = await openInsideCas(at('inside'), { now: () => time });
  const { caFileOf } = await trustedCas(at('own.pem'), cas);
  const file = (await caFileOf?.(SPEC)) ?? '';
  await cas.retain?.([]);
  time = new Date('2026-01-03T00:00:00Z');
  await cas.retain?.([]);
  await expect(stat(file)).rejects.toThrow('ENOENT');
  expect(await caFileOf?.(SPEC)).toBe(file);
  const ca = await readFile(await cas.caFileOf(SPEC.previewHost), 'utf8');
  expect(await readFile(file, 'utf8')).toBe(`${ca.trim()}\n${OWN}\n`);
});

test('a container with a policy script also trusts the CA of the name that serves it', async () => {
  const cas = await inside();
  const policyHost = 'acme-policy-01234';
  const own = await trustedCas(at('own.pem'), cas);
  const text = await readFile((await own.caFileOf?.({ ...SPEC, policyHost })) ?? '', 'utf8');
  const parts = [SPEC.previewHost, policyHost].map(async (name) =>
    (await readFile(await cas.caFileOf(name), 'utf8')).trim(),
  );
  for (const part of [...(await Promise.all(parts)), OWN]) expect(text).toContain(part);
});

test('a folder is replaced if a container engine created it in place of the mounted file', async () => {
  const file = (await (await trustedCas(at('own.pem'), await inside())).caFileOf?.(SPEC)) ?? '';
  await replaceByFolder(file);
  const again = await trustedCas(at('own.pem'), await inside());
  expect(await readFile((await again.caFileOf?.(SPEC)) ?? '', 'utf8')).toContain(OWN);
});

test('without networks, child processes read the operator’s file itself', async () => {
  expect(await trustedCas(at('own.pem'), null)).toEqual({ caFile: at('own.pem') });
  expect(await trustedCas(undefined, null)).toEqual({});
});

describe.each([
  ['with networks', inside],
  ['without networks', async () => null],
])('%s, an operator’s CA', (_how, authorities) => {
  test.each([
    ['doesn’t exist yet', () => rm(at('own.pem')), /ENOENT/],
    ['is an empty folder, as a mount point is', () => replaceByFolder(at('own.pem')), /EISDIR/],
    ['is still empty', () => writeFile(at('own.pem'), ''), /no certificate/],
  ])('that %s stops the start: the containers keep what they trust', async (_what, spoil, reason) => {
    const cas = await authorities();
    await trustedCas(at('own.pem'), cas);
    await spoil();
    const failure = await trustedCas(at('own.pem'), cas).catch((error: Error) => error);
    expect(failure).toMatchObject({ message: expect.stringMatching(reason) });
    expect(failure).toMatchObject({ message: expect.stringContaining(`CONTAINER_CA_FILE ${at('own.pem')}`) });
  });
});

async function replaceByFolder(path: string): Promise<void> {
  await rm(path);
  await mkdir(path);
}
