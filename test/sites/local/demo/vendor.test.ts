import { runInNewContext } from 'node:vm';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildVendor } from '../../../../sites/local/demo/vendor/app.ts';
import { googleBehaviours } from '../../../conform/google/behaviours.ts';
import { buildGateway } from '../../../support/tag-gateway.ts';

const get = async (url: string, headers: Record<string, string> = {}) =>
  await buildVendor().inject({ url, headers });

const PAGE = 'https://www.acme.example/cart';

/** What a page requests while a script of `src` runs in it. */
interface Page extends Record<string, unknown> {
  readonly scripts: string[];
  readonly hits: string[];
}

/** Runs the script in a page and returns its globals. */
function runScript(
  body: string,
  window: Record<string, unknown> = {},
  src = 'https://vendor.example/script.js',
): Page {
  const scripts: string[] = [];
  const hits: string[] = [];
  const page = {
    scripts,
    hits,
    document: {
      readyState: 'complete',
      baseURI: PAGE,
      currentScript: { src },
      querySelector: () => null,
      createElement: () => ({}),
      head: { appendChild: (script: { src: string }) => scripts.push(script.src) },
    },
    location: { href: PAGE },
    addEventListener() {},
    fetch: async (url: string) => hits.push(url),
    ...window,
  };
  if (window.scripts !== undefined) Object.assign(page.document, { currentScript: { src } });
  runInNewContext(body, { window: page, URL, URLSearchParams });
  return page;
}

const hostsOf = (urls: readonly string[]) => urls.map((url) => new URL(url).host);

describe('the stand-in vendor', () => {
  test.each([
    ['/gtm.js?id=GTM-ABC1234', 200],
    ['/gtm.js?id=GTM-UNKNOWN1', 404],
    ['/gtm.js?id=gtm-abc1234', 404],
    ['/gtm.js', 404],
    ['/gtag/js?id=G-ABC1234', 200],
    ['/gtag/js?id=X-1', 404],
    ['/gtag/destination?id=AW-1234567', 200],
    ['/gtag/destination?id=GTM-ABC1234', 404],
    ['/ns.html?id=GTM-ABC1234', 200],
    ['/ns.html?id=GTM-UNKNOWN1', 404],
    ['/other', 404],
  ])('%s answers %i', async (url, status) => {
    const { statusCode, headers } = await get(url);
    expect(statusCode).toBe(status);
    if (status === 404) expect(headers['content-type']).not.toContain('javascript');
  });

  test('serves only the ids that `isKnown` accepts', async () => {
    const vendor = buildVendor({ isKnown: (id) => id === 'GTM-ONLYONE' });
    expect((await vendor.inject('/gtm.js?id=GTM-ONLYONE')).statusCode).toBe(200);
    expect((await vendor.inject('/gtm.js?id=GTM-ABC1234')).statusCode).toBe(404);
  });

  test('sends the headers that Google sends', async () => {
    const { headers } = await get('/gtm.js?id=GTM-ABC1234');
    expect(headers).toMatchObject({
      'content-type': 'application/javascript; charset=UTF-8',
      'cache-control': 'private, max-age=900',
      vary: 'Accept-Encoding',
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': 'Cache-Control',
      'cross-origin-resource-policy': 'cross-origin',
      server: 'Google Tag Manager',
      'x-xss-protection': '0',
    });
    expect(headers['set-cookie']).toBeUndefined();
    expect(Date.parse(String(headers.expires))).toBeGreaterThan(Date.now());
  });

  test.each([
    ['gzip, deflate, br', 'br', brotliDecompressSync],
    ['gzip', 'gzip', gunzipSync],
    ['br;q=0, gzip', 'gzip', gunzipSync],
  ])('compresses for accept-encoding %s', async (accepted, coding, unpack) => {
    const { headers, rawPayload } = await get('/gtm.js?id=GTM-ABC1234', { 'accept-encoding': accepted });
    expect(headers['content-encoding']).toBe(coding);
    expect(unpack(rawPayload).toString()).toContain('GTM-ABC1234');
  });

  test('registers itself and pushes to the data layer, once', async () => {
    const { body } = await get('/gtm.js?id=GTM-ABC1234');
    const page = runScript(body);
    expect(page.google_tag_manager).toHaveProperty('GTM-ABC1234.servedBy', 'vendor');
    expect(page.dataLayer).toMatchObject([{ event: 'gtm.dom' }, { event: 'gtm.load' }]);
    expect(runScript(body, page).dataLayer).toHaveLength(2);
  });

  test('uses the data layer named by l, if it is a name', async () => {
    const { body } = await get('/gtm.js?id=GTM-ABC1234&l=layer2');
    expect(runScript(body).layer2).toHaveLength(2);
    const hostile = await get(`/gtm.js?id=GTM-ABC1234&l=${encodeURIComponent("x');alert(1)//")}`);
    expect(hostile.body).not.toContain('alert');
  });

  test('renders another script for a preview', async () => {
    const url = '/gtm.js?id=GTM-ABC1234';
    const { body } = await get(`${url}&gtm_auth=a&gtm_preview=env-7&gtm_cookies_win=x`);
    expect(runScript(body).google_tag_manager).toHaveProperty('GTM-ABC1234.preview', 'env-7');
    expect(body).not.toBe((await get(url)).body);
  });
});

