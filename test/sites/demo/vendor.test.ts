import { runInNewContext } from 'node:vm';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { buildVendor } from '../../../sites/demo/vendor/app.ts';

const get = async (url: string, headers: Record<string, string> = {}) =>
  await buildVendor().inject({ url, headers });

/** Runs the script in a page and returns its globals. */
function runScript(body: string, window: Record<string, unknown> = {}): Record<string, unknown> {
  const page = { document: { readyState: 'complete' }, addEventListener() {}, ...window };
  runInNewContext(body, { window: page });
  return page;
}

describe('the stand-in vendor', () => {
  test.each([
    ['/gtm.js?id=GTM-ABC1234', 200],
    ['/gtm.js?id=GTM-UNKNOWN1', 404],
    ['/gtm.js?id=gtm-abc1234', 404],
    ['/gtm.js', 404],
    ['/gtag/js?id=G-ABC1234', 200],
    ['/gtag/js?id=X-1', 404],
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
