import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { forwarderToken, prefixed, stated } from '../support/edge/forwarder.ts';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import { vendorScript } from '../support/edge/upstream.ts';
import { eventually } from '../support/eventually.ts';

const PREFIX = '/m3trics1';
const TOKEN = forwarderToken('acme');
const ID = '0123456789abcdef0123456789abcdef';

let stage: Stage;
let site: StagedSite;
let page: string;
let base: string;
beforeAll(async () => {
  stage = await startStage();
  site = await stage.site({
    features: { cookie_restoration: true },
    domains: [{ sameOrigin: prefixed(PREFIX, TOKEN) }],
    proxyPaths: ['/data', '/webhooks/*'],
  });
  page = `www.${site.domains[0]?.domain}`;
  base = `https://${page}${PREFIX}`;
});
beforeEach(async () => {
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => ({});
  await stage.seen();
});
afterAll(() => stage.close());

interface Forwarding {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends a request as the domain's own server forwards it. */
const forward = (path: string, { headers = {}, ...rest }: Forwarding = {}) =>
  stage.send(site.host, `${PREFIX}${path}`, { ...rest, headers: { ...stated(TOKEN, page), ...headers } });

const boot = (headers: Record<string, string> = {}, body: object = {}) =>
  forward('/boot', {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: `https://${page}`, ...headers },
    body: JSON.stringify({ loader: site.loader, url: `https://${page}/x`, ...body }),
  });