describe('what follows gtm.js (docs/facts.md, Web container script)', () => {
  const VENDOR = 'https://www.googletagmanager.com';
  const ANALYTICS = 'https://www.google-analytics.com';
  const container = (serverContainerUrl: string | null) => ({
    googleTag: 'G-SHOP1234',
    destinations: ['AW-7654321', 'DC-1234567'],
    serverContainerUrl,
  });
  const vendorWith = (serverContainerUrl: string | null) =>
    buildVendor({
      containerOf: () => container(serverContainerUrl),
      publicUrl: VENDOR,
      analyticsUrl: ANALYTICS,
    });

  test('is requested of the vendor, wherever the page got gtm.js from', async () => {
    const { body } = await vendorWith(null).inject('/gtm.js?id=GTM-ABC1234&l=layer2');
    const { scripts } = runScript(body, {}, 'https://metrics.acme.example/c/ct.js');
    expect(hostsOf(scripts)).toEqual(Array(3).fill('www.googletagmanager.com'));
    expect(scripts.map((url) => new URL(url).pathname)).toEqual([
      '/gtag/js',
      '/gtag/destination',
      '/gtag/destination',
    ]);
    expect(scripts[1]).toMatch(/\?id=AW-7654321&l=layer2&cx=c&gtm=\w+$/);
  });

  test('is requested of the host that was asked, if no other is set', async () => {
    const { body } = await buildVendor().inject({
      url: '/gtm.js?id=GTM-ABC1234',
      headers: { host: 'vendor.localhost:9000' },
    });
    expect(hostsOf(runScript(body).scripts)).toEqual(['vendor.localhost:9000', 'vendor.localhost:9000']);
  });

  test('carries the page’s nonce', async () => {
    const { body } = await vendorWith(null).inject('/gtm.js?id=GTM-ABC1234');
    const added: { nonce?: string }[] = [];
    runScript(body, {
      document: {
        readyState: 'complete',
        baseURI: PAGE,
        querySelector: () => ({ nonce: 'n0nce' }),
        createElement: () => ({}),
        head: { appendChild: (script: object) => added.push(script) },
      },
    });
    expect(added.map(({ nonce }) => nonce)).toEqual(['n0nce', 'n0nce', 'n0nce']);
  });

  test('is nothing without a Google tag', async () => {
    const vendor = buildVendor({
      containerOf: () => ({ googleTag: null, destinations: [], serverContainerUrl: null }),
    });
    expect(runScript((await vendor.inject('/gtm.js?id=GTM-ABC1234')).body).scripts).toEqual([]);
  });

  test.each([
    ['https://metrics.acme.example', 'https://metrics.acme.example/g/collect'],
    ['https://www.acme.example/m3trics1/', 'https://www.acme.example/m3trics1/g/collect'],
    [null, `${ANALYTICS}/g/collect`],
  ])('sends hits of a container with the server container %s to %s', async (serverContainerUrl, expected) => {
    const vendor = vendorWith(serverContainerUrl);
    const page = runScript((await vendor.inject('/gtm.js?id=GTM-ABC1234')).body);
    const tag = await vendor.inject('/gtag/js?id=G-SHOP1234&l=dataLayer&cx=c');
    runScript(tag.body, page);
    runScript(tag.body, page);
    expect(page.hits.map((url) => url.split('?')[0])).toEqual([expected]);
    expect(new URL(page.hits[0] ?? '').searchParams.get('tid')).toBe('G-SHOP1234');
  });

  test.each([
    ['server_container_url', 'https://new.acme.example'],
    ['transport_url', 'https://old.acme.example'],
  ])('sends hits to the %s of the page’s own configuration', async (name, url) => {
    const { body } = await vendorWith(null).inject('/gtag/js?id=G-SHOP1234&l=dataLayer');
    const { hits } = runScript(body, { dataLayer: [['config', 'G-SHOP1234', { [name]: url }]] });
    expect(hostsOf(hits)).toEqual([new URL(url).host]);
  });

  test('sends no hit before a configuration', async () => {
    const { body } = await vendorWith(null).inject('/gtag/js?id=G-SHOP1234');
    expect(runScript(body, { dataLayer: [['config', 'G-OTHER123', {}]] }).hits).toEqual([]);
  });

  test('sends hits, which the vendor accepts with every content type', async () => {
    const { statusCode } = await vendorWith(null).inject({
      method: 'POST',
      url: '/g/collect?v=2',
      headers: { 'content-type': 'text/plain;charset=UTF-8', origin: 'https://www.acme.example' },
      payload: 'en=page_view',
    });
    expect(statusCode).toBe(204);
  });
});

