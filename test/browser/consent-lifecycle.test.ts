import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { launchChromium, startChromium, type Visitors } from '../support/browser/chromium.ts';
import {
  ALL_DENIED,
  ALL_GRANTED,
  consentShop,
  DEFAULT_DENIED,
  gtag,
} from '../support/browser/consent-page.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const NONCE = 'bm9uY2Utb2YtdGhlLXBhZ2U';
/** Allows script URLs only from the trusted-types policies of the snippet and the loader. */
const POLICY =
  `script-src 'nonce-${NONCE}' 'strict-dynamic' https: 'unsafe-inline'; object-src 'none'; base-uri 'none';
  require-trusted-types-for 'script'; trusted-types tagyard tagyard-loader`.replace(/\s+/g, ' ');
const NOTE_VIOLATIONS = `window.violations = [];
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
    violations.push(effectiveDirective + ' ' + blockedURI));`;
const STRICT = { consent: 'required', consentMode: 'basic' } as const;

describeWith(
  'chromium',
  'consent on pages with a strict policy, from the back/forward cache, prerendered, or without scripts',
  () => {
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

    /** How many bootstraps the edge hostname has received, from any page. */
    const boots = (host: string) =>
      stage.asked().filter((one) => one.host === host && one.method === 'POST' && one.path === '/boot')
        .length;

    test('with trusted types in the content security policy, a later grant loads everything with the page’s nonce', async () => {
      await using browser = await chromium.newContext();
      await browser.addInitScript({ content: NOTE_VIOLATIONS });
      const { site } = await consentShop(stage, STRICT);
      const html = (DEFAULT_DENIED + site.snippet({ waits: true })).replaceAll(
        '<script>',
        `<script nonce="${NONCE}">`,
      );
      stage.serve('/', html, { 'content-security-policy': POLICY });
      const { page, errors } = await visit(browser, `${site.url.shop}/`);
      await eventually(async () => expect((await state(page))?.gtm).toBe('waiting'));
      await page.evaluate(`gtag('consent','update',${ALL_GRANTED})`);
      expect((await settled(page))?.gtm).toBe('loaded');
      expect(await page.evaluate('violations')).toEqual([]);
      expect(errors).toEqual([]);
    });

    test.each([
      ['no loader', /^\/l\//, DEFAULT_DENIED],
      ['no bootstrap after a grant', /^\/boot/, gtag(`gtag('consent','update',${ALL_GRANTED})`)],
      ['no web tag after a grant', /^\/c\//, gtag(`gtag('consent','update',${ALL_GRANTED})`)],
    ])('an edge that sends %s doesn’t delay the page’s load event', async (_name, held, head) => {
      await using browser = await chromium.newContext();
      stage.fault = (path) => (held.test(path) ? 'hold' : undefined);
      const { open } = await consentShop(stage, STRICT);
      const at = await open(browser, head);
      await eventually(() => expect(stage.held()).toBeGreaterThan(0));
      await at.page.waitForLoadState('load');
      expect(stage.held()).toBeGreaterThan(0);
    });

    test('without scripts, a page sends requests to its own server only', async () => {
      await using browser = await chromium.newContext();
      const { site } = await consentShop(stage);
      stage.serve('/', `${site.snippet()}<title>Shop</title>`);
      const page = await browser.newPage();
      const session = await browser.newCDPSession(page);
      await session.send('Emulation.setScriptExecutionDisabled', { value: true });
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).origin));
      await page.goto(`${site.url.shop}/`);
      expect(await page.title()).toBe('Shop');
      expect(new Set(asked)).toEqual(new Set([site.url.shop]));
    });

    test('a page that comes back from the back/forward cache acts on a grant, and boots again only then', async () => {
      await using browser = await launchChromium({ ...stage.browser, backForwardCache: true });
      const { site, domain } = await consentShop(stage, { consent: 'required' });
      // The browser gets a cookie: without one to keep, nothing would be stored for the visitor.
      await browser.addCookies([{ name: '_ga', value: 'GA1.1.1234567890.1700000000', domain, path: '/' }]);
      const host = new URL(site.url.edge).host;
      // The page itself grants when it is shown again, because tests lose the connection to a page in that cache.
      const onReturn = gtag(`gtag('consent','default',${ALL_DENIED});
      addEventListener('pageshow',({persisted})=>{if(persisted)fetch('/persisted').then(()=>
        gtag('consent','update',${ALL_GRANTED}))})`);
      stage.serve('/', onReturn + site.snippet());
      stage.serve('/persisted', '');
      stage.serve(
        '/other',
        `<script>if(location.hash)addEventListener('load',()=>setTimeout(()=>history.back()))</script>`,
      );
      const { page } = await visit(browser, `${site.url.shop}/`);
      await settled(page);
      expect(boots(host)).toBe(1);
      await page.evaluate(`setTimeout(()=>{location.href='/other#back'})`);
      await eventually(() => expect(stage.asked().some(({ path }) => path === '/persisted')).toBe(true));
      await eventually(() => expect(boots(host)).toBe(2));
      await eventually(async () => {
        const { keys } = await stage.edge.kv.COOKIES.list({ prefix: `${site.manifest.site}:` });
        expect(keys).toHaveLength(1);
      });
    });

    test('a prerendered page sends nothing but the request for its loader, until it is shown', async () => {
      await using browser = await chromium.newContext();
      // Simulates prerendering by the standard's state and event, because this Chromium prerenders no page that a test
      // controls.
      await browser.addInitScript({
        content: `window.shown=false;Object.defineProperty(Document.prototype,'prerendering',{get:()=>!window.shown})`,
      });
      const { open } = await consentShop(stage);
      const at = await open(browser);
      await eventually(async () => expect((await state(at.page))?.gtm).toBe('waiting'));
      expect((await at.sent()).map(({ path }) => path.slice(0, 3))).toEqual(['/l/']);
      await at.page.evaluate(`window.shown=true;document.dispatchEvent(new Event('prerenderingchange'))`);
      expect((await settled(at.page))?.gtm).toBe('loaded');
      expect(await at.sent('/boot')).toHaveLength(1);
    });
  },
);