describe('under the prefix', () => {
  test('the loader names the prefix on the page’s own host as its edge', async () => {
    const answer = await forward(`/l/${site.loader}.js`);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain(JSON.stringify(base));
    expect(answer.text).not.toContain(site.host);
    const etag = String(answer.headers.etag);
    expect((await forward(`/l/${site.loader}.js`, { headers: { 'if-none-match': etag } })).status).toBe(304);
  });

  test('the bootstrap names the script under it and sets the id for the registrable domain', async () => {
    const answer = await boot();
    expect(answer.status).toBe(200);
    expect(answer.json.container.scriptUrl).toBe(`${base}/c/${site.domains[0]?.token}.js`);
    expect(answer.headers['access-control-allow-origin']).toBe(`https://${page}`);
    expect(answer.headers['set-cookie']).toEqual([
      `_fpid=${answer.json.profile.id}; Path=/; Max-Age=34128000; Domain=${site.domains[0]?.domain}; Secure; SameSite=Lax`,
    ]);
  });

  test('the id in the request’s cookie is recognised', async () => {
    const { json } = await boot({ cookie: `session=secret; _fpid=${ID}` });
    expect(json.profile).toEqual({ id: ID, isNew: false });
  });

  test('the web tag’s script, detection and bait answer', async () => {
    stage.upstream.reply = () => vendorScript();
    expect((await forward(`/c/${site.domains[0]?.token}.js`)).text).toContain('vendorRan');
    expect((await forward('/bait/gtm.js?v=1&ad_type=banner')).status).toBe(204);
    const detected = await forward('/mark-session-detection', {
      method: 'POST',
      body: JSON.stringify({ loader: site.loader, session: { id: ID }, signals: { adblock: true } }),
    });
    expect(detected.json).toEqual({ forwarded: true });
    await eventually(() => expect(stage.upstream.received.at(-1)?.url).toContain('/tagyard/detection'));
  });

  test.each([
    ['GET', '/g/collect?v=2&tid=G-1&en=page%20view', '/g/collect?v=2&tid=G-1&en=page%20view'],
    ['POST', '/mp/collect?x', '/mp/collect?x'],
    ['GET', '/_/service_worker/5/sw_iframe.html?origin=x', '/_/service_worker/5/sw_iframe.html?origin=x'],
    ['GET', '/gtm/debug?id=GTM-1', '/gtm/debug?id=GTM-1'],
    ['GET', '/gtag/js?id=G-1', '/gtag/js?id=G-1'],
    ['GET', '/healthy', '/healthy'],
    ['POST', '/data', '/data'],
    ['PUT', '/webhooks/a/b?c=d', '/webhooks/a/b?c=d'],
    ['GET', '/g/collect?a=/m3trics1/b', '/g/collect?a=/m3trics1/b'],
  ])('%s %s reaches the tag server', async (method, path, expected) => {
    const body = method === 'GET' ? {} : { body: 'a=1&b=\u00e9' };
    expect((await forward(path, { method, ...body })).status).toBe(200);
    expect(stage.upstream.received).toHaveLength(1);
    const [received] = stage.upstream.received;
    expect(received).toMatchObject({ method, body: body.body ?? '' });
    expect(received?.url).toBe(`https://${site.id}-origin.test:8443${expected}`);
    expect(received?.headers).toMatchObject({
      'x-forwarded-for': '198.51.100.7',
      'x-forwarded-host': page,
      'x-forwarded-proto': 'https',
      // For a cluster's gateway, which doesn't read headers that a controller before it may overwrite.
      'x-tagyard-visitor': '198.51.100.7',
      'x-tagyard-host': page,
      'x-tagyard-scheme': 'https',
    });
    expect(Object.keys(received?.headers ?? {}).filter((name) => name.startsWith('x-tagyard'))).toEqual([
      'x-tagyard-hop-secret',
      'x-tagyard-host',
      'x-tagyard-scheme',
      'x-tagyard-visitor',
    ]);
  });

  test.each([
    ['/g/collect/?v=2', '/g/collect?v=2'],
    ['/g/collect/', '/g/collect'],
    ['/mp/collect/', '/mp/collect'],
    ['/healthy/', '/healthy'],
    ['/data/?a=1', '/data?a=1'],
    ['/webhooks/a/', '/webhooks/a/'],
    ['/gtm/debug/', '/gtm/debug/'],
  ])('a slash that a framework adds is taken off: %s arrives as %s', async (path, expected) => {
    expect((await forward(path, { method: 'POST', body: 'en=x' })).status).toBe(200);
    expect(stage.upstream.received[0]?.url).toBe(`https://${site.id}-origin.test:8443${expected}`);
    expect(stage.upstream.received[0]?.body).toBe('en=x');
  });

  test('a slash that a framework adds is taken off the edge’s own paths, too', async () => {
    expect((await forward(`/l/${site.loader}.js/`)).status).toBe(200);
    const sent = JSON.stringify({ loader: site.loader, url: `https://${page}/x` });
    expect((await forward('/boot/', { method: 'POST', body: sent })).status).toBe(200);
    for (const path of ['/g/collect//', '/nothing/', '/boot/x/']) {
      expect((await forward(path)).json.code).toBe('not_found');
    }
    expect((await stage.send(site.host, '/g/collect/')).json.code).toBe('not_found');
  });

  test.each([
    ['a path', () => '/gtm/debug?x=1#y', () => `${base}/gtm/debug?x=1#y`],
    ['its own address', () => `https://${page}/gtm/debug`, () => `${base}/gtm/debug`],
    ['another host', () => 'https://elsewhere.example/a', () => 'https://elsewhere.example/a'],
    ['another host, without a scheme', () => '//elsewhere.example/a', () => '//elsewhere.example/a'],
    ['a relative path', () => 'next', () => 'next'],
  ])('a redirect of the tag server to %s stays valid', async (_what, given, expected) => {
    stage.upstream.reply = () => ({ status: 302, headers: { location: given() } });
    expect((await forward('/gtm/start')).headers.location).toBe(expected());
  });

  test.each(['/nothing', '', '/', '/m3trics1/boot', '/.well-known/x'])('%j is not found', async (path) => {
    expect((await forward(path)).json.code).toBe('not_found');
    expect(stage.upstream.received).toEqual([]);
  });

  test('an error that comes before the body is read still ends the request', async () => {
    const answer = await forward('/boot', { method: 'POST', body: 'x'.repeat(100_000) });
    expect(answer.json.code).toBe('body_too_large');
    expect((await forward('/nothing', { method: 'POST', body: 'x'.repeat(100_000) })).status).toBe(404);
  });
});