describe('the visitor’s place', () => {
  const consentDefaults = [
    { ad_storage: 'granted' },
    { region: ['DE', 'AT'], ad_storage: 'denied', analytics_storage: 'denied' },
    { region: ['US-CA'], ad_storage: 'denied' },
  ] as const;
  const containerOf = () => ({
    googleTag: null,
    destinations: [],
    serverContainerUrl: null,
    consentDefaults,
  });
  const registered = (body: string, page = {}) =>
    (runScript(body, page).google_tag_manager as Record<string, object>)['GTM-ABC1234']; // the script makes it
  const german = { ad_storage: 'denied', analytics_storage: 'denied' };

  test.each([
    [{ 'x-forwarded-countryregion': 'DE-BE' }, 'DE-BE', german],
    [{ 'x-forwarded-country': 'DE', 'x-forwarded-region': 'BE' }, 'DE-BE', german],
    [{ 'x-forwarded-country': 'AT' }, 'AT', german],
    [{ 'x-forwarded-countryregion': 'US-CA' }, 'US-CA', { ad_storage: 'denied' }],
    [{ 'x-forwarded-countryregion': 'US-NY' }, 'US-NY', { ad_storage: 'granted' }],
    [{ 'x-forwarded-countryregion': 'Germany' }, null, { ad_storage: 'granted' }],
    [{}, null, { ad_storage: 'granted' }],
  ])('%j: the script has the place, and that place’s consent', async (headers, place, consent) => {
    const url = '/gtm.js?id=GTM-ABC1234';
    const { body } = await buildVendor({ containerOf }).inject({ url, headers });
    expect(registered(body)).toMatchObject({ place, consent });
    const gateway = buildGateway({ id: 'GTM-ABC1234', containerOf });
    const served = await gateway.inject({ url: '/m3trics1/', headers });
    expect(registered(served.body)).toMatchObject({ place, consent });
  });

  test('a default of the page counts as one of the container', async () => {
    const headers = { 'x-forwarded-countryregion': 'US-NY' };
    const { body } = await buildVendor({ containerOf }).inject({ url: '/gtm.js?id=GTM-ABC1234', headers });
    const dataLayer = [['consent', 'default', { region: ['US-NY'], ad_storage: 'denied' }]];
    expect(registered(body, { dataLayer })).toMatchObject({ consent: { ad_storage: 'denied' } });
  });

  test('a vendor that knows only the requester’s address uses the place of that address, whatever is stated', async () => {
    const vendor = buildVendor({
      containerOf,
      placeOfAddress: (address) => (address === '127.0.0.1' ? 'FI-18' : null),
    });
    const headers = { 'x-forwarded-countryregion': 'DE-BE', 'x-forwarded-for': '203.0.113.7' };
    const { body } = await vendor.inject({ url: '/gtm.js?id=GTM-ABC1234', headers });
    expect(registered(body)).toMatchObject({ place: 'FI-18', consent: { ad_storage: 'granted' } });
  });
});

describe('the stand-in gateway', () => {
  const gateway = buildGateway({ id: 'GTM-ABC1234' });

  test.each([
    ['/healthy', 404],
    ['/two/segments/healthy', 404],
    ['/with-hyphen/healthy', 404],
    ['/m3trics1/', 200],
    ['/m3trics1', 404],
    ['/m3trics1/?id=GTM-OTHER12', 404],
    ['/m3trics1/other', 404],
    // With half of the visitor's place: a country without a region.
    ['/m3trics1/?validate_geo=healthy', 400],
  ])('%s answers %i', async (url, status) => {
    const { statusCode } = await gateway.inject({ url, headers: { 'x-forwarded-country': 'DE' } });
    expect(statusCode).toBe(status);
  });

  test('sends all that follows through its path, on the host that served the script', async () => {
    const page = runScript(
      (await gateway.inject('/m3trics1/')).body,
      {},
      'https://www.acme.example/m3trics1/',
    );
    expect(page.google_tag_manager).toHaveProperty('GTM-ABC1234.servedBy', 'gateway');
    expect(page.scripts.map((url) => url.split('?')[0])).toEqual([
      'https://www.acme.example/m3trics1/gtag/js',
      'https://www.acme.example/m3trics1/gtag/destination',
    ]);
    for (const url of page.scripts) {
      const { pathname, search } = new URL(url);
      runScript((await gateway.inject(pathname + search)).body, page, url);
    }
    expect(hostsOf(page.hits)).toEqual(['www.acme.example']);
    expect(page.hits[0]).toContain('/m3trics1/g/collect?v=2');
  });
});

describe('the stand-ins behave as Google does', () => {
  const vendor = buildVendor();
  const gateway = buildGateway({ id: 'GTM-ABC1234' });
  let urls: URL[] = [];
  beforeAll(async () => {
    const listening = [vendor, gateway].map((app) => app.listen({ host: '127.0.0.1', port: 0 }));
    urls = (await Promise.all(listening)).map((url) => new URL(url));
  });
  afterAll(() => Promise.all([vendor.close(), gateway.close()]));

  test.each(googleBehaviours)('$name', async ({ check }) => {
    const [tagManager, gatewayUrl] = urls as [URL, URL]; // both listen
    await check({ tagManager, gateway: () => gatewayUrl, containerId: 'GTM-ABC1234' });
  });
});
