import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ManifestInput } from '../../sites/manifest/schema.ts';
import { launchChromium, startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { booted, cookie, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';

const DAY = 86_400;
const now = () => Date.now() / 1000;
const ANALYTICS = 'GA1.1.1234567890.1700000000';
const ADS = 'fb.1.1700000000.987654321';

/** Records the names that scripts write, and the cookies that exist when the web tag starts. */
const WATCH = `const { get, set } = Object.getOwnPropertyDescriptor(Document.prototype, 'cookie');
  window.written = [];
  Object.defineProperty(document, 'cookie', {
    get: () => get.call(document),
    set(text) { written.push(text.split('=')[0]); set.call(document, text); },
  });
  Object.defineProperty(window, 'google_tag_manager', {
    configurable: true,
    set(value) {
      window.cookiesAtTag = get.call(document);
      Object.defineProperty(window, 'google_tag_manager', { value, writable: true });
    },
  });`;

const HOSTS = ['custom', 'edge'] as const;

describeWith('chromium', 'cookies in a browser', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  beforeAll(async () => {
    stage = await startBrowserStage();
    chromium = await startChromium(stage.browser);
  });
  afterAll(async () => {
    await chromium.close();
    await stage.close();
  });

  /** A site with a shop page that has the snippet for this host of the edge. */
  async function shop(host: (typeof HOSTS)[number], manifest: Partial<ManifestInput> = {}) {
    const site = await stage.site({ features: { cookie_restoration: true }, ...manifest });
    const { domain = '' } = site.manifest.domains[0] ?? {};
    const consent = (choices: object | undefined) =>
      choices === undefined
        ? ''
        : `<script>window.tagyard = { consent: ${JSON.stringify(choices)} }</script>`;
    return {
      site,
      domain: `.${domain}`,
      async open(browser: BrowserContext, choices?: object): Promise<Page> {
        stage.serve('/', consent(choices) + site.snippet({ edgeUrl: site.url[host] }));
        const { page, errors } = await visit(browser, `${site.url.shop}/`);
        expect((await settled(page))?.gtm).toBe('loaded');
        expect(errors).toEqual([]);
        return page;
      },
      /** Sets cookies as a tag of the page does: session cookies on the shop's domain. */
      write: (browser: BrowserContext, cookies: Record<string, string>) =>
        browser.addCookies(
          Object.entries(cookies).map(([name, value]) => ({ name, value, domain: `.${domain}`, path: '/' })),
        ),
    };
  }

  describe.each(HOSTS)('with the loader from the %s host', (host) => {
    test('the id is set for the domain and 395 days, secure, lax and readable by scripts', async () => {
      await using browser = await chromium.newContext();
      await browser.addInitScript({ content: WATCH });
      const { site, domain, open } = await shop(host);
      const page = await open(browser);
      const id = (await booted(page))?.profile?.id;
      const kept = await cookie(browser, '_fpid');
      expect(kept).toMatchObject({
        value: id,
        domain,
        path: '/',
        secure: true,
        httpOnly: false,
        sameSite: 'Lax',
      });
      expect(kept?.expires).toBeGreaterThan(now() + 395 * DAY - 600);
      expect(kept?.expires).toBeLessThanOrEqual(now() + 395 * DAY + 1);
      expect(await page.evaluate('document.cookie')).toContain(`_fpid=${id}`);
      // Safari shortens the life of cookies that scripts write: the loader writes only what the answer couldn't set.
      const written: string[] = await page.evaluate('written');
      expect(written.includes('_fpid')).toBe(host === 'edge');
      expect(await browser.cookies(site.url.edge)).toEqual([]);
    });

    test('listed cookies are restored after a deletion, before the web tag runs; others are not', async () => {
      await using browser = await chromium.newContext();
      const { site, domain, open, write } = await shop(host);
      await write(browser, { _ga: ANALYTICS, basket: 'secret' });
      const first = await open(browser);
      const id = (await booted(first))?.profile?.id;
      expect(await site.profile(id)).toMatchObject({ cookies: [{ name: '_ga', value: ANALYTICS }] });

      await browser.clearCookies({ name: /^(?:_ga|basket)$/ });
      await browser.addInitScript({ content: WATCH });
      const second = await open(browser);
      expect(await cookie(browser, '_ga')).toMatchObject({
        value: ANALYTICS,
        domain,
        path: '/',
        secure: true,
        httpOnly: false,
        sameSite: 'Lax',
      });
      expect(await cookie(browser, 'basket')).toBeUndefined();
      expect(await second.evaluate('cookiesAtTag')).toContain(`_ga=${ANALYTICS}`);
      expect((await state(second))?.restored).toEqual(['_ga']);
      expect((await booted(second))?.profile).toEqual({ id, isNew: false });
      const written: string[] = await second.evaluate('written');
      expect(written.includes('_ga')).toBe(host === 'edge');
    });

    test('are restored with their remaining life', async () => {
      await using browser = await chromium.newContext();
      const { site, open, write } = await shop(host);
      await write(browser, { _ga: ANALYTICS });
      const id = (await booted(await open(browser)))?.profile?.id;
      const record = await site.profile(id);
      const cookies = [{ name: '_ga', value: ANALYTICS, setAt: 1, expiresAt: (now() + 3 * DAY) * 1000 }];
      await stage.edge.kv.COOKIES.put(
        `${site.manifest.site}:${id}`,
        JSON.stringify({ ...Object(record), cookies }),
      );
      await browser.clearCookies({ name: '_ga' });
      await open(browser);
      const expires = (await cookie(browser, '_ga'))?.expires;
      expect(expires).toBeGreaterThan(now() + 3 * DAY - 600);
      expect(expires).toBeLessThanOrEqual(now() + 3 * DAY + 2);
    });

    test('are restored after a restart of the browser', async () => {
      const profile = mkdtempSync(join(tmpdir(), 'tagyard-profile-'));
      try {
        const { open, write } = await shop(host);
        const start = () => launchChromium({ ...stage.browser, profile });
        const before = await start();
        await write(before, { _ga: ANALYTICS });
        const id = (await booted(await open(before)))?.profile?.id;
        await before.close();

        await using after = await start();
        expect((await after.cookies()).map(({ name }) => name)).toEqual(['_fpid', 'tagyard_session']);
        expect((await booted(await open(after)))?.profile).toEqual({ id, isNew: false });
        const restored = await cookie(after, '_ga');
        expect(restored?.value).toBe(ANALYTICS);
        expect(restored?.expires).toBeGreaterThan(now() + 394 * DAY);
      } finally {
        rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
      }
    });

    test('a host-only cookie is not duplicated, and its newest value is stored', async () => {
      await using browser = await chromium.newContext();
      const { site, open } = await shop(host);
      const write = (value: string) =>
        browser.addCookies([{ name: '_ga', value, url: site.url.shop, sameSite: 'Lax', secure: true }]);
      await write('GA1.1.1.1');
      const id = (await booted(await open(browser)))?.profile?.id;
      await write('GA1.1.2.2');
      const page = await open(browser);
      expect(await page.evaluate('document.cookie')).toMatch(/^(?!.*_ga=.*_ga=).*_ga=GA1\.1\.2\.2/);
      expect(await site.profile(id)).toMatchObject({ cookies: [{ name: '_ga', value: 'GA1.1.2.2' }] });
    });

    test('a malformed id is replaced once, not at each page view', async () => {
      await using browser = await chromium.newContext();
      const { site, domain, open } = await shop(host);
      const garbage = { name: '_fpid', value: 'garbage' };
      await browser.addCookies([
        { ...garbage, url: site.url.shop },
        { ...garbage, domain, path: '/' },
      ]);
      const first = (await booted(await open(browser)))?.profile;
      expect(first?.isNew).toBe(true);
      expect((await booted(await open(browser)))?.profile).toEqual({ id: first?.id, isNew: false });
      const kept = (await browser.cookies(site.url.shop)).filter(({ name }) => name === '_fpid');
      expect(kept.filter(({ value }) => value === first?.id)).toHaveLength(1);
    });

    test('an id that another site has set for the edge’s zone is ignored', async () => {
      await using browser = await launchChromium({ ...stage.browser, thirdPartyCookies: true });
      const { site, open } = await shop(host);
      const planted = 'e'.repeat(32);
      const domain = new URL(site.url.edge).hostname.replace(/^[^.]+/, '');
      await browser.addCookies([
        { name: '_fpid', value: planted, domain, path: '/', secure: true, sameSite: 'None' },
      ]);
      const first = (await booted(await open(browser)))?.profile;
      expect(first).toMatchObject({ isNew: true });
      expect(first?.id).not.toBe(planted);
      expect((await booted(await open(browser)))?.profile).toEqual({ id: first?.id, isNew: false });
    });

    test('a second tab continues the profile and the session', async () => {
      await using browser = await chromium.newContext();
      const { open } = await shop(host);
      const first = await state(await open(browser));
      const second = await state(await open(browser));
      expect(second?.profile).toEqual({ id: first?.profile?.id, isNew: false });
      expect(second?.session).toMatchObject({ id: first?.session?.id, isNew: false });
    });

    test.each([
      ['off', false],
      ['on', true],
    ])('with third-party cookies %s, the id is known and cookies are restored', async (_name, allowed) => {
      await using browser = await launchChromium({ ...stage.browser, thirdPartyCookies: allowed });
      const { site, domain, open, write } = await shop(host);
      stage.serve('/other', '<title>Other</title>', {
        'set-cookie': 'other=1; SameSite=None; Secure; Path=/',
      });
      await write(browser, { _ga: ANALYTICS });
      const first = await open(browser);
      // The control: this third-party cookie is kept only if the browser allows such cookies.
      await first.evaluate(
        `fetch('https://www.other.example/other', { mode: 'no-cors', credentials: 'include' })`,
      );
      expect((await cookie(browser, 'other')) !== undefined).toBe(allowed);
      const id = (await booted(first))?.profile?.id;
      expect(await cookie(browser, '_fpid')).toMatchObject({ value: id, domain });
      await browser.clearCookies({ name: '_ga' });
      const second = await open(browser);
      expect((await booted(second))?.profile).toEqual({ id, isNew: false });
      expect((await state(second))?.session).toMatchObject({ isNew: false });
      expect((await cookie(browser, '_ga'))?.value).toBe(ANALYTICS);
      expect(await browser.cookies(site.url.edge)).toEqual([]);
    });

    test('with the flag off, nothing is stored or restored', async () => {
      await using browser = await chromium.newContext();
      const { site, open, write } = await shop(host, { features: { cookie_restoration: false } });
      await write(browser, { _ga: ANALYTICS });
      const id = (await booted(await open(browser)))?.profile?.id;
      expect(await site.profile(id)).toBeNull();
      await browser.clearCookies({ name: '_ga' });
      await open(browser);
      expect(await cookie(browser, '_ga')).toBeUndefined();
    });

    const denied = { analytics_storage: 'denied', ad_storage: 'denied' };

    describe.each<[string, object | undefined, Record<string, string>]>([
      ['a denial of both purposes', denied, {}],
      ['Sec-GPC: 1', undefined, { 'sec-gpc': '1' }],
      [
        'Sec-GPC: 1, despite the page’s choices',
        { analytics_storage: 'granted', ad_storage: 'granted' },
        { 'sec-gpc': '1' },
      ],
    ])('%s', (_name, choices, headers) => {
      test('stores nothing at the first visit: no cookie, and no entry in the storage of page and edge', async () => {
        await using browser = await chromium.newContext();
        await browser.setExtraHTTPHeaders(headers);
        const { site, open } = await shop(host);
        const page = await open(browser, choices);
        expect((await booted(page))?.profile).toBeNull();
        expect(await browser.cookies()).toEqual([]);
        expect(await page.evaluate('localStorage.length')).toBe(0);
        const { keys } = await stage.edge.kv.COOKIES.list({ prefix: `${site.manifest.site}:` });
        expect(keys).toEqual([]);
      });

      test('at a later visit deletes the cookies in page and store, and none is restored', async () => {
        await using browser = await chromium.newContext();
        const { site, open, write } = await shop(host);
        await write(browser, { _ga: ANALYTICS });
        const id = (await booted(await open(browser)))?.profile?.id;
        expect(await site.profile(id)).not.toBeNull();

        await browser.clearCookies({ name: '_ga' });
        await browser.setExtraHTTPHeaders(headers);
        const page = await open(browser, choices);
        expect(await state(page)).toMatchObject({ profile: null, restored: [] });
        expect(await browser.cookies()).toEqual([]);
        expect(await page.evaluate('localStorage.length')).toBe(0);
        expect(await site.profile(id)).toBeNull();

        await browser.setExtraHTTPHeaders({});
        expect((await booted(await open(browser)))?.profile?.id).not.toBe(id);
        expect(await cookie(browser, '_ga')).toBeUndefined();
      });
    });

    test('a denial of one purpose deletes its cookies and keeps the others', async () => {
      await using browser = await chromium.newContext();
      const { site, open, write } = await shop(host);
      await write(browser, { _ga: ANALYTICS, _fbp: ADS });
      const id = (await booted(await open(browser)))?.profile?.id;
      await browser.clearCookies({ name: /^(?:_ga|_fbp)$/ });
      await open(browser, { analytics_storage: 'denied' });
      expect((await cookie(browser, '_fbp'))?.value).toBe(ADS);
      expect(await cookie(browser, '_ga')).toBeUndefined();
      expect(await site.profile(id)).toMatchObject({ cookies: [{ name: '_fbp' }] });
    });

    test('where consent is required, the visitor has no id before a grant, and one after it', async () => {
      await using browser = await chromium.newContext();
      const { open } = await shop(host, { consent: 'required' });
      expect((await booted(await open(browser)))?.profile).toBeNull();
      expect(await browser.cookies()).toEqual([]);
      const granted = await open(browser, { analytics_storage: 'granted' });
      expect((await booted(granted))?.profile?.isNew).toBe(true);
      expect((await cookie(browser, '_fpid'))?.value).toBe((await booted(granted))?.profile?.id);
    });
  });
});