describe('what the domain’s own server states', () => {
  const arrival = async (headers: Record<string, string>) => {
    stage.upstream.received.length = 0;
    await forward('/g/collect', { headers });
    const { headers: got = {} } = stage.upstream.received[0] ?? {};
    return [got['x-forwarded-proto'], got['x-forwarded-host'], got['x-forwarded-for']];
  };

  test('counts as the visitor’s address, host and scheme', async () => {
    expect(await arrival({})).toEqual(['https', page, '198.51.100.7']);
    expect(await arrival({ 'x-tagyard-scheme': 'http' })).toEqual(['http', page, '198.51.100.7']);
    expect(await arrival({ 'x-tagyard-scheme': 'ftp' })).toEqual(['https', page, '198.51.100.7']);
    const domain = site.domains[0]?.domain ?? '';
    expect(await arrival({ 'x-tagyard-host': domain.toUpperCase() })).toEqual([
      'https',
      domain,
      '198.51.100.7',
    ]);
    expect(await arrival({ 'x-tagyard-host': `${page}:8443` })).toEqual([
      'https',
      `${page}:8443`,
      '198.51.100.7',
    ]);
  });

  test.each([
    ['2001:db8::7', '2001:db8::7'],
    ['198.51.100.8:50123', '198.51.100.8'],
    ['[2001:db8::8]:50123', '2001:db8::8'],
    ['198.51.100.9, 10.0.0.1', undefined],
    ['nonsense', undefined],
    ['', undefined],
  ])('the visitor %j arrives as %s', async (visitor, expected) => {
    expect((await arrival({ 'x-tagyard-visitor': visitor }))[2]).toBe(expected);
  });

  test.each([
    ['nothing', {}, undefined, undefined],
    ['a country', { 'x-tagyard-country': 'de' }, 'DE', undefined],
    ['a country and a region', { 'x-tagyard-country': 'US', 'x-tagyard-region': 'CA' }, 'US', 'CA'],
    ['no valid code', { 'x-tagyard-country': 'Germany', 'x-tagyard-region': 'BE' }, undefined, undefined],
    [
      'the place under other names',
      { 'x-forwarded-country': 'FR', 'cf-ipcountry': 'FR' },
      undefined,
      undefined,
    ],
  ])(
    'if the domain’s server states %s, nothing else is known of the place',
    async (_what, headers, ...place) => {
      await forward('/g/collect', { headers });
      const [received] = stage.upstream.received;
      expect([received?.headers['x-forwarded-country'], received?.headers['x-forwarded-region']]).toEqual(
        place,
      );
    },
  );

  test('without its token doesn’t count as the place', async () => {
    const headers = { 'x-tagyard-country': 'DE' };
    await stage.send(site.host, `${PREFIX}/g/collect`, { headers });
    await stage.send(site.host, '/g/collect', { headers });
    for (const received of stage.upstream.received) {
      expect(received.headers).not.toHaveProperty('x-tagyard-country');
      expect(received.headers['x-forwarded-country']).not.toBe('DE');
    }
    expect(stage.upstream.received).toHaveLength(2);
  });
});

