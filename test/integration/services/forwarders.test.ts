import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { renderSnippets } from '../../../management/snippets/index.ts';
import { ensureLocalCa, type LocalCa } from '../../../sites/local/local-ca.ts';
import { describeWith } from '../../support/components.ts';
import {
  FORWARDERS,
  type RunningForwarder,
  startForwarder,
  startPages,
  WORKER_PLACE,
} from '../../support/forwarders/forwarder.ts';
import { type Ask, ask } from '../../support/proxy/proxy.ts';
import { startTlsFront, type TlsFront } from '../../support/proxy/tls-front.ts';

const HOST = 'www.acme.example';
const EDGE = 'acme-shop.example.net';
const PATH = '/m3trics1';
const TOKEN = 'ft_2Kd0Wc1yV9nqk7m3m3m3m3m3m3m3m3m3m3m3m3m3m3m';
/** The restored cookies of one answer: 13 kB, which is less than HAProxy's default limit. */
const RESTORED = Array.from(
  { length: 50 },
  (_, index) =>
    `_ga_${index}=${'x'.repeat(180)}; Path=/; Max-Age=34128000; Domain=acme.example; Secure; SameSite=Lax`,
);
const COOKIES = ['_fpid', '_ga', '_ga_*', '_gcl_*', 'FPID', 'odd.name'];

