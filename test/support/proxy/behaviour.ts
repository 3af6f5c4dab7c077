import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TOLD_HEADERS } from '../../../edge/http/request-headers.ts';
import type { ProxyBackend, ProxyEndpoint, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { stopNginx } from '../../../gitops/appliers/proxy/nginx/process.ts';
import { CLAIMS } from '../../../gitops/appliers/proxy/policy.ts';
import type { VhostOptions } from '../../../sites/manifest/schema.ts';
import { type Seen, startUpstream } from '../upstream.ts';
import { ask, HOP_SECRET, proxyHome, put } from './proxy.ts';

const ORIGIN = 'acme-origin.example.net';
const PREVIEW = 'acme-preview.example.net';
/** The preview server’s name in the site’s network. */
const INSIDE = 'acme-preview-01234';
const POLICY = 'acme-policy-01234';
const TOKEN = '0123456789abcdef'.repeat(2);
const CUSTOM = 'metrics.acme.example';
const EDGE = 'acme.example.net';

const MIB = 1024 * 1024;

/** Peers that are trusted in these tests. */
const CLOUDFLARE = '127.0.0.8';
const BALANCER = '127.0.0.9';

/** Everything that a client could say of itself; an honest proxy lets none of it through. */
const SPOOFED = {
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'gopher',
  'x-forwarded-port': '1',
  'x-real-ip': '203.0.113.9',
  'true-client-ip': '203.0.113.9',
  'x-forwarded': '203.0.113.9',
  'forwarded-for': '203.0.113.9',
  'x-originating-ip': '203.0.113.9',
  'x-appengine-user-ip': '203.0.113.9',
  'fly-client-ip': '203.0.113.9',
  'x-geo-country': 'XX',
  'x-tagyard-forwarder-token': 'ft_guess',
  'x-tagyard-visitor': '203.0.113.9',
  'x-tagyard-host': 'evil.example',
  'x-tagyard-scheme': 'gopher',
  'x-forwarded-country': 'XX',
  'x-forwarded-region': 'YY',
  'cf-ipcountry': 'XX',
  'cf-connecting-ip': '203.0.113.9',
  forwarded: 'for=203.0.113.9;host=evil.example',
};

const at = ({ address, port }: { readonly address: string; readonly port: number }) => [{ address, port }];

/** How every proxy treats requests, whatever it is made of; run for each over real sockets. */
export function proxyBehaviour(
  name: string,
  backendOf: (settings: ProxySettings) => ProxyBackend,
  claims: Readonly<Record<keyof typeof CLAIMS.host, string>> = CLAIMS.host,
): void {
  describe(`${name} behaves as a proxy of Tagyard`, () => {
    let home: Awaited<ReturnType<typeof proxyHome>>;
    let container: Awaited<ReturnType<typeof startUpstream>>;
    let preview: Awaited<ReturnType<typeof startUpstream>>;
    let edge: Awaited<ReturnType<typeof startUpstream>>;
    let settings: ProxySettings;
    let backend: ProxyBackend;
    let endpoint: ProxyEndpoint;
    let release: () => void = () => undefined;

    beforeAll(async () => {
      home = await proxyHome();
      container = await startUpstream({
        name: 'processing',
        handle(request, response) {
          if (request.url !== '/stream') return false;
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write('first\n');
          release = () => response.end('last\n');
          return true;
        },
      });
      preview = await startUpstream({ name: 'preview' });
      const certificate = await home.ca.pathsFor(EDGE);
      const tls = {
        cert: await readFile(certificate.cert, 'utf8'),
        key: await readFile(certificate.key, 'utf8'),
      };
      edge = await startUpstream({ name: 'edge', tls });
      settings = {
        ...home.settings,
        edgeUpstream: { scheme: 'https', address: edge.address, port: edge.port },
        trusted: () => ({ cloudflare: [`${CLOUDFLARE}/32`], own: [`${BALANCER}/32`] }),
      };
      backend = backendOf(settings);
      endpoint = await backend.start();
      const site: ProxySpec = {
        site: 'acme',
        vhosts: [
          { kind: 'origin', host: ORIGIN, upstreams: at(container) },
          { kind: 'preview', host: PREVIEW, upstreams: at(preview) },
          { kind: 'preview', host: INSIDE, tls: 'inside', upstreams: at(preview) },
        ],
      };
      const custom: ProxySpec = { site: 'acme', vhosts: [{ kind: 'custom', host: CUSTOM, edgeHost: EDGE }] };
      const outcomes = await backend.install([put('acme', site), put(`acme/${CUSTOM}`, custom)]);
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
    });
    afterAll(async () => {
      await backend?.close();
      await Promise.all([container?.close(), preview?.close(), edge?.close()]);
      await home?.remove();
    });

    test('answers the policy script under its name and token, byte for byte', async () => {
      // Longer than nginx's configuration language lets a word be, with every character that has a meaning there.
      const script = `gtag('policy', 'all', () => "\\n\${1}" !== '$host;{}' /* ü */);\n\t// ${'$x'.repeat(3_000)}\n`;
      const vhost = { kind: 'policy', host: POLICY, tls: 'inside', token: TOKEN, script } as const;
      const install = (one: ProxySpec | null) => backend.install([put('acme/policy', one)]);
      expect(await install({ site: 'acme', vhosts: [vhost] })).toMatchObject([{ status: 'fulfilled' }]);
      const installed = await backend.installed();
      expect(installed.find(({ key }) => key === 'acme/policy')).toMatchObject({ intact: true });
      const ca = await readFile(home.ca.caFile, 'utf8');
      const { tlsPort, policyPort = tlsPort }: ProxyEndpoint & { policyPort?: number } = endpoint;
      const own = { ...endpoint, tlsPort: policyPort };
      const at = async (path: string) => await ask(own, { host: POLICY, path, ca });
      const answer = await at(`/${TOKEN}/0123.js`);
      expect([answer.status, answer.headers['content-type']]).toEqual([
        200,
        'text/javascript; charset=utf-8',
      ]);
      expect(answer.body).toBe(script);
      for (const path of [
        '/',
        '/0123.js',
        `/${TOKEN}`,
        `/${TOKEN.replace('0', '1')}/0123.js`,
        `/a/${TOKEN}/`,
      ]) {
        const refused = await at(path);
        expect([path, refused.status, refused.body.includes('gtag')]).toEqual([path, 404, false]);
      }
      expect((await ask(endpoint, { host: PREVIEW, path: '/0123.js', ca })).headers['x-upstream']).toBe(
        'preview',
      );
      expect(await install(null)).toMatchObject([{ value: { changed: true } }]);
    });

    const seen = (body: string) => JSON.parse(body) as Seen; // the upstream's own answer

    test('serves the origin over TLS by the local CA, path and query as they came', async () => {
      const path = '/g//collect?v=2&en=page%20view&a=%2F..%2F&b=1;2';
      const ca = await readFile(home.ca.caFile, 'utf8');
      const answer = await ask(endpoint, { host: ORIGIN, path, ca });
      expect(answer.status).toBe(200);
      expect(answer.headers['x-upstream']).toBe('processing');
      expect(seen(answer.body)).toMatchObject({ method: 'GET', url: path });
      expect(seen(answer.body).headers.host).toBe(`${ORIGIN}:${endpoint.tlsPort}`);
    });

    test.each([
      ['/boot?x=1', '/boot?x=1'],
      ['?x=1', '/?x=1'],
      ['', '/'],
    ])('takes an absolute target that ends with `%s`', async (rest, url) => {
      const { status, body } = await ask(endpoint, { host: ORIGIN, path: `https://${ORIGIN}${rest}` });
      expect(status).toBe(200);
      expect(seen(body).url).toBe(url);
    });

    test.each([PREVIEW, INSIDE])(
      'leads %s to the preview container, and passes on the tag server’s `forwarded` header as it came',
      async (host) => {
        const forwarded = `host=${EDGE}`;
        const ca = await readFile(home.ca.caFile, 'utf8');
        const answer = await ask(endpoint, { host, path: '/gtm/debug', headers: { forwarded }, ca });
        expect(answer.headers['x-upstream']).toBe('preview');
        expect(seen(answer.body).headers.forwarded).toBe(forwarded);
      },
    );

    test.each([
      ['its header', 'x-tagyard-hop-secret', ''],
      ['its header of the previous version', 'x-tagyard-hop', ''],
      ['its header, whatever the old one holds', 'x-tagyard-hop-secret', 'guess'],
    ])(
      'trusts requests with the hop secret in %s, and doesn’t forward the secret',
      async (_case, name, old) => {
        const headers = {
          'x-tagyard-hop': old,
          // A controller before a gateway may have set any of these headers. The true claims come last, because
          // they replace some of these.
          ...(claims === CLAIMS.host ? {} : SPOOFED),
          [name]: HOP_SECRET,
          [claims.visitor]: '198.51.100.7',
          [claims.host]: 'metrics.acme.example:8443',
          [claims.scheme]: 'http',
          [claims.country]: 'AT',
        };
        const { body } = await ask(endpoint, { host: ORIGIN, headers });
        expect(seen(body).headers).toMatchObject({
          'x-forwarded-for': '198.51.100.7',
          'x-forwarded-host': 'metrics.acme.example:8443',
          'x-forwarded-proto': 'http',
          'x-forwarded-country': 'AT',
        });
        expect(JSON.stringify(seen(body).headers)).not.toContain(HOP_SECRET);
      },
    );

    test.each([
      ['no secret', {}],
      ['a wrong secret', { 'x-tagyard-hop-secret': 'wrong-secret-of-the-tests-0123456789' }],
      ['the secret in other case', { 'x-tagyard-hop-secret': HOP_SECRET.toUpperCase() }],
      ['the secret and more', { 'x-tagyard-hop-secret': `${HOP_SECRET}x` }],
      ['an empty secret', { 'x-tagyard-hop-secret': '' }],
      ['a wrong secret in the old header', { 'x-tagyard-hop': 'wrong-secret-of-the-tests-0123456789' }],
      [
        'a wrong secret, but the right secret in the old header',
        { 'x-tagyard-hop-secret': 'guess', 'x-tagyard-hop': HOP_SECRET },
      ],
    ])('states only what it knows itself if a request has %s', async (_case, hop) => {
      const { body } = await ask(endpoint, { host: ORIGIN, headers: { ...SPOOFED, ...hop } });
      expect(stated(seen(body).headers)).toEqual({
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-host': `${ORIGIN}:${endpoint.tlsPort}`,
        'x-forwarded-proto': 'https',
      });
    });

    describe.each([ORIGIN, CUSTOM])('the visitor of %s', (host) => {
      test.each([
        ['is whom Cloudflare names', CLOUDFLARE, { 'cf-connecting-ip': '203.0.113.9' }, '203.0.113.9'],
        ['may have an IPv6 address', CLOUDFLARE, { 'cf-connecting-ip': '2001:db8::9' }, '2001:db8::9'],
        ['is the peer if its header has no address', CLOUDFLARE, { 'cf-connecting-ip': 'evil' }, CLOUDFLARE],
        ['isn’t what Cloudflare only relays', CLOUDFLARE, { 'x-forwarded-for': '203.0.113.9' }, CLOUDFLARE],
        ['is whom our balancer saw', BALANCER, { 'x-forwarded-for': '1.1.1.1, 203.0.113.9' }, '203.0.113.9'],
        ['isn’t what our balancer only relays', BALANCER, { 'cf-connecting-ip': '203.0.113.9' }, BALANCER],
        ['is the peer itself if that is a stranger, whatever it claims', '127.0.0.7', SPOOFED, '127.0.0.7'],
      ])('%s', async (_case, from, headers, expected) => {
        const { body } = await ask(endpoint, { host, from, headers });
        expect(seen(body).headers['x-forwarded-for']).toBe(expected);
      });
    });

    test.each([
      ['https', CUSTOM],
      ['http', null],
    ] as const)(
      'maps a custom domain over %s to the edge, by the edge’s own name',
      async (proto, servername) => {
        const headers = { ...SPOOFED, 'x-tagyard-hop-secret': HOP_SECRET };
        const { body } = await ask(endpoint, { host: CUSTOM, servername, headers, path: '/boot?x=1' });
        const port = proto === 'https' ? endpoint.tlsPort : endpoint.httpPort;
        const arrived = seen(body);
        expect(arrived).toMatchObject({ url: '/boot?x=1', servername: EDGE });
        expect(arrived.headers.host).toBe(EDGE);
        expect(stated(arrived.headers)).toEqual({
          'x-forwarded-for': '127.0.0.1',
          'x-forwarded-host': `${CUSTOM}:${port}`,
          'x-forwarded-proto': proto,
          'x-tagyard-hop-secret': HOP_SECRET,
        });
      },
    );

    test.each([
      ['https behind Cloudflare, which connects without TLS', CLOUDFLARE, null, 'https', 'https'],
      ['https behind our balancer, which ends TLS', BALANCER, null, 'https', 'https'],
      ['what our balancer saw last', BALANCER, null, 'http, https', 'https'],
      ['http if the visitor of Cloudflare has no TLS', CLOUDFLARE, CUSTOM, 'http', 'http'],
      ['that of the connection if our balancer states none', BALANCER, null, 'gopher', 'http'],
      ['that of the connection if a stranger claims another', '127.0.0.7', null, 'https', 'http'],
    ] as const)('states a visitor’s scheme: %s', async (_case, from, servername, proto, expected) => {
      const headers = { 'x-forwarded-proto': proto };
      const { body } = await ask(endpoint, { host: CUSTOM, servername, from, headers });
      expect(seen(body).headers['x-forwarded-proto']).toBe(expected);
      const direct = await ask(endpoint, { host: ORIGIN, from, headers });
      const own = from === '127.0.0.7' || proto === 'gopher' ? 'https' : expected;
      expect(seen(direct.body).headers['x-forwarded-proto']).toBe(own);
    });

    test.each([ORIGIN, PREVIEW])('asks %s for its health by GET if a monitor sends HEAD', async (host) => {
      for (const secret of [{}, { 'x-tagyard-hop-secret': HOP_SECRET }]) {
        for (const path of ['/healthz?a=/x', '/_/healthy']) {
          const answer = await ask(endpoint, { host, path, method: 'HEAD', headers: secret });
          expect([answer.status, answer.body]).toEqual([200, '']);
          const upstream = host === ORIGIN ? container : preview;
          expect(upstream.seen.at(-1)).toMatchObject({ method: 'GET', url: path });
        }
      }
      await ask(endpoint, { host, path: '/g/collect?a=/healthy', method: 'HEAD' });
      expect((host === ORIGIN ? container : preview).seen.at(-1)?.method).toBe('HEAD');
    });

    test('passes on what the edge’s plugins tell of the visitor, and nothing of it that a visitor sends', async () => {
      const told = Object.fromEntries(TOLD_HEADERS.map((header) => [header, 'told']));
      const arrived = async (secret: Record<string, string>) =>
        seen((await ask(endpoint, { host: ORIGIN, headers: { ...told, ...secret } })).body).headers;
      expect(await arrived({ 'x-tagyard-hop-secret': HOP_SECRET })).toMatchObject(told);
      const ofVisitor = await arrived({});
      for (const header of TOLD_HEADERS) expect(ofVisitor).not.toHaveProperty(header);
    });

    test('forbids crawlers the origin and the preview, unless the edge asks the container', async () => {
      for (const host of [ORIGIN, PREVIEW]) {
        const answer = await ask(endpoint, { host, path: '/robots.txt' });
        expect([answer.status, answer.body]).toEqual([200, 'User-agent: *\nDisallow: /\n']);
        expect(answer.headers['content-type']).toContain('text/plain');
      }
      const headers = { 'x-tagyard-hop-secret': HOP_SECRET };
      const { body } = await ask(endpoint, { host: ORIGIN, path: '/robots.txt', headers });
      expect(seen(body).url).toBe('/robots.txt');
    });

    test.each([ORIGIN, CUSTOM])('takes a body of 8 MiB for %s, and no longer one', async (host) => {
      const post = (bytes: number, headers = {}) =>
        ask(endpoint, { host, method: 'POST', body: Buffer.alloc(bytes, 'e'), headers });
      const most = 8 * MIB;
      expect(seen((await post(most)).body).bodyBytes).toBe(most);
      for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
        expect((await post(most + 1, headers)).status).toBe(413);
        expect((await post(3 * most, headers)).status).toBe(413);
      }
      const upstream = host === ORIGIN ? container : edge;
      expect(upstream.seen.filter(({ bodyBytes }) => bodyBytes > most)).toEqual([]);
    });

    test('takes bodies up to the site’s own `maxBodyMb`, also after a change, and 8 MiB once it is cleared', async () => {
      const origin = 'small-origin.example.net';
      const custom = 'metrics.small.example';
      const install = async (options: VhostOptions | undefined) => {
        const outcomes = await backend.install([
          put('small', {
            site: 'small',
            vhosts: [
              { kind: 'origin', host: origin, upstreams: at(container), options },
              { kind: 'preview', host: 'small-preview.example.net', upstreams: at(preview) },
            ],
          }),
          put(`small/${custom}`, {
            site: 'small',
            vhosts: [{ kind: 'custom', host: custom, edgeHost: EDGE, options }],
          }),
        ]);
        expect(outcomes).toMatchObject(Array(2).fill({ status: 'fulfilled', value: { changed: true } }));
      };
      const trusted = { 'x-tagyard-hop-secret': HOP_SECRET };
      const ways = [
        { host: origin, headers: {} },
        { host: origin, headers: trusted },
        { host: custom, headers: {} },
      ];
      for (const mostMb of [2, 1, 8, undefined]) {
        await install(mostMb === undefined ? undefined : { maxBodyMb: mostMb });
        const most = (mostMb ?? 8) * MIB;
        for (const way of ways) {
          const post = { ...way, method: 'POST' };
          const taken = await ask(endpoint, { ...post, body: Buffer.alloc(most, 'e') });
          expect([taken.status, seen(taken.body).bodyBytes]).toEqual([200, most]);
          const stated = { ...way.headers, 'content-length': `${most + 1}` };
          expect(await ask(endpoint, { ...post, headers: stated })).toMatchObject({ status: 413 });
          const chunked = { ...post, body: Buffer.alloc(most + 1, 'e'), isEndless: true };
          expect(await ask(endpoint, chunked)).toMatchObject({ status: 413 });
        }
      }
      await install({ maxBodyMb: 1 });
      const body = Buffer.alloc(8 * MIB, 'e');
      const debug = await ask(endpoint, { host: 'small-preview.example.net', method: 'POST', body });
      expect(seen(debug.body).bodyBytes).toBe(8 * MIB);
    });

    test('sends its own hop secret to the edge, whatever the client sends', async () => {
      const { body } = await ask(endpoint, { host: CUSTOM, headers: { 'x-tagyard-hop-secret': 'guess' } });
      expect(seen(body).headers['x-tagyard-hop-secret']).toBe(HOP_SECRET);
      expect(seen(body).headers).not.toHaveProperty('x-tagyard-hop');
    });

    test('closes the connection for an unknown name', async () => {
      await expect(ask(endpoint, { host: 'unknown.example', servername: null })).rejects.toThrow(
        /hang up|reset/i,
      );
    });

    test('answers an origin over TLS only', async () => {
      await expect(ask(endpoint, { host: ORIGIN, servername: null })).rejects.toThrow(/hang up|reset/i);
    });

    test('rejects the handshake for an unknown name, and without a name', async () => {
      for (const servername of ['unknown.example', '']) {
        await expect(ask(endpoint, { host: ORIGIN, servername })).rejects.toThrow(
          /alert|handshake|reset|disconnected/i,
        );
      }
    });

    test('does not serve one name on a connection that was opened for another', async () => {
      const before = preview.seen.length;
      const answer = await ask(endpoint, { host: PREVIEW, servername: ORIGIN });
      expect(answer.status).toBe(421);
      expect(preview.seen.length).toBe(before);
    });

    test('streams an answer piece by piece', async () => {
      const pieces: string[] = [];
      const answer = await ask(endpoint, {
        host: ORIGIN,
        path: '/stream',
        onChunk(piece) {
          pieces.push(piece);
          // The upstream ends only once its first piece has come through.
          if (piece.includes('first')) release();
        },
      });
      expect(answer.body).toBe('first\nlast\n');
      expect(pieces[0]).toBe('first\n');
    });

    test('takes headers beyond 16 KiB: long URLs, and all cookies of a site', async () => {
      const headers = { cookie: `_ga=${'c'.repeat(24_000)}`, 'x-many': 'm'.repeat(8_000) };
      const path = `/g/collect?v=2&dl=${'u'.repeat(16_000)}`;
      const { status, body } = await ask(endpoint, { host: ORIGIN, path, headers });
      expect(status).toBe(200);
      expect(seen(body).headers.cookie).toBe(headers.cookie);
      expect(seen(body).url).toBe(path);
    });

    test('takes a body of 1.5 MB', async () => {
      const body = Buffer.alloc(1_500_000, 'e');
      const answer = await ask(endpoint, { host: ORIGIN, path: '/mp/collect', method: 'POST', body });
      expect(seen(answer.body)).toMatchObject({ method: 'POST', bodyBytes: 1_500_000 });
    });

    test('answers 502 for an upstream that is gone, and doesn’t reveal its own software', async () => {
      const gone: ProxySpec = {
        site: 'gone',
        vhosts: [
          { kind: 'origin', host: 'gone-origin.example.net', upstreams: [{ address: '127.0.0.1', port: 9 }] },
        ],
      };
      await backend.install([put('gone', gone)]);
      const answer = await ask(endpoint, { host: 'gone-origin.example.net' });
      expect(answer.status).toBe(502);
      expect(JSON.stringify(answer)).not.toMatch(/nginx\/[0-9]/);
      await backend.install([put('gone', null)]);
      await expect(ask(endpoint, { host: 'gone-origin.example.net' })).rejects.toThrow();
    });

    test('keeps the first of two sites that claim one name', async () => {
      const thief: ProxySpec = {
        site: 'thief',
        vhosts: [{ kind: 'custom', host: CUSTOM, edgeHost: 'thief.example.net' }],
      };
      const [outcome] = await backend.install([put(`thief/${CUSTOM}`, thief)]);
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: expect.objectContaining({
          message: expect.stringContaining(`conflicting server name "${CUSTOM}"`),
        }),
      });
      const { body } = await ask(endpoint, { host: CUSTOM });
      expect(seen(body).headers.host).toBe(EDGE);
    });

    test('takes a new configuration once, and the same again without any change', async () => {
      const spec: ProxySpec = {
        site: 'again',
        vhosts: [{ kind: 'custom', host: 'tags.again.example', edgeHost: EDGE }],
      };
      const change = put('again/tags.again.example', spec);
      const outcomes = [...(await backend.install([change])), ...(await backend.install([change]))];
      expect(outcomes).toEqual([
        { status: 'fulfilled', value: { changed: true } },
        { status: 'fulfilled', value: { changed: false } },
      ]);
    });

    test('serves at once after a restart of the machine: the same sites on the same ports', async () => {
      await backend.close();
      await stopNginx(settings.prefix);
      await expect(ask(endpoint, { host: ORIGIN })).rejects.toThrow(/ECONNREFUSED/);
      backend = backendOf(settings);
      expect(await backend.start()).toEqual(endpoint);
      expect((await ask(endpoint, { host: ORIGIN })).headers['x-upstream']).toBe('processing');
      const found = await backend.installed();
      expect(found.filter(({ intact }) => !intact)).toEqual([]);
      expect(found.map(({ key }) => key)).toContain('acme');
    });
  });
}

/** Those of a request's headers that can claim an address, a place, a host or a scheme, and the hop secret. */
function stated(headers: Seen['headers']) {
  const names = [...Object.keys(SPOOFED), 'x-tagyard-hop-secret'];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
}
