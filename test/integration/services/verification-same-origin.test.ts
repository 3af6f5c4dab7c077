import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { VerificationReport } from '../../../edge/verification/contract.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { forwarderToken, hashOf } from '../../support/edge/forwarder.ts';
import { eventually } from '../../support/eventually.ts';
import { HOP_SECRET } from '../../support/proxy/proxy.ts';
import { startVerificationStage, type VerificationStage } from '../../support/verification-stage.ts';

const TOKEN = forwarderToken('shop');
const PREFIX = '/m3trics1';
/** The verification's own address. If the domain's server states no visitor's address, none arrives. */
const VISITOR = '203.0.113.50';
/** On a busy machine one verification can exceed its budget; then it is repeated. */
const PATIENT = { timeoutMs: 60_000 };

/** What the domain's own server does; a test changes what it needs. */
interface Server {
  token: string;
  /** The visitor's address that it states when it gets a request with these headers. */
  visitor: (headers: http.IncomingHttpHeaders) => string;
  /** The visitor's country that it states. Empty: it states none; `undefined`: it passes on what it gets. */
  country: string | undefined;
  /** The same for the visitor's region. */
  region: string | undefined;
  cookies: boolean;
  caches: boolean;
  policy: string | undefined;
  page: string;
  redirect: string | undefined;
  /** Where it sends requests below the prefix, unless they are for a file; `null`: it forwards them. */
  movesTo: ((path: string) => string) | null;
  /** Whether it takes requests other than GET. */
  posts: boolean;
}

const RIGHT: Server = {
  token: TOKEN,
  visitor: () => VISITOR,
  country: 'DE',
  region: '',
  cookies: true,
  caches: false,
  policy: undefined,
  page: '<!doctype html>',
  redirect: undefined,
  movesTo: null,
  posts: true,
};

const nameOf = ({ headers }: http.IncomingMessage) => headers.host?.replace(/:\d+$/, '') ?? '';

let server: Server = { ...RIGHT };
/** The verification's own place. */
let direct: Record<string, string> = { 'x-forwarded-country': 'DE' };
let stage: VerificationStage;
let manifest: LoadedManifest;
const shop = http.createServer((request, response) => {
  const url = request.url ?? '';
  if (!url.startsWith(`${PREFIX}/`)) {
    const policy = server.policy === undefined ? {} : { 'content-security-policy': server.policy };
    const moved = server.redirect !== undefined && nameOf(request) !== new URL(server.redirect).hostname;
    if (moved) response.writeHead(301, { location: server.redirect }).end();
    else response.writeHead(200, { 'content-type': 'text/html', ...policy }).end(server.page);
    return;
  }
  const [path = '', ...query] = url.split('?');
  const target = /\.\w+$/.test(path) ? path : (server.movesTo?.(path) ?? path);
  if (target !== path) {
    response.writeHead(308, { location: [target, ...query].join('?') }).end();
    return;
  }
  if (!server.posts && request.method === 'POST') {
    response.writeHead(405).end();
    return;
  }
  const stored = cache.get(url);
  if (server.caches && stored !== undefined) {
    response.writeHead(stored.status, stored.headers).end(stored.body);
    return;
  }
  const { cookie, ...headers } = request.headers;
  const stated = {
    'x-tagyard-forwarder-token': server.token,
    'x-tagyard-host': nameOf(request),
    'x-tagyard-visitor': server.visitor(headers),
    ...(server.country === undefined ? {} : { 'x-tagyard-country': server.country }),
    ...(server.region === undefined ? {} : { 'x-tagyard-region': server.region }),
    ...(server.cookies && cookie !== undefined ? { cookie } : {}),
  };
  const { port } = stage.edge.url;
  const host = manifest.hostnames.edge;
  http
    .request(
      {
        host: '127.0.0.1',
        port,
        path: url,
        method: request.method,
        headers: { ...headers, ...stated, host },
      },
      async (answer) => {
        const chunks: Buffer[] = [];
        for await (const chunk of answer) chunks.push(chunk);
        const body = Buffer.concat(chunks);
        const { statusCode: status = 502, headers: given } = answer;
        cache.set(url, { status, headers: given, body });
        response.writeHead(status, given).end(body);
      },
    )
    .end();
});
const cache = new Map<string, { status: number; headers: http.IncomingHttpHeaders; body: Buffer }>();

