import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  HOP_SECRET,
  HOP_SECRET_PREVIOUS,
  type Stage,
  type StagedSite,
  startStage,
} from '../support/edge/stage.ts';

let stage: Stage;
let site: StagedSite;
beforeAll(async () => {
  stage = await startStage();
  site = await stage.site();
});
beforeEach(async () => {
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => ({});
  await stage.seen();
});
afterAll(() => stage.close());

const post = (body: string | Buffer, headers: Record<string, string> = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body,
});

describe('paths and methods', () => {
  test.each([
    ['GET', '/', 404, 'not_found', undefined],
    ['GET', '/nothing', 404, 'not_found', undefined],
    ['GET', '/boot/', 404, 'not_found', undefined],
    ['GET', '/.tagyard/ROUTES/x', 404, 'not_found', undefined],
    ['GET', '/.well-known/private-click-measurement/trigger-attribution/1', 404, 'not_found', undefined],
    ['GET', '/l/%E0%A4%A.js', 404, 'not_found', undefined],
    ['GET', '/l/', 404, 'not_found', undefined],
    ['POST', '/l/lt_loader0token00001.js', 405, 'method_not_allowed', 'GET, HEAD'],
    ['OPTIONS', '/l/lt_loader0token00001.js', 405, 'method_not_allowed', 'GET, HEAD'],
    ['DELETE', '/c/ct_container00tok0001.js', 405, 'method_not_allowed', 'GET, HEAD'],
    ['GET', '/boot', 405, 'method_not_allowed', 'POST, OPTIONS'],
    ['HEAD', '/boot', 405, 'method_not_allowed', 'POST, OPTIONS'],
    ['PUT', '/mark-session-detection', 405, 'method_not_allowed', 'POST, OPTIONS'],
  ])('%s %s: %i %s', async (method, path, status, code, allow) => {
    const answer = await stage.send(site.host, path, { method });
    expect(answer.status).toBe(status);
    expect(answer.headers.allow).toBe(allow);
    if (method !== 'HEAD') {
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(answer.json).toEqual({
        type: `urn:tagyard:problem:${code}`,
        title: expect.any(String),
        status,
        code,
        requestId: answer.headers['x-tagyard-request-id'],
      });
    }
    expect(stage.upstream.received).toEqual([]);
  });

  test('HEAD is answered like GET, without the body', async () => {
    const get = await stage.send(site.host, `/l/${site.loader}.js`);
    const head = await stage.send(site.host, `/l/${site.loader}.js`, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers.etag).toBe(get.headers.etag);
  });

  test('the paths of a disabled plugin are unknown', async () => {
    const off = await stage.site({ modules: { adblock_itp_detection: { enabled: false } } });
    expect((await stage.send(off.host, '/bait/gtm.js')).status).toBe(404);
    expect((await stage.send(off.host, `/c/${off.domains[0]?.token}.js`)).status).toBe(502);
  });

  test('no option disables the loader, the bootstrap and the tag server’s paths', async () => {
    const off = { enabled: false };
    const on = await stage.site({ modules: { custom_loader: off, server_proxy: off } });
    expect((await stage.send(on.host, `/l/${on.loader}.js`)).status).toBe(200);
    expect((await stage.boot(on)).status).toBe(200);
    expect((await stage.send(on.host, '/healthy')).status).toBe(200);
  });
});

describe('request ids', () => {
  test.each([
    ['new if there is none', undefined, /^[0-9a-f-]{36}$/],
    ['kept if it is valid', 'abc-123_X.y', /^abc-123_X\.y$/],
    ['replaced if it is invalid', 'a b<script>', /^[0-9a-f-]{36}$/],
    ['replaced if it is too long', 'x'.repeat(129), /^[0-9a-f-]{36}$/],
  ])('%s', async (_name, given, expected) => {
    const headers: Record<string, string> = given === undefined ? {} : { 'x-request-id': given };
    for (const path of [`/l/${site.loader}.js`, '/nothing', '/healthy']) {
      expect((await stage.send(site.host, path, { headers })).headers['x-request-id']).toMatch(expected);
    }
  });
});

