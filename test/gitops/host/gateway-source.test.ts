import { createPrivateKey, X509Certificate } from 'node:crypto';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cloudflareClient } from '../../../gitops/clients/cloudflare.ts';
import { readEnv } from '../../../gitops/env.ts';
import { addressesOf, gatewaySource } from '../../../gitops/host/gateway-source.ts';
import { instanceDocument } from '../../../gitops/kubernetes/delivery/documents.ts';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';

let folder: string;
const stack = new AsyncDisposableStack();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tagyard-source-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const ca = await ensureLocalCa(join(folder, 'ca'));
  const { cert, key } = await ca.pathsFor('*.example.net');
  await writeFile(join(folder, 'age-identity'), await generateIdentity());
  await mkdir(join(folder, 'tls'));
  await cp(cert, join(folder, 'tls/_.example.net.pem'));
  await cp(key, join(folder, 'tls/_.example.net.key'));
});
afterAll(() => stack.disposeAsync());

async function sourceOf(settings: NodeJS.ProcessEnv, current: () => string | null = () => '192.0.2.1') {
  const env = readEnv({
    SITES_REPO: folder,
    STATE_DIR: join(folder, 'state'),
    HOP_SECRET: 'hop-secret-of-the-tests',
    AGE_IDENTITY_FILE: join(folder, 'age-identity'),
    CLOUDFLARE_API_TOKEN: 'a-token',
    CLOUDFLARE_ACCOUNT_ID: 'an-account',
    CLOUDFLARE_ZONE_ID: 'a-zone',
    EDGE_DOMAIN: 'example.net',
    TLS_DIR: join(folder, 'tls'),
    ...settings,
    HOST_KIND: 'kubernetes',
  });
  if (env.HOST_KIND !== 'kubernetes') throw new Error('it isn’t the environment of a cluster');
  return await gatewaySource(env, stack, {
    log: { info() {}, warn() {} },
    now: Date.now,
    cloudflare: cloudflareClient({ url: 'http://127.0.0.1:9', token: 'a-token', accountId: 'an-account' }),
    destination: () => ({ current }),
  });
}

const GATEWAY = { KUBERNETES_GATEWAY_NAMESPACE: 'gateways', EDGE_UPSTREAM: 'https://192.0.2.7' };

test('without a namespace of gateways, nothing is delivered and nothing else is needed', async () => {
  expect(await sourceOf({ TLS_DIR: '' })).toBeNull();
});

test.each([
  [{ ...GATEWAY, EDGE_UPSTREAM: '' }, 'set EDGE_UPSTREAM'],
  [{ ...GATEWAY, TLS_DIR: '' }, 'set TLS_DIR or ACME_DIRECTORY_URL'],
])('says which setting is missing: %o', async (settings, message) => {
  await expect(sourceOf(settings)).rejects.toThrow(message);
});

test('the document of the instance has the values of the settings', async () => {
  const settings = { HOP_SECRET_PREVIOUS: 'the-secret-before-it', TRUSTED_PROXIES: '10.1.0.0/16' };
  const delivered = await sourceOf({ ...GATEWAY, ...settings });
  const document = instanceDocument.parse(delivered?.source.instance());
  expect(document).toMatchObject({
    hopSecret: { current: 'hop-secret-of-the-tests', previous: 'the-secret-before-it' },
    edge: { scheme: 'https', address: '192.0.2.7', port: 443 },
    trusted: { own: ['10.1.0.0/16'] },
  });
  expect(document.trusted.cloudflare.length).toBeGreaterThan(10);
  expect(document).not.toHaveProperty('challengeKey');
});

test('an operator’s certificate and its key are delivered as two separate texts', async () => {
  const delivered = await sourceOf(GATEWAY);
  const pair = await delivered?.source.pairs.pairFor({ host: 'acme-origin.example.net', tls: 'files' });
  if (!pair) throw new Error('there is no pair for the wildcard');
  expect(new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))).toBe(true);
  expect(pair.cert).not.toContain('PRIVATE');
  expect(pair.key).not.toContain('CERTIFICATE');
  const other = delivered?.source.pairs.pairFor({ host: 'tags.shop.example', tls: 'files' });
  await expect(other).rejects.toThrow('no certificate for tags.shop.example');
});

