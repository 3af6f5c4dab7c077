import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { forwarderToken, hashOf, prefixed, stated } from '../support/edge/forwarder.ts';
import { type Answer, HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import { vendorScript } from '../support/edge/upstream.ts';

const PREFIX = '/m3trics1';
const OTHER_PREFIX = '/outlet42';
const [TOKEN, OTHER_TOKEN] = [forwarderToken('acme'), forwarderToken('outlet')];
const [OLD_TOKEN, STRANGE_TOKEN] = [forwarderToken('old'), forwarderToken('strange')];
const HOUR_MS = 3_600_000;

let stage: Stage;
let site: StagedSite;
let foreign: StagedSite;
let page: string;
let until: number;
beforeAll(async () => {
  stage = await startStage();
  until = Date.now() + HOUR_MS;
  const rotated = { hash: hashOf(OLD_TOKEN), until: new Date(until).toISOString() };
  site = await stage.site({
    features: { multi_domain: true },
    domains: [
      { sameOrigin: prefixed(PREFIX, TOKEN, rotated) },
      { sameOrigin: prefixed(OTHER_PREFIX, OTHER_TOKEN) },
      { domain: 'plain.example' },
    ],
  });
  foreign = await stage.site({ domains: [{ sameOrigin: prefixed(PREFIX, STRANGE_TOKEN) }] });
  page = `www.${site.domains[0]?.domain}`;
});
beforeEach(async () => {
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => ({});
  await stage.seen();
});
afterAll(() => stage.close());

/** Sends octets as they are, and resolves to all that is answered until the connection ends. */
async function raw(start: string, headers: readonly string[], body = ''): Promise<string> {
  const socket = connect(stage.port, '127.0.0.1');
  const lines = [`${start} HTTP/1.1`, `Host: ${site.host}`, 'Connection: close', ...headers, '', body];
  socket.end(lines.join('\r\n'));
  return await text(socket);
}

/** What a stranger can see of an answer. */
const visible = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _id, 'x-tagyard-request-id': id = '', date: _, ...rest } = headers;
  return { status, headers: rest, text: text.replaceAll(String(id), '') };
};

/** The answers to a loader request and a hit with these headers, and the headers of the hit at the tag server. */
async function outcome(headers: Record<string, string>, prefix = PREFIX, host = site.host) {
  stage.upstream.received.length = 0;
  const loader = await stage.send(host, `${prefix}/l/${site.loader}.js`, { headers });
  const hit = await stage.send(host, `${prefix}/g/collect?v=2`, { headers });
  // Each request has an id of its own.
  const arrived = stage.upstream.received.at(-1)?.headers;
  delete arrived?.['trace-id'];
  return { loader: visible(loader), hit: visible(hit), arrived };
}

describe('a forged statement is answered as if there were none', () => {
  test.each([
    ['no token', () => ({ ...stated(TOKEN, page), 'x-tagyard-forwarder-token': '' })],
    ['a made-up token', () => stated(forwarderToken('guess'), page)],
    ['the hash in place of the token', () => stated(hashOf(TOKEN), page)],
    ['a token with one more character', () => stated(`${TOKEN}A`, page)],
    ['a list of tokens', () => stated(`${STRANGE_TOKEN}, ${TOKEN}`, page)],
    ['another site’s token', () => stated(STRANGE_TOKEN, page)],
    ['another domain’s token', () => stated(OTHER_TOKEN, page)],
    ['a host of another domain of the site', () => stated(TOKEN, `www.${site.domains[1]?.domain}`)],
    ['a host of another site', () => stated(TOKEN, `www.${foreign.domains[0]?.domain}`)],
    ['a host that only has the same ending', () => stated(TOKEN, `evil-${site.domains[0]?.domain}`)],
    ['a host with a path', () => stated(TOKEN, `${page}/evil`)],
    ['a host with a user', () => stated(TOKEN, `${page}@evil.example`)],
    ['two hosts', () => stated(TOKEN, `${page}, evil.example`)],
    ['no host', () => ({ ...stated(TOKEN, page), 'x-tagyard-host': '' })],
    ['an address in the host’s place', () => stated(TOKEN, '127.0.0.1')],
  ])('%s', async (_what, headers) => {
    expect(await outcome(headers())).toEqual(await outcome({}));
  });

  test('a valid one is not', async () => {
    expect(await outcome(stated(TOKEN, page))).not.toEqual(await outcome({}));
  });

  test('a valid one has no effect under the prefix of another domain', async () => {
    expect(await outcome(stated(TOKEN, page), OTHER_PREFIX)).toEqual(await outcome({}, OTHER_PREFIX));
  });

  test('a prefix that the site does not have is unknown, with a valid token, too', async () => {
    expect(await outcome(stated(OTHER_TOKEN, page), OTHER_PREFIX, foreign.host)).toMatchObject({
      loader: { status: 404 },
      hit: { status: 404 },
      arrived: undefined,
    });
  });

  test('a valid one has no effect without a prefix', async () => {
    expect(await outcome(stated(TOKEN, page), '')).toEqual(await outcome({}, ''));
  });

  test('a valid one has no effect if it came through our own proxy', async () => {
    const proxied = {
      'x-tagyard-hop-secret': HOP_SECRET,
      'x-forwarded-host': `m.${site.domains[0]?.domain}`,
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '203.0.113.5',
    };
    expect(await outcome({ ...stated(TOKEN, page), ...proxied })).toEqual(await outcome(proxied));
  });

  test('no spelling of the headers reaches a tag server', async () => {
    const forged = {
      X_Tagyard_Visitor: '192.0.2.1',
      'x-tagyard-country': 'XX',
      'X-Tagyard-Forwarder-Token': 'x',
      'x-tagyard.host': 'evil.example',
    };
    for (const prefix of ['', PREFIX]) {
      const { arrived } = await outcome(forged, prefix);
      const own = Object.entries(arrived ?? {}).filter(([name]) => /tagyard/i.test(name));
      // Only the edge's own statements for a cluster's gateway arrive, and nothing of what was sent.
      expect(own.map(([name]) => name)).toEqual(
        expect.arrayContaining(['x-tagyard-hop-secret', 'x-tagyard-host', 'x-tagyard-scheme']),
      );
      expect(own.map(([name]) => name)).not.toContain('x-tagyard-forwarder-token');
      expect(JSON.stringify(own)).not.toMatch(/192\.0\.2\.1|evil|XX/);
    }
  });
});