/** For each product: a request below the path arrives at the edge as it must, and no other request arrives there. */
describeWith(['nginx', 'apache', 'caddy', 'haproxy', 'mount'], 'a forwarder set up by its snippet', () => {
  let directory: string;
  let ca: LocalCa;
  let edge: TlsFront;
  let pages: Awaited<ReturnType<typeof startPages>>;
  const bodies = new WeakMap<IncomingMessage, string>();
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tagyard-forwarders-'));
    ca = await ensureLocalCa(join(directory, 'ca'));
    pages = await startPages('<title>The shop</title>');
    edge = await startTlsFront(ca, () => async (request, response) => {
      bodies.set(request, await text(request));
      if (request.headers['if-none-match'] === '"v1"') return void response.writeHead(304).end();
      if (request.url?.includes('restores'))
        return void response.writeHead(200, { 'set-cookie': RESTORED }).end();
      response.writeHead(request.url?.includes('/missing') ? 404 : 200, {
        'content-type': 'application/javascript',
        'cache-control': 'public, max-age=300',
        etag: '"v1"',
        location: '/elsewhere',
        'set-cookie': ['_fpid=one; Domain=acme.example; Path=/', 'FPID=two; Domain=acme.example; HttpOnly'],
      });
      response.end('the answer of the edge');
    });
  });
  afterAll(async () => {
    await edge.close();
    await pages.close();
    await rm(directory, { recursive: true, force: true });
  });

  describe.each(FORWARDERS)('%s', (kind) => {
    let forwarder: RunningForwarder;
    let before = 0;
    const start = (edgeUrl: string, name: string) =>
      startForwarder(kind, {
        directory: join(directory, `${kind}-${name}`),
        host: HOST,
        edgeHost: new URL(edgeUrl).hostname,
        snippet: renderSnippets({
          edge: edgeUrl,
          path: PATH,
          domain: 'acme.example',
          token: TOKEN,
          cookies: COOKIES,
        })[kind],
        ca,
        pages: pages.port,
      });
    beforeAll(async () => {
      forwarder = await start(`https://${EDGE}:${edge.port}`, 'good');
    });
    afterAll(() => forwarder.stop());
    beforeEach(() => {
      before = edge.seen.length;
    });

    const visit = (path: string, asked: Partial<Ask> = {}, at = forwarder) =>
      ask({ address: '127.0.0.1', httpPort: 0, tlsPort: at.port }, { host: HOST, path, ...asked });
    const arrived = () => edge.seen.slice(before);

    test('passes path, query, method and body on, and the answer back', async () => {
      const answer = await visit(`${PATH}/g/collect?v=2&dl=https%3A%2F%2Fa.example%2F%3Fb%3D1&x=a%20b+c`, {
        method: 'POST',
        body: 'en=page_view',
        headers: { 'content-type': 'text/plain', referer: `https://${HOST}/`, origin: `https://${HOST}` },
      });
      expect(answer).toMatchObject({ status: 200, body: 'the answer of the edge' });
      expect(answer.headers).toMatchObject({
        'cache-control': 'public, max-age=300',
        etag: '"v1"',
        location: '/elsewhere',
        'set-cookie': ['_fpid=one; Domain=acme.example; Path=/', 'FPID=two; Domain=acme.example; HttpOnly'],
      });
      const [request] = arrived();
      expect(arrived()).toHaveLength(1);
      expect(request).toMatchObject({
        method: 'POST',
        url: `${PATH}/g/collect?v=2&dl=https%3A%2F%2Fa.example%2F%3Fb%3D1&x=a%20b+c`,
      });
      expect(request && bodies.get(request)).toBe('en=page_view');
      expect(request?.headers).toMatchObject({
        host: `${EDGE}:${edge.port}`,
        origin: `https://${HOST}`,
        referer: `https://${HOST}/`,
      });
    });

    test('passes an answer back that sets as many cookies as a profile may have', async () => {
      const answer = await visit(`${PATH}/boot?restores`);
      expect([answer.status, answer.headers['set-cookie']]).toEqual([200, RESTORED]);
    });

    test('states who visits which host, whatever the visitor claims', async () => {
      await visit(`${PATH}/boot`, {
        from: '127.0.0.9',
        headers: {
          'x-tagyard-visitor': '192.0.2.1',
          'x-tagyard-host': 'evil.example',
          'x-tagyard-scheme': 'ftp',
          'x-tagyard-forwarder-token': 'ft_forged',
          'x-tagyard-country': 'KP',
          'x-tagyard-region': '01',
        },
      });
      expect(arrived()[0]?.headers).toMatchObject({
        'x-tagyard-forwarder-token': TOKEN,
        'x-tagyard-visitor': '127.0.0.9',
        'x-tagyard-host': `${HOST}:${forwarder.port}`,
        'x-tagyard-scheme': 'https',
      });
      // Of the products, only Cloudflare knows the visitor's place.
      const { country, regionCode } = WORKER_PLACE;
      const { headers: got = {} } = arrived()[0] ?? {};
      expect([got['x-tagyard-country'], got['x-tagyard-region']]).toEqual(
        kind === 'cloudflareWorker' ? [country, regionCode] : [undefined, undefined],
      );
    });

    test('withholds the visitor’s credentials and all cookies but the listed ones', async () => {
      await visit(`${PATH}/boot`, {
        headers: {
          authorization: 'Basic c2hvcDpzZWNyZXQ=',
          cookie:
            'session=s3cret; _ga=GA1.1; x_ga=s3cret; _fpid=p; _ga_AAA=1; _gaxy=s3cret; cart=s3cret; _ga_BBB=2; oddXname=s3cret; odd.name=3; _gcl_au=4; admin=s3cret',
        },
      });
      const [request] = arrived();
      expect(request?.headers).not.toHaveProperty('authorization');
      expect(JSON.stringify(request?.rawHeaders)).not.toContain('s3cret');
      const passed = request?.headers.cookie?.split(/; */).filter((pair) => pair !== '');
      expect(passed?.sort()).toEqual([
        '_fpid=p',
        '_ga=GA1.1',
        '_ga_AAA=1',
        '_ga_BBB=2',
        '_gcl_au=4',
        'odd.name=3',
      ]);
    });

    test.each([
      ['session=s3cret', undefined],
      ['_ga=only', '_ga=only'],
      ['a=s3cret;_ga=tight;b=s3cret', '_ga=tight'],
      [undefined, undefined],
    ])('of the cookies %j it passes %j', async (cookie, passed) => {
      await visit(`${PATH}/boot`, cookie === undefined ? {} : { headers: { cookie } });
      expect(arrived()[0]?.headers.cookie || undefined).toBe(passed);
    });

    test('filters cookies in several lines, too', async () => {
      const lines = ['_ga=1', 'session=s3cret', 'cart=s3cret; _gcl_au=4'].flatMap((line) => ['cookie', line]);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const headers = ['host', HOST, ...lines];
      const address = {
        host: '127.0.0.1',
        port: forwarder.port,
        servername: HOST,
        rejectUnauthorized: false,
      };
      get({ ...address, path: `${PATH}/boot`, headers }, (answer) => answer.resume().on('end', resolve)).on(
        'error',
        reject,
      );
      await promise;
      const passed = JSON.stringify(arrived()[0]?.rawHeaders);
      expect(passed).not.toContain('s3cret');
      // HAProxy reads only one of the lines. No browser sends several over HTTP/1.
      expect(passed).toMatch(kind === 'haproxy' ? /_ga=1|_gcl_au=4/ : /_ga=1.*_gcl_au=4/);
    });

    test('caches no answer, and passes a conditional request and its 304', async () => {
      const [one, two] = [await visit(`${PATH}/l/x.js`), await visit(`${PATH}/l/x.js`)];
      expect([one.body, two.body]).toEqual(['the answer of the edge', 'the answer of the edge']);
      expect((await visit(`${PATH}/l/x.js`, { headers: { 'if-none-match': '"v1"' } })).status).toBe(304);
      expect((await visit(`${PATH}/missing`)).status).toBe(404);
      expect(arrived()).toHaveLength(4);
    });

    test('forwards nothing outside the path', async () => {
      expect((await visit('/')).body).toContain('The shop');
      for (const path of ['/boot', '/m3trics1x/boot', '/x/m3trics1/boot']) await visit(path);
      expect(arrived()).toEqual([]);
    });

    test('sends nothing to an edge whose certificate has another name', async () => {
      const other = `other.${EDGE}`;
      const wrong = await startTlsFront({ pathsFor: () => ca.pathsFor(EDGE) }, () => (_request, response) => {
        response.end('an impostor');
      });
      const misled = await start(`https://${other}:${wrong.port}`, 'wrong');
      try {
        expect((await visit(`${PATH}/boot`, {}, misled)).status).toBeGreaterThanOrEqual(500);
        expect(wrong.seen).toEqual([]);
      } finally {
        await misled.stop();
        await wrong.close();
      }
    });
  });
});