describe('hosts', () => {
  test('an unknown host is answered by its own server, and remembered as unknown for a second', async () => {
    stage.upstream.reply = () => ({ status: 418 });
    expect((await stage.send('stranger.edge.test', '/healthy')).status).toBe(418);
    expect((await stage.send('stranger.edge.test', '/healthy')).status).toBe(418);
    expect((await stage.seen()).reads).toEqual(['ROUTES/stranger.edge.test']);
    await stage.forward(1001);
    await stage.send('stranger.edge.test', '/healthy');
    expect((await stage.seen()).reads).toEqual(['ROUTES/stranger.edge.test']);
  });

  test("a token of one site is unknown on another site's host", async () => {
    const other = await stage.site();
    expect((await stage.send(other.host, `/l/${site.loader}.js`)).json.code).toBe('unknown_loader');
    expect((await stage.send(other.host, `/c/${site.domains[0]?.token}.js`)).json.code).toBe(
      'unknown_container',
    );
    expect((await stage.boot(other, { loader: site.loader })).json.code).toBe('unknown_loader');
  });

  const edge = 'http://site1.edge.test';
  test.each([
    [
      'a custom domain, by our proxy',
      {
        'x-tagyard-hop-secret': HOP_SECRET,
        'x-forwarded-host': 'm.site1-0.example',
        'x-forwarded-proto': 'https',
      },
      'https://m.site1-0.example',
    ],
    [
      'with a port',
      {
        'x-tagyard-hop-secret': HOP_SECRET,
        'x-forwarded-host': 'm.site1-0.example:8443',
        'x-forwarded-proto': 'https',
      },
      'https://m.site1-0.example:8443',
    ],
    [
      'the registrable domain itself',
      { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': 'site1-0.example' },
      'http://site1-0.example',
    ],
    [
      'with the previous hop secret, while one replaces the other',
      { 'x-tagyard-hop-secret': HOP_SECRET_PREVIOUS, 'x-forwarded-host': 'm.site1-0.example' },
      'http://m.site1-0.example',
    ],
    [
      'without the hop secret',
      { 'x-forwarded-host': 'm.site1-0.example', 'x-forwarded-proto': 'https' },
      edge,
    ],
    [
      'with a wrong hop secret',
      { 'x-tagyard-hop-secret': `${HOP_SECRET.slice(1)}x`, 'x-forwarded-host': 'm.site1-0.example' },
      edge,
    ],
    [
      'with an empty hop secret',
      { 'x-tagyard-hop-secret': '', 'x-forwarded-host': 'm.site1-0.example' },
      edge,
    ],
    ['a foreign host', { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': 'evil.example' }, edge],
    [
      'a host with the same ending',
      { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': 'evilsite1-0.example' },
      edge,
    ],
    [
      'an invalid port',
      {
        'x-tagyard-hop-secret': HOP_SECRET,
        'x-forwarded-host': 'm.site1-0.example:99999',
        'x-forwarded-proto': 'https',
      },
      'https://site1.edge.test',
    ],
    [
      'an invalid IDNA name',
      { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': 'xn--a.site1-0.example' },
      edge,
    ],
    ['an invalid host', { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-host': 'a b/"c' }, edge],
  ])('script addresses: %s', async (_name, headers, expected) => {
    const { text } = await stage.send(site.host, `/l/${site.loader}.js`, { headers });
    expect(text).toContain(`"edge":"${expected}"`);
  });
});

describe('bodies', () => {
  const valid = (site: StagedSite) => ({ loader: site.loader, url: `https://${site.domains[0]?.domain}/` });

  test.each([
    ['an empty body', ''],
    ['not JSON', '{'],
    ['not an object', '[]'],
    ['an empty object', '{}'],
    ['a wrong type', JSON.stringify({ loader: 1, url: 'https://site1-0.example/' })],
    ['an invalid url', JSON.stringify({ loader: 'lt_loader0token00001', url: 'page' })],
    ['a url of another scheme', JSON.stringify({ loader: 'lt_loader0token00001', url: 'file:///etc' })],
    [
      'an invalid consent',
      JSON.stringify({ loader: 'x', url: 'https://a.b/', consent: { ad_storage: 'maybe' } }),
    ],
    ['octets that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
  ])('%s: 400 malformed_request', async (_name, body) => {
    const answer = await stage.send(site.host, '/boot', post(body));
    expect(answer).toMatchObject({ status: 400, json: { code: 'malformed_request' } });
  });

  test('the answer names the invalid members', async () => {
    const answer = await stage.send(site.host, '/boot', post('{"loader":"x","session":{"id":5}}'));
    expect(answer.json.errors.map(({ path }: { path: string }) => path)).toEqual(['url', 'session.id']);
  });

  test.each([
    ['64 KiB is accepted', 65_536, 200, {}],
    ['one octet more is refused', 65_537, 413, {}],
    ['a megabyte is refused', 1_048_576, 413, {}],
    ['one octet more without a content-length is refused', 65_537, 413, { 'transfer-encoding': 'chunked' }],
  ])('%s', async (_name, size, status, headers) => {
    const bare = JSON.stringify({ ...valid(site), pad: '' });
    const body = JSON.stringify({ ...valid(site), pad: 'x'.repeat(size - bare.length) });
    expect((await stage.send(site.host, '/boot', post(body, headers))).status).toBe(status);
  });

  test.each(['/nothing', '/l/x.js', '/mark-session-detection'])(
    'the body of a refused request to %s is read, so that the client sees the answer',
    async (path) => {
      const answer = await stage.send(site.host, path, post('x'.repeat(1_048_576)));
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.json.code).toEqual(expect.any(String));
    },
  );

  test('unknown members are ignored', async () => {
    expect((await stage.boot(site, { future: { a: 1 } })).status).toBe(200);
  });
});

describe('headers', () => {
  const load = (headers: Record<string, string>) =>
    stage.send(site.host, `/l/${site.loader}.js`, { headers });

  test.each([
    ['a long one is accepted', 'x-any', 100_000, 200],
    ['a host of any length is parsed', 'x-forwarded-host', 20_000, 200],
    ['cookies of any length are parsed', 'cookie', 20_000, 200],
  ])('%s', async (_name, header, octets, status) => {
    expect((await load({ [header]: 'a'.repeat(octets), 'x-tagyard-hop-secret': HOP_SECRET })).status).toBe(
      status,
    );
  });
});

describe('CORS', () => {
  const allowed = (origin: string) => ({
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    vary: 'origin',
  });

  test.each(['https://site1-0.example', 'https://www.site1-0.example', 'http://a.b.site1-0.example:8080'])(
    'a page of the site is allowed: %s',
    async (origin) => {
      const preflight = await stage.send(site.host, '/boot', { method: 'OPTIONS', headers: { origin } });
      expect(preflight.status).toBe(204);
      expect(preflight.headers).toMatchObject({
        ...allowed(origin),
        'access-control-allow-methods': 'POST',
        'access-control-allow-headers': 'content-type, x-gtm-server-preview',
        'access-control-max-age': '7200',
      });
      expect((await stage.boot(site, {}, { origin })).headers).toMatchObject(allowed(origin));
    },
  );

  test('the site’s pages may also read errors', async () => {
    const answer = await stage.boot(site, { loader: 'lt_unknown000000000' });
    expect(answer.status).toBe(404);
    expect(answer.headers).toMatchObject(allowed('https://www.site1-0.example'));
  });

  test.each([
    ['a foreign origin', 'https://evil.example'],
    ['an origin with the same ending', 'https://evilsite1-0.example'],
    ['the opaque origin', 'null'],
    ['an origin with a path', 'https://site1-0.example/'],
    ['user info', 'https://site1-0.example@evil.example'],
    ['another scheme', 'chrome-extension://site1-0.example'],
  ])('%s is refused with any content type', async (_name, origin) => {
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      const answer = await stage.boot(site, { cookies: { _ga: '1' } }, { origin, 'content-type': type });
      expect(answer).toMatchObject({ status: 403, json: { code: 'origin_not_allowed' } });
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
      expect(answer.headers['set-cookie']).toBeUndefined();
    }
    const { status } = await stage.send(site.host, '/boot', { method: 'OPTIONS', headers: { origin } });
    expect(status).toBe(403);
    expect((await stage.seen()).writes).toEqual([]);
  });

  test('a request without an origin is served without CORS headers', async () => {
    const answer = await stage.send(
      site.host,
      '/boot',
      post(JSON.stringify({ loader: site.loader, url: 'https://site1-0.example/' })),
    );
    expect(answer.status).toBe(200);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });
});
