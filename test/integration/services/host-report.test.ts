import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkDns } from '../../../edge/verification/checks/names.ts';
import type { HostReport } from '../../../edge/verification/contract.ts';
import type { ProxyBackend, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { ARRIVAL_PATH } from '../../../gitops/appliers/proxy/policy.ts';
import { dnsLookup } from '../../../gitops/clients/dns-lookup.ts';
import { resolveNames } from '../../../gitops/host-report/names.ts';
import { readServedCertificate } from '../../../gitops/host-report/served-certificate.ts';
import { measureArrival } from '../../../gitops/host-report/visit.ts';
import { ensureLocalCa } from '../../../sites/local/local-ca.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { describeWith } from '../../support/components.ts';
import { type Knot, startKnot } from '../../support/dns/knot.ts';
import { manifestInput } from '../../support/manifest.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { ask, HOP_SECRET, proxyHome, put } from '../../support/proxy/proxy.ts';
import { startTlsFront } from '../../support/proxy/tls-front.ts';
import { startUpstream } from '../../support/upstream.ts';

const HOST = '198.51.100.4';
/** The address of the load balancer in front of the proxy. */
const OTHER = '198.51.100.5';

describeWith('knot', 'the names of a site, as a real name server answers them', () => {
  let knot: Knot;
  beforeAll(async () => {
    knot = await startKnot();
    await knot.update(
      'add acme-shop 300 A 203.0.113.10',
      'add acme-shop 300 AAAA 2001:db8::10',
      `add acme-shop-origin 300 A ${HOST}`,
      'add acme-shop-preview 300 A 192.0.2.9',
      'add one 300 CNAME two',
      'add two 300 CNAME acme-shop-origin',
      `add balanced 300 A ${OTHER}`,
      `add both 300 A ${HOST}`,
      'add both 300 A 192.0.2.10',
      'add loop 300 CNAME pool',
      'add pool 300 CNAME loop',
    );
  });
  afterAll(() => knot?.close());

  const manifest = manifestSchema.parse(
    manifestInput('acme-shop', 0, {
      domains: [{ domain: 'shop.example.net', webTagId: 'GTM-ABC1234', token: 'ct_container0tok0000' }],
      customDomains: [
        'one.example.net',
        'balanced.example.net',
        'both.example.net',
        'none.example.net',
        'loop.example.net',
      ],
    }),
  );
  const resolveAll = async (edgeTarget?: string, port = knot.port) =>
    await resolveNames(
      manifest,
      { hostAddresses: [HOST], otherAddresses: [OTHER], edgeTarget },
      dnsLookup([`127.0.0.1:${port}`], 2_000),
    );

  test('are reported with aliases, registrable domains and expected addresses', async () => {
    const names = await resolveAll();
    expect(names.find(({ name }) => name === 'one.example.net')).toEqual({
      name: 'one.example.net',
      kind: 'custom',
      addresses: [HOST],
      alias: 'acme-shop-origin.example.net',
      registrable: 'example.net',
      aliasRegistrable: 'example.net',
      expected: [HOST, OTHER],
      problem: null,
    });
    expect(names.find(({ kind }) => kind === 'edge')).toMatchObject({
      addresses: ['2001:db8::10', '203.0.113.10'],
      expected: [],
    });
    expect(names.find(({ kind }) => kind === 'page')).toMatchObject({
      name: 'shop.example.net',
      addresses: [],
      problem: 'no such name',
    });
  });

  test('are checked, each failure with what to do', async () => {
    const host = {
      names: await resolveAll(),
      site: { origin: 'https://acme-shop-origin.example.net' },
      certificates: [] as HostReport['certificates'],
    } as HostReport; // the members that checkDns reads
    const found = checkDns({ host } as Parameters<typeof checkDns>[0]);
    expect(
      Object.fromEntries(found.map(({ subject, status, detail }) => [subject, `${status}: ${detail}`])),
    ).toEqual({
      'acme-shop.example.net': 'passed: acme-shop.example.net resolves to 2001:db8::10, 203.0.113.10',
      'acme-shop-origin.example.net': `passed: acme-shop-origin.example.net resolves to ${HOST}`,
      'acme-shop-preview.example.net': `failed: acme-shop-preview.example.net resolves to 192.0.2.9; it must be ${HOST}`,
      'one.example.net': `passed: one.example.net resolves to ${HOST} by way of acme-shop-origin.example.net`,
      'balanced.example.net': `passed: balanced.example.net resolves to ${OTHER}`,
      'both.example.net': `failed: both.example.net resolves to 192.0.2.10; it must be ${HOST} or ${OTHER} or a CNAME to acme-shop-origin.example.net`,
      'none.example.net': `failed: none.example.net doesn’t resolve (no such name); it must be ${HOST} or ${OTHER} or a CNAME to acme-shop-origin.example.net`,
      'loop.example.net': expect.stringMatching(/^failed: loop\.example\.net doesn’t resolve/),
    });
    expect(found.filter(({ status, fix }) => status === 'failed' && !fix)).toEqual([]);
  });

  test.each([
    ['an address', '203.0.113.10', ['203.0.113.10']],
    ['a name with {host} in it', '{host}', ['2001:db8::10', '203.0.113.10']],
    ['a name that can’t be resolved', '{host}.elsewhere.example', []],
  ])('have the edge’s expected addresses from EDGE_TARGET: %s', async (_what, target, expected) => {
    expect((await resolveAll(target)).find(({ kind }) => kind === 'edge')).toMatchObject({ expected });
  });

  test('are reported with a problem if no name server answers', async () => {
    const names = await resolveAll(undefined, 9);
    expect(names.every(({ addresses, problem }) => addresses.length === 0 && problem !== null)).toBe(true);
    expect(names[0]?.problem).toMatch(/ECONNREFUSED|ETIMEOUT/);
  });
});

describe('the certificate that is served for a name', () => {
  const DAY_MS = 86_400_000;
  let home: Awaited<ReturnType<typeof proxyHome>>;
  beforeAll(async () => {
    home = await proxyHome();
  });
  afterAll(() => home?.remove());

  async function shown(name: string, issuedDaysAgo: number, certificateOf = name) {
    const issued = new Date(Date.now() - issuedDaysAgo * DAY_MS);
    const ca = await ensureLocalCa(join(home.directory, `ca-${issuedDaysAgo}`), { now: () => issued });
    const front = await startTlsFront({ pathsFor: () => ca.pathsFor(certificateOf) }, () => () => undefined);
    try {
      return await readServedCertificate({ name, address: '127.0.0.1', port: front.port }, 10_000);
    } finally {
      await front.close();
    }
  }

  test.each([
    [0, 397],
    [384, 13],
    [400, -3],
  ])('issued %i days ago is reported with its end, %i days from now', async (ago, left) => {
    const { validTo, covers, problem } = await shown('shop.example.net', ago);
    expect(Math.round((Date.parse(validTo ?? '') - Date.now()) / DAY_MS)).toBe(left);
    expect({ covers, problem }).toEqual({ covers: true, problem: null });
  });

  test('of another name is reported as not covering the name', async () => {
    expect(await shown('shop.example.net', 0, 'other.example.net')).toMatchObject({
      covers: false,
      problem: null,
    });
  });

  test('is reported as missing, with the reason, if no server answers', async () => {
    const missing = await readServedCertificate({ name: 'a.example', address: '127.0.0.1', port: 9 }, 10_000);
    expect(missing).toEqual({
      name: 'a.example',
      validTo: null,
      covers: false,
      problem: expect.stringContaining('ECONNREFUSED'),
    });
  });
});

function arrivals(name: string, backendOf: (settings: ProxySettings) => ProxyBackend): void {
  describe(`the address that arrives at an origin of ${name}`, () => {
    const ORIGIN = 'acme-origin.example.net';
    const PREVIEW = 'acme-preview.example.net';
    let home: Awaited<ReturnType<typeof proxyHome>>;
    let upstream: Awaited<ReturnType<typeof startUpstream>>;
    let backend: ProxyBackend;
    beforeAll(async () => {
      home = await proxyHome();
      upstream = await startUpstream({ name: 'processing' });
      backend = backendOf(home.settings);
      await backend.start();
      const upstreams = [{ address: upstream.address, port: upstream.port }];
      const vhosts = [
        { kind: 'origin' as const, host: ORIGIN, upstreams },
        { kind: 'preview' as const, host: PREVIEW, upstreams },
      ];
      const [outcome] = await backend.install([put('acme', { site: 'acme', vhosts })]);
      expect(outcome).toMatchObject({ status: 'fulfilled' });
    });
    afterAll(async () => {
      await backend?.close();
      await upstream?.close();
      await home?.remove();
    });
    const arrivedAs = (headers: Record<string, string>, host = ORIGIN, path = ARRIVAL_PATH) =>
      ask(backend.endpoint(), { host, path, headers });

    test('is the address of the peer, whatever a client claims', async () => {
      const before = upstream.seen.length;
      expect(await arrivedAs({ 'x-forwarded-for': '192.0.2.1' })).toMatchObject({
        status: 200,
        body: '127.0.0.1',
      });
      expect(upstream.seen).toHaveLength(before);
    });

    test('is the address that the edge forwards with the hop secret', async () => {
      const headers = { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-for': '203.0.113.7' };
      expect(await arrivedAs(headers)).toMatchObject({ status: 200, body: '203.0.113.7' });
      expect(await arrivedAs({ ...headers, 'x-tagyard-hop-secret': 'guess' })).toMatchObject({
        body: '127.0.0.1',
      });
    });

    test('is returned on no other path or host: those requests reach the containers', async () => {
      const before = upstream.seen.length;
      await arrivedAs({}, ORIGIN, '/_/tagyard/other');
      await arrivedAs({}, PREVIEW);
      expect(upstream.seen.slice(before).map(({ url }) => url)).toEqual(['/_/tagyard/other', ARRIVAL_PATH]);
    });

    test('is reported correctly by a visit that the host makes', async () => {
      const { address, tlsPort: port } = backend.endpoint();
      const visit = {
        hostAddresses: [HOST],
        edge: 'shop.example.net',
        hopSecret: 'a-secret-of-the-hops',
        lookup: () => undefined,
        timeoutMs: 10_000,
      };
      const way = { url: new URL(`https://${ORIGIN}:${port}`), socket: { address, port } };
      expect(await measureArrival(way, visit)).toEqual({
        name: ORIGIN,
        from: ['127.0.0.1', HOST],
        as: '127.0.0.1',
        problem: null,
      });
    });
  });
}
arrivals('the embedded proxy', embeddedBackend);
describeWith('nginx', 'with nginx', () => {
  arrivals('nginx', (settings) => nginxBackend({ ...settings, ...NGINX_SETTINGS }));
});

describe('a visit that the host makes', () => {
  const visit = {
    hostAddresses: [HOST],
    edge: 'shop.example.net',
    hopSecret: 'a-secret-of-the-hops',
    lookup: () => undefined,
    timeoutMs: 10_000,
  };
  async function answeredBy(handler: http.RequestListener) {
    const server = http.createServer(handler);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo; // it listens on TCP
    try {
      return await measureArrival(
        { url: new URL(`http://shop.example.net:${port}`), socket: { address: '127.0.0.1', port } },
        visit,
      );
    } finally {
      server.closeAllConnections();
      server.close();
    }
  }

  test('detects that a forged address is accepted on its way', async () => {
    const arrival = await answeredBy(({ headers }, response) => response.end(headers['x-forwarded-for']));
    expect(arrival).toMatchObject({ as: '192.0.2.1', from: ['127.0.0.1', HOST] });
  });

  test('reports why a visit did not arrive', async () => {
    expect(await answeredBy((_request, response) => response.writeHead(530).end())).toMatchObject({
      as: null,
      problem: 'status 530',
    });
    expect(await answeredBy((request) => request.socket.destroy())).toMatchObject({
      as: null,
      problem: expect.stringContaining('socket hang up'),
    });
  });
});