beforeAll(async () => {
  stage = await startVerificationStage();
  await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve));
  const [first, ...others] = stage.manifest.domains;
  if (first === undefined) throw new Error('the site has no domain');
  const forwarder = { generation: 1, tokenHash: hashOf(TOKEN) };
  manifest = {
    ...stage.manifest,
    domains: [{ ...first, sameOrigin: { path: PREFIX, forwarder } }, ...others],
  };
  await stage.publish(manifest);
  // The pages' server answers plain HTTP here: this file tests neither TLS nor the worker's egress.
  stage.fault = ({ url }) => {
    // The embedded edge knows neither address nor place of its peers: the hop before it states them.
    const isCompared = url.pathname.startsWith('/l/') || url.pathname === '/_/tagyard/arrival';
    if (url.hostname === manifest.hostnames.edge && isCompared) {
      return { set: { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-for': VISITOR, ...direct } };
    }
    if (!/(?:^|\.)shop\.localhost$/.test(url.hostname) || url.hostname === 'tags.shop.localhost')
      return undefined;
    const { port } = shop.address() as AddressInfo; // it listens on TCP
    return { url: new URL(`http://${url.hostname}:${port}${url.pathname}${url.search}`) };
  };
});
afterEach(() => {
  server = { ...RIGHT };
  direct = { 'x-forwarded-country': 'DE' };
  cache.clear();
});
afterAll(async () => {
  shop.close();
  await stage?.close();
});

const sameOrigin = ({ checks }: VerificationReport) => checks.find(({ name }) => name === 'same_origin');

const found = ({ checks }: VerificationReport) =>
  checks
    .filter(({ name }) => name === 'same_origin' || name === 'csp')
    .map(({ name, status }) => `${name} ${status}`);

async function verified(expected: readonly string[]): Promise<VerificationReport> {
  return eventually(async () => {
    cache.clear();
    const report = await stage.verify(await stage.report(manifest));
    expect(found(report)).toEqual(expected);
    return report;
  }, PATIENT);
}

test('a server that forwards everything correctly passes', async () => {
  expect(sameOrigin(await verified(['same_origin passed', 'csp passed']))).toMatchObject({
    subject: 'shop.localhost',
    detail:
      'https://shop.localhost/m3trics1 leads to the edge: it knows the server by its token, hits arrive, uncached, cookies arrive, with the visitor’s address and no claimed one, with the visitor’s country (DE)',
    fix: null,
  });
});

test('a server that states no country passes, with what that means', async () => {
  Object.assign(server, { country: '' });
  const report = await verified(['same_origin passed', 'csp passed']);
  expect(sameOrigin(report)).toMatchObject({
    detail: expect.stringContaining('with no country, as the server states none'),
    fix: expect.stringMatching(/strictest rules of consent.*tags get no place/),
  });
});

