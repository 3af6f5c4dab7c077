import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureLocalCa } from '../../../gitops/embedded/local-ca.ts';
import { checkEdgeNames } from '../../../gitops/host-report/edge-names.ts';
import { startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';

const COVERED = 'shop.eu.example.net';
const dir = mkdtempSync(join(tmpdir(), 'tagyard-edge-names-'));
const server = createServer();
let cloudflare: TestEmulator;
beforeAll(async () => {
  const { cert, key } = await (await ensureLocalCa(dir)).pathsFor(COVERED);
  server.setSecureContext({ cert: readFileSync(cert), key: readFileSync(key) });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cloudflare = await startEmulator();
});
afterAll(async () => {
  server.close();
  await cloudflare.close();
  rmSync(dir, { recursive: true, force: true });
});

const check = (hosts: string[], edgePublicUrl = 'https://{host}', zoneId = cloudflare.zone.id) =>
  checkEdgeNames(
    {
      client: cloudflare.client(),
      zoneId,
      edgePublicUrl,
      lookup: { addresses: async () => ['127.0.0.1'], alias: async () => null },
      port: (server.address() as AddressInfo).port, // a TCP server has one
    },
    hosts,
  );

test.each([
  ['directly under the zone', ['shop.example.net', 'example.net']],
  ['deeper with a certificate of their own', ['shop.example.net', COVERED]],
  ['that don’t exist yet', []],
])('names %s pass', async (_what, hosts) => {
  expect(await check(hosts)).toMatchObject({ name: 'edge_names', status: 'passed', fix: null });
});

test('names deeper than one label without a certificate fail, with what to do (docs/facts.md, Cloudflare Workers)', async () => {
  expect(await check(['shop.example.net', 'other.eu.example.net', COVERED])).toMatchObject({
    status: 'failed',
    detail:
      'no certificate covers other.eu.example.net: the universal certificate of example.net covers one label under it',
    fix: expect.stringContaining('directly under example.net'),
  });
});

test('names without TLS pass, and an unreadable zone skips the check', async () => {
  expect(await check(['a.b.example.net'], 'http://{host}')).toMatchObject({ status: 'passed' });
  expect(await check(['a.b.example.net'], 'https://{host}', 'f'.repeat(32))).toMatchObject({
    status: 'skipped',
  });
});