describe('the cookies of the domain’s pages', () => {
  const cookies = async (cookie: string) => {
    stage.upstream.received.length = 0;
    await forward('/g/collect', { headers: { cookie } });
    return stage.upstream.received[0]?.headers.cookie;
  };

  test.each([
    [`PHPSESSID=a; _fpid=${ID}; wordpress_logged_in_1=b; _ga=c; _ga_ABC=d`, `_fpid=${ID}; _ga=c; _ga_ABC=d`],
    ['FPID=a; FPLC=b;FPGCLAW=c ; gtm_debug=d', 'FPID=a; FPLC=b; FPGCLAW=c; gtm_debug=d'],
    ['_gcl_au=a=b; _fbp=c; _fbc=', '_gcl_au=a=b; _fbp=c; _fbc='],
    ['_GA=a; _gax=b; x_ga=c; FPIDx=d', undefined],
    ['_ga; =_ga=1; session', undefined],
    ['', undefined],
  ])('%j arrive as %j', async (given, expected) => {
    expect(await cookies(given)).toBe(expected);
  });

  test('those that a plugin wants arrive, too', async () => {
    const own = await stage.site({
      features: { cookie_restoration: true },
      modules: { cookie_restoration: { cookies: ['shop_*', 'visitor'] } },
      domains: [{ sameOrigin: prefixed(PREFIX, TOKEN) }],
    });
    await stage.send(own.host, `${PREFIX}/g/collect`, {
      headers: { ...stated(TOKEN, own.domains[0]?.domain ?? ''), cookie: 'shop_a=1; visitor=2; visitors=3' },
    });
    expect(stage.upstream.received[0]?.headers.cookie).toBe('shop_a=1; visitor=2');
  });

  test('credentials of the pages’ server don’t arrive; other headers do', async () => {
    await forward('/g/collect', { headers: { authorization: 'Basic c2VjcmV0', 'x-app': 'shop' } });
    const [received] = stage.upstream.received;
    expect(received?.headers).not.toHaveProperty('authorization');
    expect(received?.headers['x-app']).toBe('shop');
  });

  test('at the edge hostname, authorization passes', async () => {
    const headers = { cookie: 'PHPSESSID=a; _ga=b', authorization: 'Bearer a' };
    await stage.send(site.host, '/g/collect', { headers });
    expect(stage.upstream.received[0]?.headers).toMatchObject({ ...headers, cookie: '_ga=b' });
  });
});

describe('a prefix', () => {
  test('serves without a token, too, and names the edge hostname', async () => {
    const { text } = await stage.send(site.host, `${PREFIX}/l/${site.loader}.js`);
    expect(text).toContain(JSON.stringify(`http://${site.host}${PREFIX}`));
  });

  test('serves on a custom domain, too, and names that host', async () => {
    const headers = {
      'x-tagyard-hop-secret': HOP_SECRET,
      'x-forwarded-host': `m.${site.domains[0]?.domain}`,
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '203.0.113.5',
    };
    const { text } = await stage.send(site.host, `${PREFIX}/l/${site.loader}.js`, { headers });
    expect(text).toContain(JSON.stringify(`https://m.${site.domains[0]?.domain}${PREFIX}`));
  });

  test('of an inactive domain and of no domain is unknown', async () => {
    const own = await stage.site({
      domains: [{}, { active: false, sameOrigin: prefixed(PREFIX, TOKEN) }],
    });
    expect((await stage.send(own.host, `${PREFIX}/healthy`)).json.code).toBe('not_found');
    expect((await stage.send(site.host, '/m3trics2/healthy')).json.code).toBe('not_found');
    expect((await stage.send(site.host, '/m3trics1x/healthy')).json.code).toBe('not_found');
  });

  test('of two domains belongs to the domain of the token', async () => {
    const other = forwarderToken('outlet');
    const own = await stage.site({
      features: { multi_domain: true },
      domains: [{ sameOrigin: prefixed(PREFIX, TOKEN) }, { sameOrigin: prefixed(PREFIX, other) }],
    });
    for (const [token, domain] of [
      [TOKEN, own.domains[0]?.domain],
      [other, own.domains[1]?.domain],
    ]) {
      const headers = stated(token ?? '', `www.${domain}`);
      const { text } = await stage.send(own.host, `${PREFIX}/l/${own.loader}.js`, { headers });
      expect(text).toContain(JSON.stringify(`https://www.${domain}${PREFIX}`));
    }
  });
});
