import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChromium, startChromium, type Visitors } from '../support/browser/chromium.ts';
import { startHoldingRelay } from '../support/browser/holding-relay.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const STORED = 'GA1.1.1111111111.1700000000';
const NEWER = 'GA1.1.2222222222.1800000000';
const HOSTS = ['custom', 'edge'] as const;
/** The pattern of each host in the browser's map of hosts to addresses. */
const TARGETS = { custom: 'metrics.*', edge: '*' } as const;

/** Calls the test's `beforeBoot` before the loader sends the bootstrap. */
const ASKS_BEFORE_BOOT = `const { fetch: send } = window;
  window.fetch = async (...given) => {
    if (String(given[0]).endsWith('/boot')) await beforeBoot();
    return send(...given);
  };`;

describeWith('chromium', 'identity and cost in a browser', () => {
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
      const began = Date.now() / 1000;
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
        secure: true,
        sameSite: 'Lax',
      });
      expect(kept?.expires).toBeGreaterThan(began + 1799);
      expect(kept?.expires).toBeLessThan(Date.now() / 1000 + 1801);
      expect(await site.profile(first?.profile?.id)).toBeNull();
    });

    test('a session outlives the browser’s end, without a record in the store', async () => {
      using profile = mkdtempDisposableSync(join(tmpdir(), 'tagyard-profile-'));
      const site = await stage.site();
      serve(site);
      const browse = async () => {
        await using browser = await launchChromium({ ...stage.browser, profile: profile.path });
        return await state(await open(browser, site));
      };
      const first = await browse();
      const next = await browse();
      expect(next?.profile).toEqual({ id: first?.profile?.id, isNew: false });
      expect(next?.session).toMatchObject({ id: first?.session?.id, isNew: false });
      expect(await site.profile(first?.profile?.id)).toBeNull();
    });

    test('a session that an earlier loader left in the page’s storage is removed, and not continued', async () => {
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
      const { hosts = {} } = stage.browser;
      const [pattern, address = ''] = Object.entries(hosts).find(([name]) => name === TARGETS[host]) ?? [''];
      await using relay = await startHoldingRelay(Number(address.split(':')[1]));
      await using browser = await launchChromium({
        ...stage.browser,
        hosts: { ...hosts, [pattern]: `127.0.0.1:${relay.port}` },
      });
      const site = await stage.site({ features: { cookie_restoration: true } });
      serve(site);
      const domain = domainOf(site);
      await browser.addCookies(
        Object.entries({ _ga: STORED, _fbp: 'fb.1.1.1' }).map(([name, value]) => ({
          name,
          value,
          domain: `.${domain}`,
          path: '/',
        })),
      );
      await open(browser, site);
      await browser.clearCookies({ name: /^_(?:ga|fbp)$/ });

      let arrived: Promise<void> | undefined;
      await browser.exposeFunction('beforeBoot', () => {
        arrived = relay.hold();
      });
      await browser.addInitScript({ content: ASKS_BEFORE_BOOT });
      const { page } = await visit(browser, `https://www.${domain}/`);
      await eventually(async () => {
        if (arrived === undefined) throw new Error('the bootstrap has not begun');
        await arrived;
      });
      // The request has left without the cookie; its answer, which sets the stored one, is held.
      // The page reads the cookie back only once the browser has stored it.
      const written = await page.evaluate(`
        document.cookie = '_ga=${NEWER}; Path=/; Domain=${domain}; Max-Age=1000';
        document.cookie;`);
      expect(written).toContain(NEWER);
      relay.release();
      expect((await settled(page))?.gtm).toBe('loaded');
      expect((await state(page))?.restored).toEqual(expect.arrayContaining(['_ga', '_fbp']));
      const all = (await browser.cookies()).filter(({ name }) => /^_(?:ga|fbp)$/.test(name));
      expect(all.map(({ name, value }) => [name, value]).toSorted()).toEqual([
        ['_fbp', 'fb.1.1.1'],
        ['_ga', NEWER],
      ]);
    });
  });

  test('the first page view of a session sends four requests to the edge, later views one besides scripts; none needs a preflight', async () => {
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
    // A second report of the site would be sent before that of the control, whose page is opened last.
    const control = await stage.site();
    stage.serve('/', control.snippet());
    await using other = await chromium.newContext();
    await open(other, control);
    const own = [site, control].map(({ manifest }) => manifest.site);
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