describe('the check is skipped, not passed, if it can’t prove', () => {
  test('that cookies arrive, because the host reports no container id', async () => {
    await eventually(async () => {
      cache.clear();
      const host = await stage.report(manifest);
      const report = await stage.verify({ ...host, config: { id: null, problem: null } });
      expect(sameOrigin(report)).toMatchObject({
        status: 'skipped',
        detail: expect.stringMatching(/with the visitor’s address.*; not proven: cookies \(only the host/),
      });
    }, PATIENT);
  });

  test.each<[string, Partial<Server>, Record<string, string>, RegExp]>([
    [
      'the visitor’s address, because another one arrives that is no server’s',
      { visitor: () => '198.51.100.9' },
      { 'x-forwarded-country': 'DE' },
      /cookies arrive.*; not proven: the visitor’s address \(a visit arrives from 198\.51\.100\.9, on the edge hostname from 203\.0\.113\.50\)$/,
    ],
    [
      'a country, because it is that of another address of the visitor',
      { visitor: () => '198.51.100.9', country: 'FR' },
      { 'x-forwarded-country': 'DE' },
      /the visitor’s country \(it arrives as FR, on the edge hostname as DE\)$/,
    ],
    [
      'a country, because the edge knows none',
      {},
      {},
      /; not proven: the visitor’s country \(it arrives as DE; on the edge hostname it is unknown\)$/,
    ],
  ])('%s', async (_what, change, known, detail) => {
    Object.assign(server, change);
    direct = known;
    const report = await verified(['same_origin skipped', 'csp passed']);
    expect(sameOrigin(report)?.detail).toMatch(detail);
  });
});

test('a domain whose first page redirects to a host under it is checked there', async () => {
  Object.assign(server, { redirect: 'https://www.shop.localhost/' });
  const report = await verified(['same_origin passed', 'csp passed']);
  expect(sameOrigin(report)?.detail).toContain('https://www.shop.localhost/m3trics1 leads to the edge');
});

test.each<[string, Partial<Server>, RegExp]>([
  ['another token', { token: forwarderToken('other') }, /which doesn’t accept its server/],
  [
    'a slash that its framework adds',
    { movesTo: (path) => path.replace(/([^/])$/, '$1/') },
    /a hit to https:\/\/shop\.localhost\/m3trics1\/g\/collect is redirected \(308\) to the same address with a slash/,
  ],
  [
    'a redirect to another host',
    { movesTo: (path) => `https://www.shop.localhost${path}` },
    /is redirected \(308\) to the host www\.shop\.localhost/,
  ],
  ['a redirect elsewhere', { movesTo: () => '/login' }, /is redirected \(308\)$/],
  ['GET only', { posts: false }, /a hit to .*\/g\/collect doesn’t reach the edge: status 405/],
  ['no cookies', { cookies: false }, /cookies don’t arrive/],
  [
    'the address that a visitor claims',
    { visitor: (headers) => String(headers['x-tagyard-visitor']) },
    /can claim any address: the server takes it from x-tagyard-visitor/,
  ],
  [
    'the last address of x-forwarded-for, although no proxy before it sets that header',
    { visitor: (headers) => String(headers['x-forwarded-for']).split(',').at(-1)?.trim() ?? '' },
    /can claim any address: the server takes it from x-forwarded-for/,
  ],
  [
    'a header that a proxy would set',
    { visitor: (headers) => String(headers['x-real-ip']) },
    /can claim any address: the server takes it from x-real-ip/,
  ],
  ['the region that a visitor claims', { region: undefined }, /can claim any country or region/],
  ['a country of its own', { country: 'FR' }, /arrives from FR, and on the edge hostname from DE/],
  ['the country that a visitor claims', { country: undefined }, /can claim any country/],
  ['the address of a proxy before it', { visitor: () => '10.0.0.7' }, /arrives as 10\.0\.0\.7/],
  ['no address', { visitor: () => '' }, /arrives as no address/],
  ['a cache', { caches: true }, /a cache answers/],
])('a server that forwards with %s fails, with its cause', async (_what, change, detail) => {
  Object.assign(server, change);
  const report = await verified(['same_origin failed', 'csp passed']);
  expect(sameOrigin(report)?.detail).toMatch(detail);
});

test.each<[string, (path: string) => string, RegExp]>([
  ['a slash', (path) => path.replace(/([^/])$/, '$1/'), /trailingSlash.*skipTrailingSlashRedirect: true/],
  ['a host', (path) => `https://www.shop.localhost${path}`, /redirects to www\.shop\.localhost/],
])('the remedy of a redirect names the setting that makes it: %s', async (_what, movesTo, fix) => {
  Object.assign(server, { movesTo });
  await eventually(async () => {
    cache.clear();
    expect(sameOrigin(await stage.verify(await stage.report(manifest)))?.fix).toMatch(fix);
  }, PATIENT);
});

test.each([
  ['a header', { policy: "default-src 'self'" }],
  [
    'an element of the page',
    { page: `<meta http-equiv="Content-Security-Policy" content="default-src 'self'">` },
  ],
])('a policy in %s that lacks the vendor fails, with what to add', async (_what, change) => {
  Object.assign(server, change);
  const { checks } = await verified(['same_origin passed', 'csp failed']);
  expect(checks.find(({ name }) => name === 'csp')).toMatchObject({
    detail: expect.stringContaining('script-src https://www.googletagmanager.com'),
    fix: expect.stringContaining(
      'connect-src https://shop.localhost/m3trics1/ https://www.googletagmanager.com',
    ),
  });
});
