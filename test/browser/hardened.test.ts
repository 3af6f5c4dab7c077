import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, ran, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const NONCE = 'bm9uY2Utb2YtdGhlLXBhZ2U';

/** Keeps what the page's policy refused: `script-src-elem inline`, say. */
const NOTE_VIOLATIONS = `window.violations = [];
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
    violations.push(effectiveDirective + ' ' + blockedURI));`;

/** Google's `strict` policy (csp.withgoogle.com): a nonce, what it loads, and nothing else. */
const STRICT = `script-src 'nonce-${NONCE}' 'strict-dynamic' https: 'unsafe-inline'; object-src 'none'; base-uri 'none'`;

/** The narrowest under which tags can work at all. */
const narrow = (...connect: string[]) =>
  `default-src 'none'; script-src 'nonce-${NONCE}'; connect-src ${connect.join(' ')}; base-uri 'none'`;

/** Scripts from the named makers only; the web tag's own ones have to be named as well, where it has any. */
const trusting = (...makers: string[]) =>
  `${STRICT}; require-trusted-types-for 'script'; trusted-types ${makers.join(' ')}`;

/** What the common lists say about tag managers: EasyPrivacy by host, others by the script's name. */
const LISTED = [/^https:\/\/www\.googletagmanager\.com\//, /\/gtm\.js(?:\?|$)/];

/** As uBlock Origin's stand-in for gtm.js: it answers those who wait, and tags nobody. */
const STUB = `(() => {
  const layer = window.dataLayer = window.dataLayer || [];
  layer.push = (item) => { if (item && typeof item.eventCallback === 'function') item.eventCallback(); };
})()`;

describeWith('chromium', 'the snippet on pages and in browsers that forbid a lot', () => {
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

  /** What the tag server was told of a site's page. */
  const signals = ({ manifest }: BrowserSite) =>
    eventually(async () => {
      const found = (await stage.detections()).find(
        (each) => typeof each === 'object' && each !== null && 'site' in each && each.site === manifest.site,
      );
      expect(found).toBeDefined();
      return found;
    });

  describe('a content security policy', () => {
    const withNonce = ({ snippet }: BrowserSite) =>
      snippet().replace('<script>', `<script nonce="${NONCE}">`);

    async function open(browser: BrowserContext, policy: (site: BrowserSite) => string, html = withNonce) {
      await browser.addInitScript({ content: NOTE_VIOLATIONS });
      const site = await stage.site();
      stage.serve('/', html(site), { 'content-security-policy': policy(site) });
      const { page, asked, errors } = await visit(browser, `${site.url.shop}/`);
      return { site, page, asked, errors };
    }
    const violations = (page: Page): Promise<string[]> => page.evaluate('violations');

    test.each<[string, (site: BrowserSite) => string]>([
      ['strict', () => STRICT],
      ['narrow', ({ url }) => narrow(url.edge)],
      ['scripts from named makers only', () => trusting('tagyard', 'tagyard-loader')],
    ])('%s: the nonce goes on to loader and web tag, and nothing is refused', async (_name, policy) => {
      const before = stage.direct();
      const marks = (await stage.detections()).length;
      await using browser = await chromium.newContext();
      const { page, site, asked, errors } = await open(browser, policy);
      expect((await settled(page))?.gtm).toBe('loaded');
      expect((await ran(page)).containers).toEqual(['GTM-ABC1234']);
      expect(asked).toContain(`${site.url.edge}/c/${site.manifest.domains[0]?.token}.js`);
      await eventually(async () => expect(await stage.detections()).toHaveLength(marks + 1));
      expect(await violations(page)).toEqual([]);
      expect(stage.direct() - before).toBe(0);
      expect(errors).toEqual([]);
    });

    test('one that doesn’t let the page ask the edge: the vendor’s script, once', async () => {
      const before = stage.direct();
      await using browser = await chromium.newContext();
      const { page, site, errors } = await open(browser, () => narrow("'self'"));
      expect((await settled(page))?.gtm).toBe('loaded');
      expect(await ran(page)).toEqual({ starts: 1, containers: ['GTM-ABC1234'] });
      expect(await violations(page)).toEqual([`connect-src ${site.url.edge}/boot`]);
      expect(stage.direct() - before).toBe(1);
      expect(errors).toEqual([]);
    });

    test('scripts from named makers only, and the edge errs: the vendor’s script, once', async () => {
      stage.fault = (path) => (path.startsWith('/boot') ? 'fail' : undefined);
      const before = stage.direct();
      await using browser = await chromium.newContext();
      const { page, errors } = await open(browser, () => trusting('tagyard', 'tagyard-loader'));
      expect((await settled(page))?.gtm).toBe('loaded');
      expect(await ran(page)).toEqual({ starts: 1, containers: ['GTM-ABC1234'] });
      expect(await violations(page)).toEqual([]);
      expect(stage.direct() - before).toBe(1);
      expect(errors).toEqual([]);
    });

    test('scripts from a default maker: it is asked for each, and nothing else is needed', async () => {
      await using browser = await chromium.newContext();
      const maker = `<script nonce="${NONCE}">window.made = [];
        trustedTypes.createPolicy('default', { createScriptURL: (url) => { made.push(url); return url; } });
      </script>`;
      const { page, site } = await open(
        browser,
        () => trusting('default'),
        (own) => maker + withNonce(own),
      );
      expect((await settled(page))?.gtm).toBe('loaded');
      expect((await ran(page)).containers).toEqual(['GTM-ABC1234']);
      expect(await page.evaluate('made')).toEqual([
        expect.stringContaining(`${site.url.edge}/l/`),
        expect.stringContaining(`${site.url.edge}/c/`),
      ]);
    });

    test('scripts from makers that are none of ours: nothing tags, so the policies above are in force', async () => {
      await using browser = await chromium.newContext();
      const { page, asked } = await open(browser, () => trusting('somebody'));
      await eventually(async () =>
        expect(await violations(page)).toEqual([
          'trusted-types trusted-types-policy',
          'require-trusted-types-for trusted-types-sink',
        ]),
      );
      expect(asked.filter((url) => url.includes('/l/'))).toEqual([]);
    });

    test('without the nonce nothing runs: the policies above are in force', async () => {
      await using browser = await chromium.newContext();
      const { page } = await open(
        browser,
        () => STRICT,
        ({ snippet }) => snippet(),
      );
      await eventually(async () => expect(await violations(page)).toEqual(['script-src-elem inline']));
      expect(await state(page)).toBeUndefined();
    });
  });

  test.each<[string, Record<string, string>]>([
    [
      'is isolated',
      { 'cross-origin-embedder-policy': 'require-corp', 'cross-origin-opener-policy': 'same-origin' },
    ],
    ['tells nobody where it is', { 'referrer-policy': 'no-referrer' }],
  ])('a page that %s: from the edge, and no blocker is seen', async (_name, headers) => {
    const before = stage.direct();
    await using browser = await chromium.newContext();
    const site = await stage.site();
    stage.serve('/', site.snippet(), headers);
    const { page, errors } = await visit(browser, `${site.url.shop}/`);
    expect((await settled(page))?.gtm).toBe('loaded');
    expect((await ran(page)).containers).toEqual(['GTM-ABC1234']);
    expect(stage.direct() - before).toBe(0);
    expect(await signals(site)).toMatchObject({ signals: { adblock: false, bait_blocked: false } });
    expect(errors).toEqual([]);
  });

  test('a page whose body is still to come tags and reports all the same', async () => {
    await using browser = await chromium.newContext();
    const site = await stage.site();
    stage.fault = (path) => (path === '/late.js' ? 'hold' : undefined);
    // A parser-blocking script, as shops have them.
    stage.serve('/', `${site.snippet()}<script src="${site.url.edge}/late.js"></script><p>A shop`);
    const page = await browser.newPage();
    await page.goto(`${site.url.shop}/`, { waitUntil: 'commit' });
    expect((await settled(page))?.gtm).toBe('loaded');
    expect(await page.evaluate('document.body')).toBeNull();
    expect(await signals(site)).toMatchObject({ signals: { adblock: false } });
  });

  describe('an ad blocker', () => {
    const block = (browser: BrowserContext, ...rules: RegExp[]) =>
      Promise.all(rules.map((rule) => browser.route(rule, (route) => route.abort('blockedbyclient'))));

    async function open(browser: BrowserContext) {
      const site = await stage.site();
      stage.serve('/', `${site.snippet()}<script>window.shopWorks = true</script>`);
      const opened = await visit(browser, `${site.url.shop}/`);
      const end = await settled(opened.page);
      expect(await opened.page.evaluate('window.shopWorks')).toBe(true);
      expect(opened.errors).toEqual([]);
      return { ...opened, site, end };
    }

    test('with the common lists: the site’s own edge still tags, and says what it saw', async () => {
      const before = stage.direct();
      await using browser = await chromium.newContext();
      await block(browser, ...LISTED);
      const { page, site, end } = await open(browser);
      expect(end?.gtm).toBe('loaded');
      expect((await ran(page)).containers).toEqual(['GTM-ABC1234']);
      expect((await cookie(browser, '_fpid'))?.value).toBe(end?.profile?.id);
      expect(await signals(site)).toMatchObject({
        session: { id: end?.session?.id },
        signals: { adblock: true, bait_blocked: true, tag_blocked: false, tag_stubbed: false },
      });
      expect(stage.direct() - before).toBe(0);
    });

    test('that knows the edge, too: nothing tags, and the page goes on', async () => {
      await using browser = await chromium.newContext();
      await block(browser, ...LISTED, /\.example\.net\//);
      const { page, end, asked } = await open(browser);
      expect(end?.gtm).toBe('failed');
      expect((await ran(page)).containers).toEqual([]);
      expect(asked.filter((url) => LISTED[0]?.test(url))).toHaveLength(1);
    });

    test('with a stand-in for the web tag: the page goes on, and the stand-in is told from a web tag', async () => {
      await using browser = await chromium.newContext();
      await browser.route(/\/c\/ct_/, (route) =>
        route.fulfill({ contentType: 'text/javascript', body: STUB }),
      );
      const { page, site, end } = await open(browser);
      expect(end?.gtm).toBe('loaded');
      expect((await ran(page)).containers).toEqual([]);
      expect(await signals(site)).toMatchObject({
        signals: { adblock: true, tag_stubbed: true, bait_blocked: false },
      });
    });
  });
});
