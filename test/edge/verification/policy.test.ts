import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { SITE_CHECKS } from '../../../edge/verification/checks/index.ts';
import { siteVisitor } from '../../../edge/verification/visit.ts';

const EDGE = 'https://acme.tags.example.net';
const VENDOR = 'https://www.googletagmanager.com';

/** The pages of the one server, by host. It gets requests for `/<host>/<path>`. */
let pages: Record<string, { status?: number; headers?: Record<string, string>; text?: string }> = {};
const asked: string[] = [];
const server = createServer(({ url = '' }, response) => {
  asked.push(url.slice(1));
  const [, host = ''] = url.split('/');
  const { status = 200, headers = {}, text = '<!doctype html>' } = pages[host] ?? { status: 404 };
  response.writeHead(status, headers).end(text);
});
beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
afterAll(() => void server.close());
afterEach(() => {
  pages = {};
  asked.length = 0;
});

const domain = (name: string, sameOrigin?: string) => ({
  domain: name,
  token: 'ct',
  webTagId: 'GTM-ABC1234',
  active: true,
  ...(sameOrigin === undefined ? {} : { sameOrigin }),
});
const NAME = { addresses: [], alias: null, aliasRegistrable: null, expected: [], problem: null };

/** The findings of the check; requests for all hosts reach the one server. */
async function check(customDomains: readonly string[], domains = [domain('shop.acme.example')]) {
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const site = {
    siteId: 'acme',
    edge: EDGE,
    origin: 'https://acme-origin.tags.example.net',
    preview: 'https://acme-preview.tags.example.net',
    customDomains: customDomains.map((host) => `https://${host}`),
    loaderToken: 'lt_1',
    domains,
    proxyPaths: [],
  };
  const registrable = (name: string) => name.split('.').slice(-2).join('.');
  const host = {
    host: 'tag-1',
    site,
    config: { id: null, problem: null },
    previews: { count: 1, problem: null },
    names: [
      ...customDomains.map((name) => ({
        ...NAME,
        name,
        kind: 'custom' as const,
        registrable: registrable(name),
      })),
      ...domains.map(({ domain: name }) => ({
        ...NAME,
        name,
        kind: 'page' as const,
        registrable: registrable(name),
      })),
    ],
    certificates: [],
    arrivals: [],
  };
  const visit = siteVisitor(site, {
    signal: AbortSignal.timeout(10_000),
    fetch: async (input, init) => {
      const { hostname, pathname } = new URL(String(input));
      if (pages[hostname] === undefined) throw new TypeError('no such name');
      return await fetch(`http://127.0.0.1:${port}/${hostname}${pathname}`, init);
    },
  });
  return SITE_CHECKS.csp({ site, host, hostProblem: null, visit, now: 0, scriptsByPlace: false });
}

const policy = (text: string) => ({ headers: { 'content-security-policy': text } });
const snippet = (base: string) => `<script>load("${base}/l/lt_1.js")</script>`;
const allowing = (base: string) => `default-src 'self' 'nonce-x' ${base} ${VENDOR}`;

test.each([
  ['a custom subdomain', ['tags.shop.acme.example', 'm.acme.example'], 'https://tags.shop.acme.example'],
  ['another custom domain under its registrable domain', ['m.acme.example'], 'https://m.acme.example'],
  ['no custom domain of its own', ['m.other.example'], EDGE],
])('a page’s policy must allow the address of its snippet: with %s', async (_what, customDomains, base) => {
  pages = { 'shop.acme.example': { ...policy("default-src 'self'"), text: snippet(base) } };
  expect(await check(customDomains)).toMatchObject([
    {
      subject: 'shop.acme.example',
      status: 'failed',
      detail: expect.stringContaining(`connect-src ${base}, connect-src ${VENDOR}`),
      fix: expect.stringContaining(`script-src ${base} ${VENDOR}; connect-src ${base} ${VENDOR}`),
    },
  ]);
  pages = { 'shop.acme.example': { ...policy(allowing(base)), text: snippet(base) } };
  expect(await check(customDomains)).toMatchObject([
    { subject: 'shop.acme.example', status: 'passed', fix: null },
  ]);
});

test('a page that loads from another of the site’s addresses is judged by that one', async () => {
  pages = { 'shop.acme.example': { ...policy(allowing(EDGE)), text: snippet(EDGE) } };
  expect(await check(['tags.shop.acme.example'])).toMatchObject([{ status: 'passed', fix: null }]);
});

test('a page without the snippet passes, and the fix says what its policy must allow', async () => {
  pages = { 'shop.acme.example': policy("default-src 'self'") };
  expect(await check(['m.acme.example'])).toMatchObject([
    {
      status: 'passed',
      detail: expect.stringContaining('the page itself has no snippet'),
      fix: expect.stringContaining('script-src https://m.acme.example'),
    },
  ]);
});

test('a page without a policy passes; one that doesn’t answer, or fails, is not judged', async () => {
  const domains = ['a.example', 'b.example', 'c.example'].map((name) => domain(name));
  pages = { 'a.example': {}, 'b.example': { status: 503 } };
  expect((await check([], domains)).map(({ subject, status }) => [subject, status])).toEqual([
    ['a.example', 'passed'],
  ]);
});

test('without a prefix, only `/` is visited: of the domain, and of a host it redirects to', async () => {
  pages = {
    'acme.example': { status: 301, headers: { location: 'https://www.acme.example/de/start' } },
    'www.acme.example': { ...policy("default-src 'self'"), text: snippet(EDGE) },
  };
  expect(await check([], [domain('acme.example')])).toMatchObject([{ status: 'failed' }]);
  expect(asked).toEqual(['acme.example/', 'www.acme.example/']);
});
