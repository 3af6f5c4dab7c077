import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { droppedHeaders } from '../../gitops/appliers/proxy/policy.ts';
import { renderSandboxSnippet } from '../../plugins/custom_loader/snippet.ts';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import { exchangeInPieces } from '../support/edge/streams.ts';
import { vendorScript } from '../support/edge/upstream.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
beforeEach(async () => {
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => ({});
  await stage.seen();
});
afterAll(() => stage.close());

const script = (site: StagedSite, query = '', headers = {}) =>
  stage.send(site.host, `/c/${site.domains[0]?.token}.js${query}`, { headers });
const asked = () => stage.upstream.received.map(({ url }) => url);

describe('GET /c/<container token>.js', () => {
  test('is the vendor’s script of the domain’s web tag, with safe headers only', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => vendorScript('var a=1');
    const answer = await script(site, '?id=GTM-EVIL&x=1', { cookie: 'secret=1', 'user-agent': 'ua' });
    expect(answer).toMatchObject({ status: 200, text: 'var a=1' });
    expect(answer.headers).toMatchObject({
      'content-type': 'application/javascript; charset=UTF-8',
      'cache-control': expect.stringMatching(/^public, max-age=(?:899|900), stale-if-error=86400$/),
      'cross-origin-resource-policy': 'cross-origin',
    });
    expect(answer.headers['set-cookie']).toBeUndefined();
    expect(answer.headers.server).toBeUndefined();
    expect(asked()).toEqual([`https://vendor.test/gtm.js?id=${site.domains[0]?.webTagId}`]);
    expect(stage.upstream.received[0]?.headers.cookie).toBeUndefined();
  });

  test('is for pages of no origin, too, whose snippet loads it without the loader', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => vendorScript();
    const edgeUrl = `https://${site.host}`;
    const containerToken = site.domains[0]?.token ?? '';
    const code = renderSandboxSnippet({ edgeUrl, containerToken }).replace(/^<script>|<\/script>$/g, '');
    const added: { src?: string; crossOrigin?: string }[] = [];
    const window: { dataLayer?: { event: string }[] } = {};
    const document = {
      createElement: () => ({}),
      head: { appendChild: (element: object) => added.push(element) },
    };
    new Function('window', 'document', code)(window, document);
    expect(window.dataLayer).toMatchObject([{ event: 'gtm.js' }]);
    expect(added).toMatchObject([{ crossOrigin: 'anonymous' }]);
    const { pathname } = new URL(added[0]?.src ?? '');
    const answer = await stage.send(site.host, pathname, { headers: { origin: 'null' } });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
    });
    // The loader's way is not theirs: any page can make such a frame.
    expect((await stage.boot(site, {}, { origin: 'null' })).json.code).toBe('origin_not_allowed');
  });

  test('is fetched once for simultaneous requests, then served from memory, per data layer name', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => vendorScript();
    const answers = await Promise.all(Array.from({ length: 20 }, () => script(site)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(asked()).toHaveLength(1);
    await script(site, '?l=dataLayer');
    expect(asked()).toHaveLength(1);
    await script(site, '?l=other');
    expect(asked()).toHaveLength(2);
    await stage.seen();
    await script(site);
    const { reads, cacheMatches, records } = await stage.seen();
    expect({ reads, matches: cacheMatches.length, cache: records[0]?.cache }).toEqual({
      reads: [],
      matches: 0,
      cache: 'hit',
    });
    // Another isolate of the data centre, with an empty memory.
    await stage.restart();
    await script(site);
    expect((await stage.seen()).cacheMatches.filter((url) => url.includes('/vendor/'))).toHaveLength(1);
    expect(asked()).toHaveLength(2);
  });

  test.each(['my-layer', '1st', 'a b', 'x'.repeat(65), 'é', '%00', "a';alert(1)//"])(
    'the data layer name "%s" is refused without a request to the vendor',
    async (name) => {
      const site = await stage.site();
      expect(await script(site, `?l=${encodeURIComponent(name)}`)).toMatchObject({
        status: 400,
        json: { code: 'malformed_request' },
      });
      const { cacheMatches } = await stage.seen();
      expect([asked(), cacheMatches.filter((url) => url.includes('/vendor/'))]).toEqual([[], []]);
    },
  );

  test.each(['dataLayer', '_x', '$', 'x'.repeat(64), ''])(
    'the data layer name "%s" is accepted',
    async (name) => {
      const site = await stage.site();
      stage.upstream.reply = () => vendorScript();
      expect((await script(site, `?l=${name}`)).status).toBe(200);
    },
  );

  test('a sixth data layer name of a site is refused, not fetched, until the first five are an hour old', async () => {
    const [site, other] = [await stage.site(), await stage.site()];
    stage.upstream.reply = ({ url }) => vendorScript(url);
    const layer = (index: number) => `?l=layer${index}`;
    for (const index of [1, 2, 3, 4, 5]) expect((await script(site, layer(index))).status).toBe(200);
    for (const index of [6, 7]) {
      expect(await script(site, layer(index))).toMatchObject({
        status: 400,
        json: { code: 'malformed_request' },
      });
      expect((await script(site, `${layer(index)}&gtm_debug=x`)).status).toBe(400);
    }
    expect(asked()).toHaveLength(5);
    // The default name, names that have a copy and other sites are not affected.
    expect((await script(site)).status).toBe(200);
    expect((await script(site, layer(5))).status).toBe(200);
    expect((await script(other, layer(6))).status).toBe(200);
    expect(asked()).toHaveLength(7);
    await stage.forward(3_600_000);
    expect((await script(site, layer(6))).status).toBe(200);
  });

  test('data layer names in the site’s options are always fetched, and are not among the five', async () => {
    const site = await stage.site({ dataLayers: ['ownLayer', 'shopLayer'] });
    stage.upstream.reply = ({ url }) => vendorScript(url);
    for (const index of [1, 2, 3, 4, 5]) expect((await script(site, `?l=junk${index}`)).status).toBe(200);
    expect((await script(site, '?l=junk6')).status).toBe(400);
    expect((await script(site, '?l=ownLayer')).status).toBe(200);
    expect((await script(site, '?l=shopLayer&gtm_debug=x')).status).toBe(200);
    const used = await stage.site({ dataLayers: ['ownLayer'] });
    expect((await script(used, '?l=ownLayer')).status).toBe(200);
    for (const index of [1, 2, 3, 4, 5]) expect((await script(used, `?l=other${index}`)).status).toBe(200);
  });

  test('data layer names in the site’s options are also fetched while EDGE_CONFIG can’t be read', async () => {
    const site = await stage.site({ dataLayers: ['ownLayer'] });
    stage.upstream.reply = () => vendorScript();
    await stage.fault('EDGE_CONFIG', 'fail');
    for (const index of [1, 2, 3, 4, 5]) await script(site, `?l=junk${index}`);
    expect((await script(site, '?l=ownLayer')).status).toBe(200);
    await stage.fault('EDGE_CONFIG', null);
  });

  test('a name that has a copy is served and renewed, whatever names others ask for', async () => {
    const site = await stage.site();
    let version = 1;
    stage.upstream.reply = () => vendorScript(`v${version}`);
    expect((await script(site, '?l=own')).text).toBe('v1');
    await stage.forward(3_600_000);
    version = 2;
    for (const index of [1, 2, 3, 4, 5]) await script(site, `?l=junk${index}`);
    await script(site, '?l=own');
    await expect.poll(async () => (await script(site, '?l=own')).text).toBe('v2');
  });

  test('is one copy for all sites with the same web tag', async () => {
    const domains = [{ webTagId: 'GTM-SHARED' }];
    const [one, other] = [await stage.site({ domains }), await stage.site({ domains })];
    stage.upstream.reply = () => vendorScript('shared');
    expect((await script(one)).text).toBe('shared');
    expect((await script(other)).text).toBe('shared');
    expect(asked()).toEqual(['https://vendor.test/gtm.js?id=GTM-SHARED']);
  });

  test('is a 304 for its etag, also for a weak one in a list, and a 200 for another', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => vendorScript();
    const { headers } = await script(site);
    const etag = String(headers.etag);
    expect(await script(site, '', { 'if-none-match': etag })).toMatchObject({ status: 304, text: '' });
    expect((await script(site, '', { 'if-none-match': `"other", W/${etag}` })).status).toBe(304);
    expect((await script(site, '', { 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('is fresh for the vendor’s max-age, at most 15 minutes, then fetched again', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => ({
      ...vendorScript(),
      headers: { ...vendorScript().headers, 'cache-control': 'private, max-age=100' },
    });
    expect((await script(site)).headers['cache-control']).toMatch(/max-age=(?:99|100),/);
    await stage.forward(60_000);
    expect((await script(site)).headers['cache-control']).toMatch(/max-age=(?:38|39|40),/);
    expect(asked()).toHaveLength(1);
    await stage.forward(41_000);
    await script(site);
    await expect.poll(asked).toHaveLength(2);
  });

  test.each([
    ['breaks the connection', () => Promise.reject(new Error('gone'))],
    ['answers 404', () => ({ status: 404, headers: { 'content-type': 'text/html' }, body: 'no' })],
    ['answers 500', () => ({ status: 500 })],
    [
      'answers something that is not a script',
      () => ({ headers: { 'content-type': 'text/html' }, body: '<html>' }),
    ],
    ['redirects elsewhere', () => ({ status: 302, headers: { location: 'https://evil.example/' } })],
  ])(
    'if the vendor %s, the last good copy is served, or else 502 for at most a minute',
    async (_name, fail) => {
      const [seen, unseen] = [await stage.site(), await stage.site()];
      stage.upstream.reply = () => vendorScript('good');
      await script(seen);
      stage.upstream.reply = fail;
      await stage.forward(3_600_000);
      expect(await script(seen)).toMatchObject({ status: 200, text: 'good' });
      expect(await script(unseen)).toMatchObject({ status: 502, json: { code: 'upstream_failed' } });
      expect(asked().filter((url) => url.includes('evil'))).toEqual([]);
      stage.upstream.reply = () => vendorScript('again');
      // After a minute even what the vendor has refused is fetched again.
      await stage.forward(60_000);
      expect((await script(unseen)).text).toBe('again');
    },
  );

  test('a stale copy is served at once while a new one is fetched, once for all requests', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => vendorScript('old');
    await script(site);
    await stage.forward(3_600_000);
    await stage.seen();
    const answer = Promise.withResolvers<void>();
    stage.upstream.received.length = 0;
    stage.upstream.reply = async () => {
      await answer.promise;
      return vendorScript('new');
    };
    // The vendor answers only after all of these are served.
    for (let request = 0; request < 5; request += 1) {
      const { text, headers } = await script(site);
      expect([text, headers['cache-control']]).toEqual(['old', 'public, max-age=30, stale-if-error=86400']);
    }
    expect((await stage.seen()).records.map(({ cache }) => cache)).toEqual(Array(5).fill('stale'));
    answer.resolve();
    await expect.poll(async () => (await script(site)).text).toBe('new');
    expect(asked()).toHaveLength(1);
  });

  test('a copy that is older than a day is served only if the vendor fails', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => vendorScript('old');
    await script(site);
    await stage.forward(2 * 86_400_000);
    stage.upstream.reply = () => vendorScript('new');
    expect((await script(site)).text).toBe('new');
    await stage.forward(2 * 86_400_000);
    stage.upstream.reply = () => ({ status: 500 });
    expect((await script(site)).text).toBe('new');
  });

  test.each([404, 403, 429])(
    'a %i of the vendor is remembered for a minute, and logged with its cause',
    async (status) => {
      const site = await stage.site();
      const cause = `the vendor answered ${status} text/html`;
      const refusal = { status, headers: { 'content-type': 'text/html' }, body: 'no' };
      stage.upstream.reply = () => refusal;
      await stage.seen();
      for (let request = 0; request < 5; request += 1) expect((await script(site)).status).toBe(502);
      expect(asked()).toHaveLength(1);
      const logged = (await stage.seen()).records.map(({ error, cause }) => [error, cause]);
      expect(logged).toEqual(Array(5).fill(['upstream_failed', cause]));
      stage.upstream.reply = () => vendorScript('published');
      await stage.forward(50_000);
      expect((await script(site)).status).toBe(502);
      await stage.forward(10_500);
      expect((await script(site)).text).toBe('published');
      // A container that is removed later: the copy is served, and the log says why.
      stage.upstream.reply = () => refusal;
      await stage.forward(3_600_000);
      await script(site);
      await stage.seen();
      await expect
        .poll(async () => {
          await script(site);
          return (await stage.seen()).records[0];
        })
        .toMatchObject({ status: 200, cache: 'stale', error: null, cause });
    },
  );

  test('simultaneous requests for a script that the vendor refuses get 502, after one request to it', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => ({ status: 404, headers: { 'content-type': 'text/html' } });
    const answers = await Promise.all(Array.from({ length: 30 }, () => script(site)));
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(502));
    expect(asked()).toHaveLength(1);
  });

  test('without a copy, a temporary failure is not remembered: the vendor is asked again', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => ({ status: 503 });
    expect((await script(site)).status).toBe(502);
    expect((await stage.seen()).records[0]).toMatchObject({ cause: 'the vendor answered 503' });
    stage.upstream.reply = () => vendorScript('back');
    expect((await script(site)).text).toBe('back');
  });

  test('after a failure, the vendor isn’t asked for a while, and a stale copy is served', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => vendorScript('old');
    await script(site);
    stage.upstream.reply = () => ({ status: 500 });
    await stage.forward(3_600_000);
    stage.upstream.received.length = 0;
    await script(site);
    await expect
      .poll(async () => {
        await script(site);
        return (await stage.seen()).records[0]?.cause;
      })
      .toBe('the vendor answered 500');
    for (let request = 0; request < 5; request += 1) expect((await script(site)).text).toBe('old');
    expect(asked()).toHaveLength(1);
    await stage.forward(10_100);
    stage.upstream.reply = () => vendorScript('new');
    await script(site);
    await expect.poll(async () => (await script(site)).text).toBe('new');
  });

  test('while the vendor hangs, a request with a stale copy is answered before one without', async () => {
    const [seen, unseen] = [await stage.site(), await stage.site()];
    stage.upstream.reply = () => vendorScript('old');
    await script(seen);
    stage.upstream.reply = () => new Promise(() => undefined);
    await stage.forward(2 * 86_400_000);
    const order: (string | number)[] = [];
    await Promise.all([
      script(unseen).then(({ status }) => order.push(status)),
      script(seen).then(({ text }) => order.push(text)),
    ]);
    expect(order).toEqual(['old', 502]);
  });

  test.each([
    [
      'gtm_auth',
      '?gtm_auth=a&gtm_preview=env-1&gtm_cookies_win=x&id=GTM-EVIL',
      {},
      '&gtm_auth=a&gtm_preview=env-1&gtm_cookies_win=x',
    ],
    ['gtm_debug', '?gtm_debug=x', {}, '&gtm_debug=x'],
    ['an empty preview parameter', '?gtm_preview=', {}, '&gtm_preview='],
    ['the preview header', '', { 'x-gtm-server-preview': 'ZW52' }, ''],
    ['a debug cookie', '', { cookie: 'a=1; gtm_debug=x' }, ''],
  ])('with %s, neither the edge nor the browser caches the script', async (_name, query, headers, passed) => {
    const site = await stage.site();
    let made = 0;
    stage.upstream.reply = () => vendorScript(String(++made));
    expect((await script(site)).text).toBe('1');
    for (const expected of ['2', '3']) {
      const answer = await script(site, query, headers);
      expect(answer.text).toBe(expected);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(asked().at(-1)).toBe(`https://vendor.test/gtm.js?id=${site.domains[0]?.webTagId}${passed}`);
    }
    expect((await script(site)).text).toBe('1');
  });

  test.each(['ct_unknown', 'ct_container00tok9999', '..%2fgtm', '%00'])(
    'unknown token %s: 404',
    async (token) => {
      const site = await stage.site();
      const answer = await stage.send(site.host, `/c/${token}.js`);
      expect(answer).toMatchObject({ status: 404, json: { code: 'unknown_container' } });
      expect(asked()).toEqual([]);
    },
  );
});

