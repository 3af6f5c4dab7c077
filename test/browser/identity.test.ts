import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const STORED = 'GA1.1.1111111111.1700000000';
const NEWER = 'GA1.1.2222222222.1800000000';
const HOSTS = ['custom', 'edge'] as const;

describeWith('chromium', 'identity and cost, as the browser has them', () => {
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

  const domainOf = (site: BrowserSite) => site.manifest.domains[0]?.domain ?? '';

  /** Opens the site's page on a host of its domain, and waits for its tag. */
  async function open(browser: BrowserContext, site: BrowserSite, host = 'www'): Promise<Page> {
    const { page, errors } = await visit(browser, `https://${host}.${domainOf(site)}/`);
    expect((await settled(page))?.gtm).toBe('loaded');
    expect(errors).toEqual([]);
    return page;
  }

  describe.each(HOSTS)('with the loader from the %s host', (host) => {
    const serve = (site: BrowserSite) => stage.serve('/', site.snippet({ edgeUrl: site.url[host] }));

    test('www, blog and www again are one session of one profile, without a record in the store', async () => {
      await using browser = await chromium.newContext();
      const site = await stage.site();
      serve(site);
      const first = await state(await open(browser, site));
      expect(first?.session?.isNew).toBe(true);
      for (const other of ['blog', 'www', 'shop.blog']) {
        const next = await state(await open(browser, site, other));
        expect(next?.profile).toEqual({ id: first?.profile?.id, isNew: false });
        expect(next?.session).toMatchObject({ id: first?.session?.id, isNew: false });
      }
      const kept = await cookie(browser, 'tagyard_session');
      expect(kept).toMatchObject({
        domain: `.${domainOf(site)}`,
        expires: -1,
        secure: true,
        sameSite: 'Lax',
      });
      expect(await site.profile(first?.profile?.id)).toBeNull();
    });

    test('a session that an earlier loader has kept in the page’s storage is not continued, and removed', async () => {
      await using browser = await chromium.newContext();
      const site = await stage.site();
      serve(site);
      await browser.addInitScript({
        content: `localStorage.setItem('tagyard.session', '${'e'.repeat(32)}')`,
      });
      const page = await open(browser, site);
      expect((await state(page))?.session?.isNew).toBe(true);
      expect(await page.evaluate('localStorage.length')).toBe(0);
    });

    test('a cookie that the page writes while the bootstrap is under way is not overwritten', async () => {
      await using browser = await chromium.newContext();
      const site = await stage.site({ features: { cookie_restoration: true } });
      serve(site);
      const domain = `.${domainOf(site)}`;
      const add = (names: Record<string, string>) =>
        browser.addCookies(
          Object.entries(names).map(([name, value]) => ({ name, value, domain, path: '/' })),
        );
      await add({ _ga: STORED, _fbp: 'fb.1.1.1' });
      await open(browser, site);
      await browser.clearCookies({ name: /^_(?:ga|fbp)$/ });

      const asked = Promise.withResolvers<void>();
      const written = Promise.withResolvers<void>();
      await browser.route('**/boot', async (route) => {
        asked.resolve();
        await written.promise;
        await route.continue();
      });
      const { page } = await visit(browser, `https://www.${domainOf(site)}/`);
      await asked.promise;
      await page.evaluate(`document.cookie = '_ga=${NEWER}; Path=/; Domain=${domainOf(site)}; Max-Age=1000'`);
      // The browser reports a change in a task of its own.
      await page.evaluate('new Promise((resolve) => cookieStore.get("_ga").then(resolve))');
      written.resolve();
      expect((await settled(page))?.gtm).toBe('loaded');
      await eventually(async () => expect((await cookie(browser, '_ga'))?.value).toBe(NEWER));
      expect((await cookie(browser, '_fbp'))?.value).toBe('fb.1.1.1');
      const all = (await browser.cookies()).filter(({ name }) => name === '_ga');
      expect(all.map(({ value }) => value)).toEqual([NEWER]);
    });
  });

  test('the first view of a session sends four requests to the edge, later ones one; none has a preflight', async () => {
    await using browser = await chromium.newContext();
    const site = await stage.site({ features: { cookie_restoration: true } });
    stage.serve('/', site.snippet());
    const host = new URL(site.url.edge).hostname;
    const sent = () =>
      stage
        .asked()
        .filter((request) => request.host === host)
        .map(({ method, path }) => `${method} ${path.replace(/\?.*/, '').replace(/(?<=\/[lc]\/).+/, '…')}`);
    const first = ['GET /l/…', 'POST /boot', 'GET /c/…', 'POST /mark-session-detection'];
    const page = await open(browser, site);
    await eventually(() => expect(sent()).toEqual(first));
    await page.close();
    await open(browser, site, 'blog');
    await open(browser, site);
    // A report would be sent after the tag has loaded; the witness's own comes later than any.
    const witness = await stage.site();
    stage.serve('/', witness.snippet());
    await using other = await chromium.newContext();
    await open(other, witness);
    const own = [site, witness].map(({ manifest }) => manifest.site);
    await eventually(async () => {
      const reports = (await stage.detections()).map((report) => Object(report).site);
      expect(reports.filter((name) => own.includes(name))).toEqual(own);
    });
    const later = sent().slice(first.length);
    expect(later.filter((request) => request !== 'GET /l/…' && request !== 'GET /c/…')).toEqual([
      'POST /boot',
      'POST /boot',
    ]);
    expect(later.length).toBeLessThanOrEqual(4);
  });
});
