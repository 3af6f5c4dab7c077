import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { forwarderToken, prefixed, stated } from '../support/edge/forwarder.ts';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

const PREFIX = '/m3trics1';
const TOKEN = forwarderToken('acme');

let stage: Stage;
let site: StagedSite;
beforeAll(async () => {
  stage = await startStage();
  site = await shop();
});
beforeEach(() => {
  stage.upstream.received.length = 0;
});
afterAll(() => stage.close());

/** A site whose registry names its loader token. A stage numbers these tokens from 1, and `shops` is the newest number. */
async function shop(modules = {}, proxyPaths: string[] = []): Promise<StagedSite> {
  shops += 1;
  const loader = `lt_loader0token${String(shops).padStart(5, '0')}`;
  return stage.site({
    modules,
    proxyPaths,
    domains: [{ sameOrigin: { ...prefixed(PREFIX, TOKEN), loader } }],
  });
}
let shops = 0;

const get = (path: string, { host, domains }: StagedSite = site, method = 'GET') =>
  stage.send(host, `${PREFIX}${path}`, { method, headers: stated(TOKEN, `www.${domains[0]?.domain}`) });

/** The values that a loader was rendered with. */
function valuesOf(script: string) {
  const literal = /\{"edge":.*?"days":\d+\}/.exec(script)?.[0] ?? 'null';
  return JSON.parse(literal);
}