describe('another spelling of a prefix, which a domain’s server may forward, too', () => {
  let own: StagedSite;
  beforeAll(async () => {
    own = await stage.site({
      domains: [{ sameOrigin: prefixed(PREFIX, TOKEN) }],
      proxyPaths: ['/*'],
    });
  });

  test.each([
    '/M3trics1/g/collect',
    '/M3TRICS1/g/collect',
    '/%4d3trics1/g/collect',
    '/%6d3trics1/g/collect',
    '/%6D3trics1/g/collect?v=2',
    '/m3trics1%2Fg/collect',
    '/m3trics1%2fg%ff',
    '/%2Fm3trics1/boot',
    '//m3trics1/g/collect',
    '/x/..%2Fm3trics1/g/collect',
    '/x/%2e%2e%2F%6d3trics1/g/collect',
    '/a%3F/..%2Fm3trics1/g/collect',
    '/%6d3trics1',
  ])('%s is unknown, with and without a token', async (path) => {
    const headers = stated(TOKEN, `www.${own.domains[0]?.domain}`);
    for (const given of [headers, {}]) {
      expect(await stage.send(own.host, path, { headers: given })).toMatchObject({
        status: 404,
        json: { code: 'not_found' },
      });
    }
    expect(stage.upstream.received).toEqual([]);
  });

  test.each([
    '/a%20b/m3trics1/x',
    '/%5C%5B/x',
    '/%5C:x/',
    '/%5C%20/',
    '/Shop/M3trics1',
    '/%6d3trics1x/y',
    '/x//m3trics1',
    '/g/collect?a=/%6d3trics1/',
    '/%ff/x',
  ])('%s is not such a spelling, and is forwarded', async (path) => {
    expect((await stage.send(own.host, path)).status).toBe(200);
    expect(stage.upstream.received.map(({ url }) => url)).toEqual([expect.stringContaining(path)]);
  });
});

describe('a rotated token', () => {
  test('counts until its time, and means nothing from then on', async () => {
    const headers = stated(OLD_TOKEN, page);
    const current = await outcome(stated(TOKEN, page));
    expect((await outcome(headers)).arrived).toEqual(current.arrived);
    // Shortly before its end, so that the edge's copies of documents, and its kept results of token checks, are still
    // fresh when the token ends.
    await stage.forward(until - Date.now() - 20_000);
    expect((await outcome(headers)).arrived).toEqual(current.arrived);
    await stage.forward(20_000);
    expect(await outcome(headers)).toEqual(await outcome({}));
    expect((await outcome(stated(TOKEN, page))).arrived).toEqual(current.arrived);
  });
});

