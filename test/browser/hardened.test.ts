import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, ran, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const NONCE = 'bm9uY2Utb2YtdGhlLXBhZ2U';

/** Records violations of the page's policy, such as `script-src-elem inline`. */
const NOTE_VIOLATIONS = `window.violations = [];
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
    violations.push(effectiveDirective + ' ' + blockedURI));`;

/** Google's `strict` policy (csp.withgoogle.com): allows scripts with the nonce and the scripts that they load. */
const STRICT = `script-src 'nonce-${NONCE}' 'strict-dynamic' https: 'unsafe-inline'; object-src 'none'; base-uri 'none'`;

/** The narrowest policy that allows tags. */
const narrow = (...connect: string[]) =>
  `default-src 'none'; script-src 'nonce-${NONCE}'; connect-src ${connect.join(' ')}; base-uri 'none'`;

/** Allows script URLs only from the named trusted-types policies. A web tag's own policies must also be named. */
const trusting = (...makers: string[]) =>
  `${STRICT}; require-trusted-types-for 'script'; trusted-types ${makers.join(' ')}`;

/** Rules of common block lists for tag managers: one blocks by host, one by the script's name. */
const LISTED = [/^https:\/\/www\.googletagmanager\.com\//, /\/gtm\.js(?:\?|$)/];

/** Like uBlock Origin's substitute for gtm.js, this runs the page's callbacks but no tags. */
const STUB = `(() => {
  const layer = window.dataLayer = window.dataLayer || [];
  layer.push = (item) => { if (item && typeof item.eventCallback === 'function') item.eventCallback(); };
})()`;

describeWith('chromium', 'the snippet on pages and in browsers with strict rules', () => {
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

  /** The signals from a site's page that reached the tag server. */
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
      ['scripts of named policies only', () => trusting('tagyard', 'tagyard-loader')],
    ])('%s: loader and web tag get the nonce, and nothing is refused', async (_name, policy) => {
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

    test('that blocks requests to the edge: the page loads the vendor’s script once', async () => {
      const before = stage.direct();
      await using browser = await chromium.newContext();
      const { page, site, errors } = await open(browser, () => narrow("'self'"));
      expect((await settled(page))?.gtm).toBe('loaded');
      expect(await ran(page)).toEqual({ starts: 1, containers: ['GTM-ABC1234'] });
      expect(await violations(page)).toEqual([`connect-src ${site.url.edge}/boot`]);
      expect(stage.direct() - before).toBe(1);
      expect(errors).toEqual([]);
    });

    test('that allows named policies only, while the edge fails: the page loads the vendor’s script once', async () => {
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

    test('with a default trusted-types policy: it gets every script URL, and no other policy is needed', async () => {
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

    test('that allows other policies only: no tag runs, which proves that browsers enforce these policies', async () => {
      await using browser = await chromium.newContext();
      const { page, asked } = await open(browser, () => trusting('other'));
      await eventually(async () =>
        expect(await violations(page)).toEqual([
          'trusted-types trusted-types-policy',
          'require-trusted-types-for trusted-types-sink',
        ]),
      );
      expect(asked.filter((url) => url.includes('/l/'))).toEqual([]);
    });

    test('on a page without the nonce: nothing runs, which proves that browsers enforce these policies', async () => {
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
    ['sends no referrer', { 'referrer-policy': 'no-referrer' }],
  ])('a page that %s loads everything from the edge, and no blocker is reported', async (_name, headers) => {
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

  test('before a page has a body, its tags run and its signals are reported', async () => {
    await using browser = await chromium.newContext();
    const site = await stage.site();
    stage.fault = (path) => (path === '/late.js' ? 'hold' : undefined);
    // Shops often have a script that blocks the parser.
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

    test('with common block lists: tags run through the site’s own edge, and the blocker is reported', async () => {
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

    test('that also blocks the edge: no tag runs, and the page works', async () => {
      await using browser = await chromium.newContext();
      await block(browser, ...LISTED, /\.example\.net\//);
      const { page, end, asked } = await open(browser);
      expect(end?.gtm).toBe('failed');
      expect((await ran(page)).containers).toEqual([]);
      expect(asked.filter((url) => LISTED[0]?.test(url))).toHaveLength(1);
    });

    test('with a substitute for the web tag: the page works, and the signal reports the substitute', async () => {
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
