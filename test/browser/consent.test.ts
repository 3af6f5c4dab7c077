import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import {
  ALL_DENIED,
  ALL_GRANTED,
  type ConsentVisit,
  consentShop,
  DEFAULT_DENIED,
  identified,
  updateConsent,
} from '../support/browser/consent-page.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, settled, state } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const GA = 'GA1.1.1234567890.1700000000';
/** 128 random bits. */
const RANDOM = '9f86d081884c7d659a2feaa0c55ad015';
const DENIED = { analytics_storage: 'denied', ad_storage: 'denied' };
/** Longer than every timeout of the page's scripts, in milliseconds. */
const LATER = 60_000;
const STRICT = { consent: 'required', consentMode: 'basic' } as const;

describeWith('chromium', 'a page whose visitor has not chosen yet, then grants, then withdraws', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  beforeAll(async () => {
    stage = await startBrowserStage();
    chromium = await startChromium(stage.browser);
  });
  afterEach(() => {
    stage.fault = () => undefined;
    stage.release();
  });
  afterAll(async () => {
    await chromium.close();
    await stage.close();
  });

  const isState = ({ page }: ConsentVisit, gtm: string) =>
    eventually(async () => expect((await state(page))?.gtm).toBe(gtm));

  describe.each(['edge', 'custom'] as const)('with the loader from the %s host', (host) => {
    test('denied by default: only token, origin and consent are sent, a grant sets an id, a withdrawal deletes it', async () => {
      await using browser = await chromium.newContext();
      const { site, domain, open } = await consentShop(stage, {}, host);
      await browser.addCookies(
        Object.entries({ _ga: GA, basket: 'SECRET' }).map(([name, value]) => ({
          name,
          value,
          domain,
          path: '/',
        })),
      );
      const at = await open(browser, DEFAULT_DENIED, '/cart/SECRET?email=SECRET');
      expect((await settled(at.page))?.gtm).toBe('loaded');
      const [boot, ...more] = await at.sent('/boot');
      expect(more).toEqual([]);
      expect(boot?.body).toEqual({ loader: site.manifest.loaderToken, url: site.url.shop, consent: DENIED });
      for (const one of await at.sent()) {
        expect(one.headers).not.toHaveProperty('cookie');
        expect(one.headers).not.toHaveProperty('referer');
        expect(JSON.stringify(one)).not.toContain('SECRET');
      }
      expect((await at.sent()).map(({ path }) => path.slice(0, 3))).toEqual(['/l/', '/bo', '/c/']);
      expect((await browser.cookies()).map(({ name }) => name).sort()).toEqual(['_ga', 'basket']);
      expect(await at.page.evaluate('localStorage.length')).toBe(0);
      const { keys } = await stage.edge.kv.COOKIES.list({ prefix: `${site.manifest.site}:` });
      expect(keys).toEqual([]);

      await updateConsent(at, ALL_GRANTED);
      const id = await identified(at);
      const [, granted] = await at.sent('/boot');
      expect(granted?.body).toMatchObject({
        consent: { analytics_storage: 'granted' },
        cookies: { _ga: GA },
      });
      expect(JSON.stringify(granted?.body)).not.toContain('SECRET');
      expect((await cookie(browser, '_fpid'))?.value).toBe(id);
      expect(await site.profile(id)).toMatchObject({ cookies: [{ name: '_ga', value: GA }] });
      // The detection of blockers starts then, too.
      await eventually(async () => expect(await at.sent('/mark-session-detection')).toHaveLength(1));

      await updateConsent(at, ALL_DENIED);
      await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
      const [, , withdrawn, ...rest] = await at.sent('/boot');
      expect(rest).toEqual([]);
      expect(withdrawn?.body).toEqual({
        loader: site.manifest.loaderToken,
        url: site.url.shop,
        fpid: id,
        consent: DENIED,
      });
      expect(String(withdrawn?.headers.cookie)).not.toMatch(/_fpid|_ga|tagyard/);
      expect(withdrawn?.headers).not.toHaveProperty('referer');
      expect((await browser.cookies()).map(({ name }) => name)).toEqual(['basket']);
      expect(await site.profile(id)).toBeNull();
      expect(await at.page.evaluate('localStorage.length')).toBe(0);
      expect(at.errors).toEqual([]);
    });

    test('with a master cookie of the shop’s server, a withdrawal sends that cookie, too', async () => {
      await using browser = await chromium.newContext();
      const modules = { cookie_restoration: { masterCookie: 'shop_visitor' } };
      const { site, domain, open } = await consentShop(stage, { modules }, host);
      await browser.addCookies(
        Object.entries({ _ga: GA, shop_visitor: RANDOM, basket: 'SECRET' }).map(([name, value]) => ({
          name,
          value,
          domain,
          path: '/',
        })),
      );
      const kept = async () => {
        const { keys } = await stage.edge.kv.COOKIES.list({ prefix: `${site.manifest.site}:` });
        return keys.map(({ name }) => name);
      };
      const at = await open(browser, DEFAULT_DENIED);
      expect((await settled(at.page))?.gtm).toBe('loaded');
      await updateConsent(at, ALL_GRANTED);
      const id = await identified(at);
      await eventually(async () => expect(await kept()).toEqual([expect.stringContaining(':master:')]));

      await updateConsent(at, ALL_DENIED);
      await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
      expect((await at.sent('/boot')).at(-1)?.body).toEqual({
        loader: site.manifest.loaderToken,
        url: site.url.shop,
        fpid: id,
        consent: DENIED,
        cookies: { shop_visitor: RANDOM },
      });
      await eventually(async () => expect(await kept()).toEqual([]));
    });

    test('basic: only the loader is requested before a grant, and bootstrap, script and hits after it; a withdrawal deletes the id', async () => {
      await using browser = await chromium.newContext();
      // This test has a web tag of its own, because the edge keeps copies of a container's script.
      const webTagId = `GTM-HITS${host.toUpperCase()}`;
      const domains = [{ domain: `hits-${host}.example`, webTagId, token: `ct_container0hits0${host}` }];
      const customDomains = [`metrics.hits-${host}.example`];
      const { site, open } = await consentShop(stage, { ...STRICT, domains, customDomains }, host);
      stage.webContainer = () => ({
        googleTag: 'G-SHOP1234',
        destinations: [],
        serverContainerUrl: site.url[host],
      });
      const at = await open(browser, DEFAULT_DENIED);
      await isState(at, 'waiting');
      expect((await at.sent()).map(({ path }) => path)).toEqual([`/l/${site.manifest.loaderToken}.js`]);
      expect(at.others()).toEqual([]);

      await updateConsent(at, ALL_GRANTED);
      const id = await identified(at);
      await isState(at, 'loaded');
      await eventually(async () => expect(await at.sent('/g/collect')).toHaveLength(1));

      // The next page: the visitor has withdrawn. The profile is deleted, and nothing loads.
      const next = await open(browser, `<script>window.tagyard={consent:${JSON.stringify(DENIED)}}</script>`);
      await eventually(async () => expect((await state(next.page))?.profile).toBeNull());
      expect((await next.sent('/boot')).map(({ body }) => body.fpid)).toEqual([id]);
      expect(await next.sent('/c/')).toEqual([]);
      expect((await state(next.page))?.gtm).toBe('waiting');
      expect(await cookie(browser, '_fpid')).toBeUndefined();
      expect(await site.profile(id)).toBeNull();

      // On the page after that, nothing is left to delete.
      const last = await open(browser, `<script>window.tagyard={consent:${JSON.stringify(DENIED)}}</script>`);
      await isState(last, 'waiting');
      expect(await last.sent('/boot')).toEqual([]);
      stage.webContainer = () => ({ googleTag: null, destinations: [], serverContainerUrl: null });
    });
  });

  test('a default is no choice: cookies of an earlier consent stay, but are not sent until the platform repeats it', async () => {
    await using browser = await chromium.newContext();
    const { site, domain, open } = await consentShop(stage, { consent: 'required' });
    // The browser gets a cookie: without one to keep, nothing would be stored for the visitor.
    await browser.addCookies([{ name: '_ga', value: GA, domain, path: '/' }]);
    const first = await open(browser, DEFAULT_DENIED);
    await isState(first, 'loaded');
    await updateConsent(first, ALL_GRANTED);
    const id = await identified(first);

    const second = await open(browser, DEFAULT_DENIED);
    await isState(second, 'loaded');
    const [boot] = await second.sent('/boot');
    expect(boot?.body).not.toHaveProperty('fpid');
    expect((await cookie(browser, '_fpid'))?.value).toBe(id);
    await updateConsent(second, ALL_GRANTED);
    expect(await identified(second)).toBe(id);
    expect(await site.profile(id)).not.toBeNull();
  });

  test('after a withdrawal while the grant’s bootstrap is under way, nothing is left', async () => {
    await using browser = await chromium.newContext();
    const { site, open } = await consentShop(stage, STRICT);
    const at = await open(browser, DEFAULT_DENIED);
    await isState(at, 'waiting');
    stage.fault = (path) => (path === '/boot' ? 'hold' : undefined);
    await updateConsent(at, ALL_GRANTED);
    await eventually(() => expect(stage.held()).toBeGreaterThan(0));
    await updateConsent(at, ALL_DENIED);
    stage.fault = () => undefined;
    stage.release();
    await eventually(async () => expect(await at.sent('/boot')).toHaveLength(2));
    await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
    expect(await cookie(browser, '_fpid')).toBeUndefined();
    const { keys } = await stage.edge.kv.COOKIES.list({ prefix: `${site.manifest.site}:` });
    expect(keys).toEqual([]);
  });

  describe('the vendor’s script, while the edge fails', () => {
    const failing = (path: RegExp) => (asked: string) => (path.test(asked) ? ('refuse' as const) : undefined);

    test.each<[string, object, RegExp, 'granted' | 'denied', number]>([
      ['is never loaded in advanced mode with fallback none', { fallback: 'none' }, /^\/boot/, 'granted', 0],
      [
        'is never loaded in advanced mode with fallback none, without a loader',
        { fallback: 'none' },
        /./,
        'granted',
        0,
      ],
      ['is not loaded with basic before a grant', STRICT, /^\/boot/, 'denied', 0],
      ['is not loaded with basic without a loader', STRICT, /./, 'denied', 0],
      ['is loaded once with basic after a grant', STRICT, /^\/boot/, 'granted', 1],
      ['is loaded once with basic after a grant, if only the script fails', STRICT, /^\/c\//, 'granted', 1],
      [
        'is not loaded with basic and fallback none after a grant',
        { ...STRICT, fallback: 'none' },
        /^\/c\//,
        'granted',
        0,
      ],
    ])('%s', async (_name, rules, path, choice, expected) => {
      await using browser = await chromium.newContext();
      const now = Date.now();
      await browser.clock.install({ time: now });
      await browser.clock.pauseAt(now + LATER);
      stage.fault = failing(path);
      const before = stage.direct();
      const { open } = await consentShop(stage, rules);
      const at = await open(browser, DEFAULT_DENIED);
      const isLoaded = !path.test('/l/x');
      if (isLoaded) await eventually(async () => expect((await state(at.page))?.edge).toBeDefined());
      if (choice === 'granted') await updateConsent(at, ALL_GRANTED);
      if (isLoaded && (choice === 'granted' || expected > 0)) {
        await isState(at, expected > 0 ? 'loaded' : 'failed');
      }
      for (let round = 0; round < 3; round++) await at.page.clock.fastForward(LATER);
      expect(stage.direct() - before).toBe(expected);
      expect(at.others().filter((url) => url.includes('/gtm.js'))).toHaveLength(expected);
    });
  });
});
