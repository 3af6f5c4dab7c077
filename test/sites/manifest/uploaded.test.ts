import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proxyResources } from '../../../gitops/appliers/proxy/desired.ts';
import { ensureLocalCa, type LocalCa } from '../../../sites/local/local-ca.ts';
import { tlsOf } from '../../../sites/manifest/certificate-check.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { loadedManifest, manifestInput } from '../../support/manifest.ts';

const CUSTOM = 'metrics.acme-shop.example';
const { containerConfig: KEY } = manifestInput();

let home: string;
let ca: LocalCa;
let certificate: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-uploaded-'));
  ca = await ensureLocalCa(home);
  certificate = await readFile((await ca.pathsFor(CUSTOM)).cert, 'utf8');
});
afterAll(() => rm(home, { recursive: true, force: true }));

test('an uploaded pair serves the names that it covers, and others keep their source', () => {
  const uploaded = { mode: 'uploaded' as const, certificate };
  expect(tlsOf(uploaded, CUSTOM)).toBe('uploaded');
  expect(tlsOf(uploaded, 'www.acme-shop.example')).toBe('files');
  expect(tlsOf({ ...uploaded, others: 'acme' }, 'www.acme-shop.example')).toBe('acme');
  expect(tlsOf({ mode: 'acme' }, CUSTOM)).toBe('acme');
});

test('another pair changes the vhosts of the names that it covers only', () => {
  const hashes = (key: string) => {
    const tls = { mode: 'uploaded' as const, certificate, key: KEY };
    const manifest = loadedManifest('acme-shop', 0, { customDomains: [CUSTOM], tls });
    const settings = { slots: new Slots('127.94'), originPort: 443 };
    return proxyResources({ ...manifest, tlsKey: new Secret(key) }, settings).map(({ hash }) => hash);
  };
  const [site, custom] = hashes('one');
  expect(hashes('two')[0]).toBe(site);
  expect(hashes('two')[1]).not.toBe(custom);
});

test('a manifest has the whole pair with that mode, and nothing of it with another', () => {
  const problems = (tls: object) =>
    manifestSchema
      .safeParse({ ...manifestInput(), tls })
      .error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  expect(problems({ mode: 'uploaded', certificate, key: KEY })).toBeUndefined();
  expect(problems({ mode: 'uploaded', certificate })).toEqual(['tls.key is missing for mode: uploaded']);
  expect(problems({ mode: 'uploaded', key: KEY })).toEqual(['tls.certificate is missing for mode: uploaded']);
  expect(problems({ mode: 'acme', others: 'files' })).toEqual(['tls.others is only for mode: uploaded']);
  expect(problems({ mode: 'uploaded', certificate, key: 'in plain' })).toEqual([
    expect.stringContaining('tls.key must be age-encrypted'),
  ]);
});