describe('cookies', () => {
  test('in several lines are filtered like those of one', async () => {
    await raw(`GET ${PREFIX}/g/collect`, [
      'Cookie: _ga=1',
      'Cookie: session=s3cret',
      'Cookie: _gcl_au=2; b=3',
    ]);
    expect(stage.upstream.received[0]?.headers.cookie).toBe('_ga=1; _gcl_au=2');
  });

  test.each([true, false])(
    'sent to the tag server do not contain the master cookie; restoration: %s',
    async (on) => {
      const own = await stage.site({
        features: { cookie_restoration: on },
        modules: { cookie_restoration: { masterCookie: 'shop_id' } },
        domains: [{ sameOrigin: prefixed(PREFIX, TOKEN) }],
      });
      const cookie = `shop_id=${'0123456789abcdef'.repeat(2)}; _ga=1`;
      const headers = { ...stated(TOKEN, `www.${own.domains[0]?.domain}`), cookie };
      await stage.send(own.host, `${PREFIX}/g/collect`, { headers });
      expect(stage.upstream.received[0]?.headers.cookie).toBe('_ga=1');
    },
  );

  test('do not identify a visitor in a request that no server vouches for', async () => {
    const id = 'f'.repeat(32);
    const answer = await stage.send(site.host, `${PREFIX}/boot`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie: `_fpid=${id}` },
      body: JSON.stringify({ loader: site.loader, url: `https://${page}/` }),
    });
    expect(answer.json.profile.id).not.toBe(id);
    expect(String(answer.headers['set-cookie'])).not.toContain('Domain=');
  });

  test('a customer’s session reaches neither tag server nor log, with and without a token', async () => {
    for (const headers of [stated(TOKEN, page), {}]) {
      const { arrived } = await outcome({
        ...headers,
        cookie: 'session=s3cret; admin=1',
        authorization: 's3cret',
      });
      expect(JSON.stringify(arrived)).not.toContain('s3cret');
    }
    expect(JSON.stringify(await stage.seen())).not.toContain('s3cret');
  });
});

describe('a body that means nothing', () => {
  test.each([
    ['GET', '/g/collect'],
    ['HEAD', '/g/collect'],
    ['GET', '/gtm.js'],
    ['GET', '/c/:token.js'],
  ])('%s %s with such a body is answered below a prefix as without a prefix', async (method, path) => {
    stage.upstream.reply = ({ url }) => (url.includes('gtm.js') ? vendorScript() : {});
    const target = path.replace(':token', `${site.domains[0]?.token}`);
    for (const framing of ['Content-Length: 3', 'Transfer-Encoding: chunked']) {
      const body = framing.startsWith('C') ? 'abc' : '3\r\nabc\r\n0\r\n\r\n';
      const [plain, below] = await Promise.all(
        ['', PREFIX].map((prefix) => raw(`${method} ${prefix}${target}`, [framing], body)),
      );
      expect(below?.split('\r\n')[0]).toBe(plain?.split('\r\n')[0]);
    }
  });
});

describe('a client that announces a body with Expect: 100-continue', () => {
  test.each(['', PREFIX])('gets the tag server’s answer, prefix "%s"', async (prefix) => {
    const headers = ['Expect: 100-continue', 'Content-Length: 3'];
    expect(await raw(`POST ${prefix}/g/collect`, headers, 'abc')).toContain('HTTP/1.1 200 OK');
    expect(stage.upstream.received).toHaveLength(1);
  });
});

describe('a cache', () => {
  test('of the isolate gives each host its own loader', async () => {
    const loaderFor = async (headers: Record<string, string>, prefix: string) =>
      (await stage.send(site.host, `${prefix}/l/${site.loader}.js`, { headers })).text;
    const bases = async () =>
      Promise.all([
        loaderFor({}, ''),
        loaderFor({}, PREFIX),
        loaderFor(stated(TOKEN, page), PREFIX),
        loaderFor(stated(TOKEN, `shop.${site.domains[0]?.domain}`), PREFIX),
        loaderFor({ ...stated(TOKEN, page), 'x-tagyard-scheme': 'http' }, PREFIX),
        loaderFor(stated(OTHER_TOKEN, `www.${site.domains[1]?.domain}`), OTHER_PREFIX),
      ]);
    const first = await bases();
    expect(new Set(first).size).toBe(6);
    expect(await bases()).toEqual(first);
  });

  test('of the data centre does not depend on what a request states', async () => {
    stage.upstream.reply = () => vendorScript();
    const script = `/c/${site.domains[2]?.token}.js`;
    await stage.seen();
    await stage.send(site.host, `${PREFIX}${script}`, { headers: stated(TOKEN, page) });
    const { cacheMatches } = await stage.seen();
    expect(cacheMatches.length).toBeGreaterThan(0);
    for (const key of cacheMatches) {
      expect(key.startsWith(`https://${site.host}/.tagyard/`)).toBe(true);
      expect(key).not.toContain(PREFIX);
    }
    // The copy serves the other hosts, with nothing of the first request in it.
    const copy = await stage.send(site.host, script);
    expect(copy).toMatchObject({ status: 200, text: 'window.vendorRan=1' });
    expect(stage.upstream.received).toHaveLength(1);
    expect(JSON.stringify(stage.upstream.received)).not.toContain(page);
  });

  test('between the domain’s server and the edge learns what the answer depends on', async () => {
    for (const headers of [stated(TOKEN, page), {}]) {
      const answer = await stage.send(site.host, `${PREFIX}/l/${site.loader}.js`, { headers });
      expect(answer.headers.vary).toBe('x-tagyard-host, x-tagyard-scheme, x-tagyard-forwarder-token');
    }
    const plain = await stage.send(site.host, `/l/${site.loader}.js`);
    expect(plain.headers.vary).toBeUndefined();
  });
});
