import type { BrowserContext, Request } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { ALL_DENIED, ALL_GRANTED, DEFAULT_DENIED, gtag } from '../support/browser/consent-page.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type ForwardedShop, startForwardedShop } from '../support/forwarders/shop.ts';

const GA = 'GA1.1.1234567890.1700000000';
const DENIED = { analytics_storage: 'denied', ad_storage: 'denied' };
const FEATURES = { features: { cookie_restoration: true } };
const STRICT = { ...FEATURES, consent: 'required', consentMode: 'basic' } as const;

describeWith(['chromium', 'nginx'], 'consent on pages whose own nginx forwards a prefix', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  let advanced: ForwardedShop;
  let basic: ForwardedShop;
  beforeAll(async () => {
    stage = await startBrowserStage();
    advanced = await startForwardedShop(stage, 'nginx', { manifest: FEATURES });
    basic = await startForwardedShop(stage, 'nginx', { manifest: STRICT, snippet: { waits: true } });
    const own = [advanced, basic].map(({ host, port }) => [host, `127.0.0.1:${port}`]);
    const hosts = { ...Object.fromEntries(own), ...stage.browser.hosts };
    chromium = await startChromium({ ...stage.browser, hosts });
  });
  afterEach(() => {
    stage.fault = () => undefined;
    stage.release();
  });
  afterAll(async () => {
    await chromium?.close();
    await advanced?.close();
    await basic?.close();
    await stage?.close();
  });

  async function open(browser: BrowserContext, shop: ForwardedShop, head: string) {
    shop.show(head);
    const requests: Request[] = [];
    browser.on('request', (request) => requests.push(request));
    const { page, errors } = await visit(browser, `https://${shop.host}/`);
    const paths = () =>
      requests.map((one) => new URL(one.url())).map(({ host, pathname }) => [host, pathname] as const);
    return {
      page,
      errors,
      update: (choices: string) => page.evaluate(`gtag('consent','update',${choices})`),
      hosts: () => new Set(paths().map(([host]) => host)),
      /** The paths that were requested under the prefix, without the prefix. */
      asked: () =>
        paths().flatMap(([, path]) => (path.startsWith(shop.path) ? [path.slice(shop.path.length)] : [])),
      boots: async () => {
        const boots = requests.filter((one) => new URL(one.url()).pathname === `${shop.path}/boot`);
        return Promise.all(
          boots.map(async (one) => ({ body: one.postDataJSON(), headers: await one.allHeaders() })),
        );
      },
      identified: () =>
        eventually(async () => {
          const id = (await state(page))?.profile?.id;
          expect(id).toBeDefined();
          return String(id);
        }),
      isState: (gtm: string) => eventually(async () => expect((await state(page))?.gtm).toBe(gtm)),
    };
  }
  const names = async (browser: BrowserContext) =>
    (await browser.cookies()).map(({ name }) => name).toSorted();
  const plant = (browser: BrowserContext, { host }: ForwardedShop) =>
    browser.addCookies([
      { name: '_ga', value: GA, url: `https://${host}/` },
      { name: 'basket', value: 'SECRET', url: `https://${host}/` },
    ]);

  test('denied: only token, origin, consent are sent; a grant identifies; a withdrawal deletes', async () => {
    await using browser = await chromium.newContext();
    await plant(browser, advanced);
    const at = await open(browser, advanced, DEFAULT_DENIED);
    expect((await settled(at.page))?.gtm).toBe('loaded');
    const [boot, ...more] = await at.boots();
    expect(more).toEqual([]);
    const { loaderToken, site } = advanced.site.manifest;
    const url = `https://${advanced.host}`;
    expect(boot?.body).toEqual({ loader: loaderToken, url, consent: DENIED });
    expect(boot?.headers).not.toHaveProperty('cookie');
    expect(boot?.headers).not.toHaveProperty('referer');
    expect(await names(browser)).toEqual(['_ga', 'basket']);
    const kept = async () => (await stage.edge.kv.COOKIES.list({ prefix: `${site}:` })).keys;
    expect(await kept()).toEqual([]);

    await at.update(ALL_GRANTED);
    const id = await at.identified();
    expect((await cookie(browser, '_fpid'))?.value).toBe(id);
    await at.page.evaluate(`fetch('${advanced.path}/g/collect?v=2',{method:'POST'})`);
    await eventually(async () =>
      expect(await advanced.site.profile(id)).toMatchObject({
        cookies: expect.arrayContaining([expect.objectContaining({ name: 'FPID' })]),
      }),
    );
    expect(await names(browser)).toEqual(expect.arrayContaining(['FPID', '_fpid', '_ga']));

    await at.update(ALL_DENIED);
    await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
    expect((await at.boots()).at(-1)?.body).toEqual({ loader: loaderToken, url, fpid: id, consent: DENIED });
    expect(await names(browser)).toEqual(['basket']);
    expect(await kept()).toEqual([]);
    expect(await at.page.evaluate('localStorage.length')).toBe(0);
    const before = (await advanced.arrived('/g/collect')).length;
    await at.page.evaluate(`fetch('${advanced.path}/g/collect?v=2',{method:'POST'})`);
    const hit = await eventually(async () => {
      const hits = await advanced.arrived('/g/collect');
      expect(hits.length).toBeGreaterThan(before);
      return hits.at(-1);
    });
    expect(String(hit?.headers.cookie)).not.toMatch(/FPID|_fpid|_ga|SECRET/);
    expect(at.hosts()).toEqual(new Set([advanced.host]));
    expect(at.errors).toEqual([]);
  });

  test('basic: only the loader is requested before a grant, and the rest after it', async () => {
    await using browser = await chromium.newContext();
    const at = await open(browser, basic, DEFAULT_DENIED);
    await at.isState('waiting');
    expect(at.asked()).toEqual([`/l/${basic.site.manifest.loaderToken}.js`]);
    await at.update(ALL_GRANTED);
    await at.identified();
    await at.isState('loaded');
    expect(at.asked().map((path) => path.slice(0, 3))).toEqual(expect.arrayContaining(['/bo', '/c/']));
    expect(at.hosts()).toEqual(new Set([basic.host]));
  });

  test('while the edge hangs, the page loads and a withdrawal deletes at once; the next page sends it to the edge', async () => {
    await using browser = await chromium.newContext();
    await plant(browser, basic);
    const first = await open(browser, basic, gtag(`gtag('consent','update',${ALL_GRANTED})`));
    const id = await first.identified();
    await first.isState('loaded');

    stage.fault = (path) => (path === `${basic.path}/boot` ? 'hold' : undefined);
    const second = await open(browser, basic, gtag(`gtag('consent','update',${ALL_GRANTED})`));
    await second.page.waitForLoadState('load');
    await eventually(() => expect(stage.held()).toBe(1));
    await second.update(ALL_DENIED);
    await eventually(async () => expect(await names(browser)).toEqual(['basket']));
    expect(await basic.site.profile(id)).not.toBeNull();
    await second.page.close();

    stage.fault = () => undefined;
    const third = await open(browser, basic, DEFAULT_DENIED);
    await eventually(async () => expect(await basic.site.profile(id)).toBeNull());
    expect((await third.boots()).map(({ body }) => body.fpid)).toEqual([id]);
    await eventually(async () => expect(await third.page.evaluate('localStorage.length')).toBe(0));
    expect((await state(third.page))?.gtm).toBe('waiting');
  });

  test.each([
    ['the loader', '/l/'],
    ['the web tag', '/c/'],
  ])('an edge that holds back %s doesn’t delay the page’s load event', async (_name, held) => {
    await using browser = await chromium.newContext();
    stage.fault = (path) => (path.startsWith(advanced.path + held) ? 'hold' : undefined);
    const at = await open(browser, advanced, gtag(`gtag('consent','update',${ALL_GRANTED})`));
    await eventually(() => expect(stage.held()).toBeGreaterThan(0));
    await at.page.waitForLoadState('load');
    expect(stage.held()).toBeGreaterThan(0);
  });
});
