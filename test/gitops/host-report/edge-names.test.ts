import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, createServer } from 'node:tls';
import getPort from 'get-port';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { checkEdgeNames } from '../../../gitops/host-report/edge-names.ts';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';
import { startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';

const COVERED = 'shop.eu.example.net';
const dir = mkdtempSync(join(tmpdir(), 'tagyard-edge-names-'));
/** Names for which a connection was made. */
const asked: string[] = [];
const server = createServer({
  SNICallback: (name, done) => {
    asked.push(name);
    done(null);
  },
});
let cloudflare: TestEmulator;
beforeAll(async () => {
  server.setSecureContext(await certificateFor(COVERED));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cloudflare = await startEmulator();
});
afterAll(async () => {
  server.close();
  await cloudflare.close();
  rmSync(dir, { recursive: true, force: true });
});

beforeEach(() => {
  asked.length = 0;
});

const certificateFor = async (host: string) => {
  const { cert, key } = await (await ensureLocalCa(dir)).pathsFor(host);
  return { cert: readFileSync(cert), key: readFileSync(key) };
};
const portOf = (at: Server) => (at.address() as AddressInfo).port; // a TCP server has one
const check = (
  hosts: string[],
  edgePublicUrl = 'https://{host}',
  zoneId = cloudflare.zone.id,
  at: Server = server,
) =>
  checkEdgeNames(
    {
      client: cloudflare.client(),
      zoneId,
      edgePublicUrl,
      lookup: { addresses: async () => ['127.0.0.1'], alias: async () => null },
      port: portOf(at),
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
    fix: expect.stringContaining('directly under the zone'),
  });
});

test('names for which the edge has no certificate, so that it refuses the handshake, fail', async () => {
  const bare = createServer();
  await new Promise<void>((resolve) => bare.listen(0, '127.0.0.1', resolve));
  try {
    expect(await check([COVERED], 'https://{host}', undefined, bare)).toMatchObject({
      status: 'failed',
      detail: expect.stringContaining(`no certificate covers ${COVERED}`),
    });
  } finally {
    bare.close();
  }
});

const DEEP = 'other.eu.example.net';
const here = async () => ['127.0.0.1'];
const plain = createHttpServer();
test.each<[string, () => Promise<string[]>, string, Server?]>([
  ['lookup fails', () => Promise.reject(new Error('queryA ETIMEOUT')), 'queryA ETIMEOUT'],
  ['lookup finds no address', async () => [], 'it has no address'],
  ['edge refuses the connection', here, 'connect ECONNREFUSED'],
  ['edge answers without TLS', here, 'wrong version number', plain],
])('a name is not checked if its %s', async (_what, addresses, why, at) => {
  if (at !== undefined) await new Promise<void>((resolve) => at.listen(0, '127.0.0.1', resolve));
  const deps = {
    client: cloudflare.client(),
    zoneId: cloudflare.zone.id,
    edgePublicUrl: 'https://{host}',
    lookup: { addresses, alias: async () => null },
    port: at === undefined ? await getPort({ host: '127.0.0.1' }) : portOf(at),
  };
  const unchecked = `no edge hostname deeper than one label under example.net was checked (${DEEP}: `;
  try {
    // That the universal certificate covers another name is no reason to pass.
    for (const hosts of [[DEEP], ['shop.example.net', DEEP]]) {
      const result = await checkEdgeNames(deps, hosts);
      expect(result).toMatchObject({
        status: 'skipped',
        detail: expect.stringContaining(unchecked),
        fix: null,
      });
      expect(result.detail).toContain(why);
    }
  } finally {
    at?.close();
  }
});

test('names that can’t be checked beside one that is covered are counted', async () => {
  const deps = {
    client: cloudflare.client(),
    zoneId: cloudflare.zone.id,
    edgePublicUrl: 'https://{host}',
    lookup: {
      addresses: async (name: string) => (name === COVERED ? ['127.0.0.1'] : []),
      alias: async () => null,
    },
    port: portOf(server),
  };
  const checked = 'each of 2 edge hostnames is covered by a certificate';
  expect(await checkEdgeNames(deps, ['shop.example.net', COVERED, DEEP])).toMatchObject({
    status: 'passed',
    detail: `${checked}; 1 more were not checked (${DEEP}: it has no address)`,
  });
});

test('a certificate for a level is read by one connection, and covers all names of the level', async () => {
  const wide = await certificateFor('*.eu.example.net');
  const hosts = Array.from({ length: 300 }, (_, index) => `site-${index}.eu.example.net`);
  try {
    server.setSecureContext(wide);
    expect(await check(hosts)).toMatchObject({
      status: 'passed',
      detail: 'each of 300 edge hostnames is covered by a certificate',
    });
    expect(asked).toEqual(['site-0.eu.example.net']);
  } finally {
    server.setSecureContext(await certificateFor(COVERED));
  }
});

test('names beyond the limit of ten connections are reported as not checked', async () => {
  const hosts = Array.from({ length: 12 }, (_, index) => `shop.level-${index}.example.net`);
  const covered = new Map(
    await Promise.all(hosts.map(async (host) => [host, await certificateFor(host)] as const)),
  );
  const byName = createServer({
    SNICallback: (name, done) => {
      const pair = covered.get(name);
      done(null, pair && createSecureContext(pair));
    },
  });
  await new Promise<void>((resolve) => byName.listen(0, '127.0.0.1', resolve));
  try {
    expect(await check(['shop.example.net', ...hosts], 'https://{host}', undefined, byName)).toMatchObject({
      status: 'passed',
      detail: 'each of 11 edge hostnames is covered by a certificate; 2 more were not checked',
    });
  } finally {
    byName.close();
  }
});

test('the check ends in time where an API, a lookup or a server hangs', async () => {
  const hang = () => new Promise<never>(() => undefined);
  const silent = createTcpServer();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const deps = {
    client: cloudflare.client(),
    zoneId: cloudflare.zone.id,
    edgePublicUrl: 'https://{host}',
    lookup: { addresses: async () => ['127.0.0.1'], alias: async () => null },
    port: portOf(silent),
    timeoutMs: 100,
  };
  try {
    const late = { detail: 'no answer within 0.1 s' };
    expect(await checkEdgeNames({ ...deps, client: { zone: hang } }, [COVERED])).toMatchObject({
      status: 'skipped',
      ...late,
    });
    expect(await checkEdgeNames(deps, [COVERED])).toMatchObject({ status: 'skipped', ...late });
    const lookup = { addresses: hang, alias: hang };
    expect(await checkEdgeNames({ ...deps, lookup }, [COVERED])).toMatchObject({
      status: 'skipped',
      ...late,
    });
  } finally {
    silent.close();
  }
});

test('names without TLS pass, and an unreadable zone skips the check', async () => {
  expect(await check(['a.b.example.net'], 'http://{host}')).toMatchObject({ status: 'passed' });
  expect(await check(['a.b.example.net'], 'https://{host}', 'f'.repeat(32))).toMatchObject({
    status: 'skipped',
  });
});