describe('the tag server’s paths (docs/facts.md, Paths)', () => {
  const origin = (site: StagedSite) => `https://${site.id}-origin.test:8443`;

  test.each([
    ['POST', '/g/collect?v=2&tid=G-1&z=%20a+b&v=3&_p=%7B', 'en=page_view\r\nen=x'],
    ['GET', '/g/collect?z=1', ''],
    ['POST', '/g/s/collect?v=2', 'en=page_view'],
    ['HEAD', '/gtag/js?id=G-1', ''],
    ['OPTIONS', '/g/collect', ''],
    ['POST', '/mp/collect', '{"a":1}'],
    ['GET', '/gtm.js?id=GTM-1', ''],
    ['GET', '/gtm/debug?id=GTM-1&gtm_auth=a&gtm_preview=env-1', ''],
    ['GET', '/gtm/get_memo//x', ''],
    ['PUT', '/_/set_cookie', 'x'],
    ['POST', '/data', 'own'],
  ])('%s %s is forwarded unchanged', async (method, path, body) => {
    const site = await stage.site({ proxyPaths: ['/data'] });
    stage.upstream.reply = () => ({ status: 201, headers: { 'x-gtm-note': 'n' }, body: 'done' });
    const answer = await stage.send(site.host, path, { method, ...(body === '' ? {} : { body }) });
    expect(stage.upstream.received).toHaveLength(1);
    expect(stage.upstream.received[0]).toMatchObject({ method, url: `${origin(site)}${path}`, body });
    expect(answer).toMatchObject({ status: 201, text: method === 'HEAD' ? '' : 'done' });
    expect(answer.headers['x-gtm-note']).toBe('n');
  });

  test.each(['/data', '/datax', '/data/x', '/Data', '/g/collectx', '//evil.example/g/collect', '/gtmx'])(
    '%s is unknown',
    async (path) => {
      const site = await stage.site();
      expect((await stage.send(site.host, path)).status).toBe(404);
      expect(asked()).toEqual([]);
    },
  );

  test.each([
    ['/webhooks', true],
    ['/webhooks/', true],
    ['/webhooks/orders/7?a=1', true],
    ['/webhooks//x', true],
    ['/webhooksx', false],
    ['/Webhooks/x', false],
    ['/x/webhooks/y', false],
    ['/webhooks/../other', false],
    ['/webhooks/%2e%2e/other', false],
  ])('with the prefix /webhooks/*, %s is forwarded: %s', async (path, isForwarded) => {
    const site = await stage.site({ proxyPaths: ['/webhooks/*'] });
    const { status } = await stage.send(site.host, path, { method: 'POST', body: 'x' });
    expect(status).toBe(isForwarded ? 200 : 404);
    expect(asked()).toEqual(isForwarded ? [`${origin(site)}${path}`] : []);
  });

  test.each(['/', '/anything', '/g/other', '/apps/a//b?c=%20', '//evil.example/x', '/bootx', '/%6c/x.js'])(
    'with passthrough, %s is forwarded',
    async (path) => {
      const site = await stage.site({ proxyPaths: ['/*'] });
      expect((await stage.send(site.host, path)).status).toBe(200);
      expect(asked()).toEqual([`${origin(site)}${path}`]);
    },
  );

  test.each([
    '/l',
    '/l/lt_unknown.css',
    '/c/x/y',
    '/boot/',
    '/boot/x',
    '/mark-session-detection/x',
    '/.well-known/acme-challenge/x',
    '/.well-known',
  ])('with passthrough, %s is not forwarded: it is the edge’s own path', async (path) => {
    const site = await stage.site({ proxyPaths: ['/*'] });
    expect((await stage.send(site.host, path)).status).toBe(404);
    expect(asked()).toEqual([]);
  });

  test('with passthrough, the path of a disabled plugin is not forwarded', async () => {
    const site = await stage.site({
      proxyPaths: ['/*'],
      modules: { adblock_itp_detection: { enabled: false } },
    });
    await stage.send(site.host, '/bait/gtm.js');
    expect(asked()).toEqual([]);
  });

  test('are forwarded although the site’s options say that the plugin is disabled', async () => {
    const site = await stage.site({ modules: { server_proxy: { enabled: false } }, proxyPaths: ['/data'] });
    for (const path of ['/g/collect', '/gtm/debug', '/data']) {
      expect((await stage.send(site.host, path)).status).toBe(200);
    }
  });

  test.each(['/healthy', '/healthz?servertype=serverjs', '/_/healthy'])(
    'HEAD %s is asked as GET, which is all that the tag server knows, and answered without a body',
    async (path) => {
      const site = await stage.site();
      stage.upstream.reply = ({ method }) =>
        method === 'GET' ? { headers: { 'content-length': '2' }, body: 'ok' } : { status: 400 };
      const answer = await stage.send(site.host, path, { method: 'HEAD' });
      expect(answer).toMatchObject({ status: 200, text: '' });
      expect(stage.upstream.received[0]).toMatchObject({ method: 'GET', url: `${origin(site)}${path}` });
      expect((await stage.seen()).records).toMatchObject([{ method: 'HEAD', status: 200, error: null }]);
    },
  );

  test.each([[[]], [['/*']]])(
    'robots.txt forbids crawlers everything; with the paths %j',
    async (proxyPaths) => {
      const site = await stage.site({ proxyPaths });
      for (const method of ['GET', 'HEAD']) {
        const answer = await stage.send(site.host, '/robots.txt', { method });
        expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/plain;charset=UTF-8']);
        expect(answer.text).toBe(method === 'HEAD' ? '' : 'User-agent: *\nDisallow: /\n');
      }
      expect(asked()).toEqual([]);
      expect((await stage.seen()).records).toMatchObject([{ error: null }, { error: null }]);
    },
  );

  test('robots.txt is the tag server’s where the site’s paths name it', async () => {
    const site = await stage.site({ proxyPaths: ['/robots.txt'] });
    await stage.send(site.host, '/robots.txt');
    expect(asked()).toEqual([`${origin(site)}/robots.txt`]);
  });

  test('a body of 8 MiB is forwarded, and one of an octet more is refused before the tag server gets it', async () => {
    const site = await stage.site();
    stage.upstream.take = (incoming, outgoing) => {
      let octets = 0;
      incoming.on('data', (chunk: Buffer) => {
        octets += chunk.length;
      });
      incoming.on('end', () => outgoing.end(String(octets)));
    };
    const most = 8 * 1024 * 1024;
    const send = (octets: number) =>
      stage.send(site.host, '/mp/collect', { method: 'POST', body: Buffer.alloc(octets, 'e') });
    expect(await send(most)).toMatchObject({ status: 200, text: String(most) });
    const refused = await send(most + 1);
    stage.upstream.take = undefined;
    expect(refused).toMatchObject({ status: 413, json: { code: 'body_too_large' } });
    expect(refused.json.detail).toContain('8 MiB');
    expect((await stage.seen()).records.at(-1)).toMatchObject({ status: 413, error: 'body_too_large' });
  });

  test('cookies beyond those of the tag server and of the usual tags don’t arrive, however many there are', async () => {
    const site = await stage.site();
    const trackers = Array.from({ length: 40 }, (_, index) => `tracker_${index}=${'t'.repeat(1_000)}`);
    const cookie = ['PHPSESSID=a', '_ga=b', ...trackers, 'FPID=c', 'gtm_debug=x'].join('; ');
    await stage.send(site.host, '/g/collect', { headers: { cookie } });
    const proxied = {
      'x-tagyard-hop-secret': HOP_SECRET,
      'x-forwarded-host': `m.${site.domains[0]?.domain}`,
    };
    await stage.send(site.host, '/g/collect', { headers: { cookie, ...proxied } });
    const arrived = stage.upstream.received.map(({ headers }) => headers.cookie);
    expect(arrived).toEqual(Array(2).fill('_ga=b; FPID=c; gtm_debug=x'));
  });

  test('cookies that the site’s options name for the tag server arrive, too', async () => {
    const modules = { server_proxy: { cookies: ['shop_*', 'visitor'] } };
    const site = await stage.site({ modules });
    await stage.send(site.host, '/g/collect', { headers: { cookie: 'shop_a=1; visitor=2; visitors=3' } });
    expect(stage.upstream.received[0]?.headers.cookie).toBe('shop_a=1; visitor=2');
    // The loader gives them to no one: only the tag server reads them.
    expect((await stage.send(site.host, `/l/${site.loader}.js`)).text).not.toContain('shop_*');
  });

  test('cookies pass in both directions, each Set-Cookie separately', async () => {
    const site = await stage.site();
    const cookies = ['FPID=a%2Fb; Path=/; HttpOnly', 'FPLC=c; Expires=Wed, 21 Oct 2027 07:28:00 GMT'];
    stage.upstream.reply = () => ({ headers: { 'set-cookie': cookies } });
    const answer = await stage.send(site.host, '/g/collect', { headers: { cookie: '_ga=1; gtm_debug=x' } });
    expect(stage.upstream.received[0]?.headers.cookie).toBe('_ga=1; gtm_debug=x');
    expect(answer.headers['set-cookie']).toEqual(cookies);
  });

  test('redirects are returned, not followed', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => ({ status: 302, headers: { location: 'http://169.254.169.254/' } });
    const answer = await stage.send(site.host, '/gtm/debug');
    expect(answer.status).toBe(302);
    expect(answer.headers.location).toBe('http://169.254.169.254/');
    expect(asked()).toHaveLength(1);
  });

  test('a tag server that doesn’t answer: 502', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => Promise.reject(new Error('gone'));
    expect(await stage.send(site.host, '/g/collect')).toMatchObject({
      status: 502,
      json: { code: 'upstream_failed' },
    });
  });

  test('headers that claim addresses, hosts or trust are removed, others pass', async () => {
    const site = await stage.site();
    await stage.send(site.host, '/g/collect', {
      headers: {
        'x-forwarded-for': '6.6.6.6',
        'x-forwarded-host': 'evil.example',
        'x-forwarded-proto': 'gopher',
        'x-forwarded-country': 'XX',
        'x-forwarded-countryregion': 'XX-1',
        forwarded: 'for=6.6.6.6',
        'x-real-ip': '6.6.6.6',
        'true-client-ip': '6.6.6.6',
        'x-client-ip': '6.6.6.6',
        'x-tagyard-hop-secret': 'guess',
        'cf-ipcountry': 'XX',
        connection: 'x-mine, close',
        'x-mine': 'timeout',
        'x-gtm-server-preview': 'ZW52',
        'user-agent': 'ua',
        'sec-ch-ua': '"x"',
        'accept-language': 'de',
      },
    });
    const { headers } = stage.upstream.received[0] ?? {};
    expect(JSON.stringify(headers)).not.toMatch(/6\.6\.6\.6|evil|gopher|XX|guess|timeout/);
    expect(headers).toMatchObject({
      'x-tagyard-hop-secret': HOP_SECRET,
      'x-forwarded-host': site.host,
      'x-forwarded-proto': 'http',
      'x-gtm-server-preview': 'ZW52',
      'user-agent': 'ua',
      'sec-ch-ua': '"x"',
      'accept-language': 'de',
    });
  });

  test.each([
    ...droppedHeaders('origin'),
    'X-Forwarded',
    'Forwarded-For',
    'X-Originating-IP',
    'X-Appengine-User-IP',
    'X-Appengine-CityLatLong',
    'X-Gclb-Region',
    'Fly-Client-IP',
    'X-Geo-Country',
    'X-Azure-ClientIP',
    'X-Remote-Addr',
    'X-Envoy-External-Address',
    'CloudFront-Viewer-Country',
    'X-Original-Host',
    'X-Host',
    'Via',
  ])('the header %s claims an address, a host or a place, and is not forwarded', async (name) => {
    const site = await stage.site();
    await stage.send(site.host, '/g/collect', { headers: { [name]: 'claimed' } });
    expect(stage.upstream.received).toHaveLength(1);
    expect(JSON.stringify(stage.upstream.received[0]?.rawHeaders)).not.toContain('claimed');
  });

  test.each(['origin', 'referer', 'x-gtm-server-preview', 'x-client-data', 'x-ship-to', 'x-description'])(
    'the header %s claims no address, host or place, and is forwarded',
    async (name) => {
      const site = await stage.site();
      await stage.send(site.host, '/g/collect', { headers: { [name]: 'https://said.example' } });
      expect(stage.upstream.received[0]?.headers[name]).toBe('https://said.example');
    },
  );

  test('a preflight request of the preview’s interface reaches the tag server', async () => {
    const site = await stage.site();
    const origin = 'https://tagmanager.googleusercontent.com';
    const answered = {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET',
      'access-control-allow-headers': 'x-gtm-auth, x-gtm-preview, x-gtm-debug',
      'access-control-max-age': '86400',
    };
    stage.upstream.reply = () => ({ status: 200, headers: answered });
    const asking = {
      origin,
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'x-gtm-auth,x-gtm-debug,x-gtm-preview',
    };
    const answer = await stage.send(site.host, '/gtm/get_memo?id=GTM-1', {
      method: 'OPTIONS',
      headers: asking,
    });
    expect(stage.upstream.received).toHaveLength(1);
    expect(stage.upstream.received[0]).toMatchObject({ method: 'OPTIONS', headers: asking });
    expect(answer).toMatchObject({ status: 200, headers: answered });
  });

  test('a `connection` header with invalid names causes no failure', async () => {
    const site = await stage.site();
    const connection = 'foo bar, "x", \u00e9, , X-Mine';
    const answer = await stage.send(site.host, '/g/collect', {
      headers: { connection, 'x-mine': 'mine', 'x-other': 'other' },
    });
    expect(answer.status).toBe(200);
    expect(stage.upstream.received[0]?.headers).toMatchObject({ 'x-other': 'other' });
    expect(stage.upstream.received[0]?.headers).not.toHaveProperty('x-mine');
  });

  test('bodies of any size pass in both directions, although the edge’s own paths limit them', async () => {
    const site = await stage.site();
    const large = 'x'.repeat(1_048_576);
    stage.upstream.reply = ({ body }) => ({ body });
    const answer = await stage.send(site.host, '/mp/collect', { method: 'POST', body: large });
    expect([answer.status, answer.text.length]).toEqual([200, large.length]);
  });

  test('bodies are streamed in both directions', async () => {
    await exchangeInPieces(stage.upstream, stage.port, (await stage.site()).host);
  });

  test('headers of an answer that are for one connection only are not passed on', async () => {
    const site = await stage.site();
    stage.upstream.reply = () => ({ headers: { 'keep-alive': 'timeout=9', 'x-own': '1' } });
    const answer = await stage.send(site.host, '/g/collect');
    expect(answer.headers['x-own']).toBe('1');
    expect(answer.headers['keep-alive']).toBeUndefined();
  });

  const hop = { 'x-tagyard-hop-secret': HOP_SECRET };
  test.each([
    ['the address that the platform states', { 'cf-connecting-ip': '203.0.113.7' }, '203.0.113.7'],
    [
      'the address that the platform states, despite other claims,',
      { 'cf-connecting-ip': '203.0.113.7', 'x-forwarded-for': '6.6.6.6' },
      '203.0.113.7',
    ],
    [
      'the address that our proxy states',
      { ...hop, 'cf-connecting-ip': '10.0.0.1', 'x-forwarded-for': '203.0.113.8' },
      '203.0.113.8',
    ],
    [
      'the last address of a list, which our proxy added,',
      { ...hop, 'x-forwarded-for': '6.6.6.6, 203.0.113.8' },
      '203.0.113.8',
    ],
    ['the IPv6 address that our proxy states', { ...hop, 'x-forwarded-for': '2001:db8::1' }, '2001:db8::1'],
    ['no address, if none is stated,', {}, undefined],
    ['no address, if an invalid one is stated,', { 'cf-connecting-ip': 'x, y' }, undefined],
  ])('the tag server gets %s as the visitor’s', async (_name, headers, expected) => {
    const site = await stage.site();
    await stage.send(site.host, '/g/collect', { headers });
    expect(stage.upstream.received[0]?.headers['x-forwarded-for']).toBe(expected);
  });
});