describe('the addresses that plugins of shops and CMS ask for', () => {
  test.each([
    // duracelltomi/gtm4wp (WordPress). Its settings: the script's domain and path, the data layer's name, an environment.
    ['GTM4WP', '/gtm.js?id={id}', 'dataLayer', ''],
    ['GTM4WP with a data layer', '/gtm.js?id={id}&l=shopLayer', 'shopLayer', '?l=shopLayer'],
    [
      'GTM4WP with an environment',
      '/gtm.js?id={id}&gtm_auth=aB-c_1&gtm_preview=env-2&gtm_cookies_win=x',
      'dataLayer',
      '?gtm_auth=aB-c_1&gtm_preview=env-2&gtm_cookies_win=x',
    ],
    ['GTM4WP without an id', '/gtm.js?', 'dataLayer', ''],
    ['GTM4WP without an id, with a data layer', '/gtm.js?&l=shopLayer', 'shopLayer', '?l=shopLayer'],
    // humanmade/hm-gtm (WordPress) and yireo/Yireo_GoogleTagManager2 (Magento 2): a base URL.
    ['hm-gtm', '/gtm.js?id={id}&l=hmLayer', 'hmLayer', '?l=hmLayer'],
    ['Yireo GoogleTagManager2', '/gtm.js?id={id}', 'dataLayer', ''],
    // DtgsGoogleTagManagerSw6 (Shopware 6) and gatsby-plugin-google-tagmanager: the script's whole address.
    ['DtgsGoogleTagManagerSw6', '/shop/gtm.js?id={id}', 'dataLayer', ''],
    [
      'gatsby-plugin-google-tagmanager',
      '/a/b/gtm.js?id={id}&l=gatsby&gtm_auth=x&gtm_preview=env-1&gtm_cookies_win=x',
      'gatsby',
      '?l=gatsby&gtm_auth=x&gtm_preview=env-1&gtm_cookies_win=x',
    ],
    // stape-io/gtm-server-side-magento-module (Magento 2): a base URL and the script's name; the query is the bare id,
    // without `id=`.
    ['gtm-server-side-magento-module', '/gtm.js?{id}', 'dataLayer', ''],
  ])('include those of %s, which are answered with the loader: %s', async (_plugin, path, layer, query) => {
    const answer = await get(path.replace('{id}', site.domains[0]?.webTagId ?? ''));
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/javascript; charset=utf-8');
    const plain = valuesOf((await get(`/l/${site.loader}.js`)).text);
    expect(plain).toMatchObject({
      edge: `https://www.${site.domains[0]?.domain}${PREFIX}`,
      loader: site.loader,
    });
    expect(valuesOf(answer.text)).toEqual({ ...plain, layer, query });
    expect(stage.upstream.received).toEqual([]);
  });

  test('also answer HEAD and conditional requests', async () => {
    const path = `/gtm.js?id=${site.domains[0]?.webTagId}`;
    const { headers } = await get(path);
    expect(await get(path, site, 'HEAD')).toMatchObject({ status: 200, text: '' });
    const again = await stage.send(site.host, PREFIX + path, {
      headers: { ...stated(TOKEN, `www.${site.domains[0]?.domain}`), 'if-none-match': String(headers.etag) },
    });
    expect(again.status).toBe(304);
  });

  test('end with the path that the site’s setting names, if there is one', async () => {
    const own = await shop({ custom_loader: { scriptPath: 'assets/abc123.js' } });
    const id = own.domains[0]?.webTagId;
    for (const path of [`/assets/abc123.js?id=${id}`, '/assets/abc123.js?', `/x/assets/abc123.js?id=${id}`]) {
      expect(valuesOf((await get(path, own)).text)).toMatchObject({ loader: own.loader });
    }
    await get(`/gtm.js?id=${id}`, own);
    expect(stage.upstream.received).toHaveLength(1);
  });

  test.each([
    ['a parameter l that isn’t the name of a data layer', '/gtm.js?id={id}&l=a.b', 400, 'malformed_request'],
    ['a longer path without an id', '/a/gtm.js', 404, 'not_found'],
    ['an id of another site', '/a/gtm.js?id=GTM-OTHER12', 404, 'not_found'],
    ['a file of another name', '/a/xgtm.js?id={id}', 404, 'not_found'],
  ])('don’t include %s: %s is answered with %i %s', async (_what, path, status, code) => {
    const answer = await get(path.replace('{id}', site.domains[0]?.webTagId ?? ''));
    expect(answer).toMatchObject({ status, json: { code } });
  });

  test.each([
    ['an id that isn’t the site’s', `${PREFIX}/gtm.js?id=GTM-OTHER12`, 'GET'],
    ['a POST', `${PREFIX}/gtm.js?id={id}`, 'POST'],
    ['an address without the prefix', '/gtm.js?id={id}', 'GET'],
  ])('don’t include %s: the tag server answers', async (_what, path, method) => {
    const address = path.replace('{id}', site.domains[0]?.webTagId ?? '');
    await stage.send(site.host, address, {
      method,
      headers: stated(TOKEN, `www.${site.domains[0]?.domain}`),
    });
    expect(stage.upstream.received).toHaveLength(1);
  });

  describe('and `proxyPaths`: a script address that one of these (not `/*`) names is the container’s, any other the loader’s', () => {
    let own: StagedSite;
    beforeAll(async () => {
      own = await shop({}, ['/t1a2b3c4/*', '/shop/gtm.js', '/*']);
    });
    const named = (path: string) => path.replace('{id}', own.domains[0]?.webTagId ?? '');

    test.each(['/t1a2b3c4/gtm.js?id={id}', '/t1a2b3c4/a/gtm.js?{id}', '/shop/gtm.js?id={id}'])(
      '%s is the container’s',
      async (path) => {
        stage.upstream.reply = () => ({ body: 'container' });
        expect((await get(named(path), own)).text).toBe('container');
        expect(stage.upstream.received.map(({ url }) => url)).toEqual([
          expect.stringMatching(/:8443\/(?:t1a2b3c4|shop)\//),
        ]);
      },
    );

    test.each(['/gtm.js?id={id}', '/gtm.js?', '/t1a2b3c4x/gtm.js?id={id}', '/x/shop/gtm.js?id={id}'])(
      '%s is the loader’s',
      async (path) => {
        expect(valuesOf((await get(named(path), own)).text)).toMatchObject({ loader: own.loader });
        expect(stage.upstream.received).toEqual([]);
      },
    );
  });

  test.each(['/_/gtm.js?id={id}', '/gtm/gtm.js?id={id}', '/static/gtm.js?id={id}'])(
    '%s is the tag server’s own',
    async (path) => {
      await get(path.replace('{id}', site.domains[0]?.webTagId ?? ''));
      expect(stage.upstream.received).toHaveLength(1);
    },
  );

  test('/bait/gtm.js, the ad-blocker test, still answers 204', async () => {
    expect((await get('/bait/gtm.js?v=1&ad_type=banner')).status).toBe(204);
  });

  test('a rotated loader token that has expired gives no loader', async () => {
    const own = await stage.site({
      domains: [{ sameOrigin: { ...prefixed(PREFIX, TOKEN), loader: 'lt_unknown0token00001' } }],
    });
    shops += 1;
    expect((await get('/gtm.js?', own)).json.code).toBe('unknown_loader');
  });
});
