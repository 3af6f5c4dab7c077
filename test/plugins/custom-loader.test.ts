import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { transform } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { renderSnippet } from '../../plugins/custom_loader/snippet.ts';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

const load = (site: StagedSite, headers = {}) => stage.send(site.host, `/l/${site.loader}.js`, { headers });

describe('GET /l/<loader token>.js', () => {
  test('is a cacheable script for the site', async () => {
    const site = await stage.site({ features: { cookie_restoration: true } });
    const answer = await load(site);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/javascript; charset=utf-8',
      'cache-control': 'public, max-age=300, stale-while-revalidate=86400',
      etag: expect.stringMatching(/^"[0-9a-f]{32}"$/),
    });
  });

  // Measured: 4,872 octets.
  test('is under 4,950 octets gzipped, with the default plugins and a token of real length', async () => {
    const site = await stage.site({ features: { cookie_restoration: true } });
    const token = `lt_${randomBytes(16).toString('hex')}`;
    await stage.put('LOADER_TOKEN_MAP', token, { version: 1, containerId: site.container });
    const { text } = await stage.send(site.host, `/l/${token}.js`, {
      headers: {
        'x-tagyard-hop-secret': HOP_SECRET,
        'x-forwarded-host': `metrics.${site.domains[0]?.domain}`,
        'x-forwarded-proto': 'https',
      },
    });
    expect(text).toContain('mark-session-detection');
    expect(gzipSync(text).byteLength).toBeLessThan(4950);
    const document = await readFile(new URL('../../docs/deploy-edge.md', import.meta.url), 'utf8');
    expect(document).toContain('| the loader | 4,950 octets gzipped,');
  });

  test('is ES2018 code that a strict content security policy allows', async () => {
    const { text } = await load(await stage.site());
    expect(text).not.toMatch(/\beval\b|new Function|document\.write|innerHTML|javascript:/);
    // esbuild would rewrite syntax that is newer than ES2018.
    const compact = async (target: string) => (await transform(text, { target })).code;
    expect(await compact('es2018')).toBe(await compact('esnext'));
  });

  test('is a 304 for its etag, which differs between sites', async () => {
    const [one, two] = [await stage.site(), await stage.site()];
    const etag = String((await load(one)).headers.etag);
    expect(await load(one, { 'if-none-match': etag })).toMatchObject({ status: 304, text: '' });
    expect((await load(one, { 'if-none-match': '*' })).status).toBe(304);
    expect((await load(two, { 'if-none-match': etag })).status).toBe(200);
  });

  test.each([
    '',
    'x',
    'lt_short',
    `lt_${'a'.repeat(65)}`,
    'lt_unknown000000000',
    '..%2f..%2fROUTES',
    '__proto__',
  ])('token "%s": 404, without a read if it is malformed', async (token) => {
    const site = await stage.site();
    await load(site);
    await stage.seen();
    const answer = await stage.send(site.host, `/l/${token}.js`);
    expect(answer.status).toBe(404);
    const { reads } = await stage.seen();
    expect(reads).toEqual(token === 'lt_unknown000000000' ? [`LOADER_TOKEN_MAP/${token}`] : []);
  });

  test('a rotated token resolves until its date begins (UTC)', async () => {
    const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
    expect((await load(await stage.site({ until: day(1) }))).status).toBe(200);
    expect((await load(await stage.site({ until: day(0) }))).status).toBe(404);
    expect((await load(await stage.site({ until: day(-1) }))).status).toBe(404);
  });

  test('has only the scripts of enabled plugins: no detection if it is off, no cookie names without restoration', async () => {
    const off = await load(await stage.site({ modules: { adblock_itp_detection: { enabled: false } } }));
    expect(off.text).not.toContain('mark-session-detection');
    expect(off.text).toContain('"cookies":[]');
    const on = await load(await stage.site({ features: { cookie_restoration: true } }));
    expect(on.text).toContain('mark-session-detection');
    expect(on.text).toContain('"cookies":["_ga","_ga_*"');
  });

  test('reads no store when it is warm', async () => {
    const site = await stage.site();
    await load(site);
    await stage.seen();
    await load(site);
    const { reads, writes, cacheMatches } = await stage.seen();
    expect({ reads, writes, cacheMatches }).toEqual({ reads: [], writes: [], cacheMatches: [] });
  });
});

describe('the snippet', () => {
  const options = {
    edgeUrl: 'https://shop.example.net',
    loaderToken: 'lt_abcdefghijklmnop',
    webTagId: 'GTM-ABC1234',
  };

  test('names the loader and the vendor’s script, and parses', async () => {
    const html = renderSnippet(options);
    expect(html).toMatch(/^<script>\n[^<]*\n<\/script>$/);
    expect(html).toContain('"https://shop.example.net/l/lt_abcdefghijklmnop.js"');
    expect(html).toContain('"https://www.googletagmanager.com/gtm.js?id=GTM-ABC1234"');
    const script = html.slice('<script>'.length, -'</script>'.length);
    await expect(transform(script, { target: 'es2018' })).resolves.toMatchObject({ warnings: [] });
  });

  test('supports another vendor, and URLs with a port', () => {
    const html = renderSnippet({
      ...options,
      edgeUrl: 'http://shop.tagyard.localhost:8787',
      vendorUrl: 'http://vendor.localhost:9000',
    });
    expect(html).toContain('"http://shop.tagyard.localhost:8787/l/');
    expect(html).toContain('"http://vendor.localhost:9000/gtm.js?id=GTM-ABC1234"');
  });

  test('no value can end the script or its literal', () => {
    const html = renderSnippet({
      ...options,
      loaderToken: '"</script><script>alert(1)//\u2028',
      webTagId: '"+x+"',
    });
    expect(html.match(/<\/?script>/g)).toHaveLength(2);
    expect(html).not.toContain('"+x+"');
  });
});