test('a destination is an address, or the addresses of its name', async () => {
  const lookup = { addresses: async (name: string) => (name === 'lb.example.net' ? ['192.0.2.8'] : []) };
  expect(await addressesOf('192.0.2.1', lookup)).toEqual(['192.0.2.1']);
  expect(await addressesOf('lb.example.net', lookup)).toEqual(['192.0.2.8']);
  expect(await addressesOf(null, lookup)).toEqual([]);
});

test('with an authority, gateways get the thumbprint by which they answer its challenges', async () => {
  const acme = { TLS_DIR: '', ACME_DIRECTORY_URL: 'https://127.0.0.1:9/directory' };
  const delivered = await sourceOf({ ...GATEWAY, ...acme });
  expect(instanceDocument.parse(delivered?.source.instance()).challengeKey).toMatch(/^[\w-]{43}$/);
  const ordered = { host: 'acme-origin.example.net', tls: 'acme' } as const;
  expect(await delivered?.source.pairs.pairFor(ordered)).toBeNull();
});

const UNKNOWN = 'the address of the cluster’s gateway isn’t known yet';

test.each([
  [
    'another than the gateway’s',
    '192.0.2.1',
    '192.0.2.2',
    'pending_dns',
    'it must be 192.0.2.1 or 192.0.2.2',
  ],
  ['a further one of the host', null, '127.0.0.1', 'pending_certificate', UNKNOWN],
  ['one that can’t be judged', null, '192.0.2.2', 'pending_dns', `can’t be checked (${UNKNOWN})`],
])(
  'the address of a name with an ordered certificate is %s',
  async (_what, address, further, state, reason) => {
    const end = [state, reason] as const;
    await expectStatuses({ ACME_ADDRESSES: further }, () => address, [end, end]);
  },
);

test('a check that finds no address of the gateway doesn’t change what other names are compared with', async () => {
  // Only the first check, that of the origin hostname, finds the address.
  const known = ['127.0.0.1'];
  await expectStatuses(
    { ACME_ADDRESSES: '192.0.2.2', STATE_DIR: join(folder, 'state-of-a-late-check') },
    () => known.pop() ?? null,
    [
      ['pending_certificate', UNKNOWN],
      ['pending_dns', `can’t be checked (${UNKNOWN})`],
    ],
  );
});

/** Waits for the state and the end of the reason of a site's origin and preview hostname. They resolve to 127.0.0.1. */
async function expectStatuses(
  settings: NodeJS.ProcessEnv,
  current: () => string | null,
  expected: readonly (readonly [state: string, end: string])[],
) {
  const authority = { ACME_DIRECTORY_URL: 'https://127.0.0.1:9/directory' };
  const delivered = await sourceOf({ ...GATEWAY, ...authority, ...settings }, current);
  if (delivered === null) throw new Error('there is no source for gateways');
  const { certificates } = delivered;
  const hostnames = {
    edge: 'shop.localhost',
    origin: 'shop-origin.localhost',
    preview: 'shop-preview.localhost',
  };
  const manifest = loadedManifest('shop', 0, { tls: { mode: 'acme' }, hostnames });
  certificates.start(() => undefined);
  try {
    certificates.follow({
      revision: 'one',
      sites: new Map([['shop', { site: 'shop', blob: 'blob', manifest, stalled: null }]]),
      onOtherHosts: new Map(),
    });
    await eventually(() => {
      const statuses = certificates.statuses('shop');
      const ends = statuses.map(({ state, reason }, index) => [
        state,
        reason.slice(-(expected[index]?.[1] ?? '').length),
      ]);
      expect(ends).toEqual(expected);
    });
  } finally {
    await certificates.stop();
  }
}
