import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';

const HIT = '/g/collect?v=2';
const DAY = 86_400;

describeWith('chromium', 'the tag server’s own cookies, with `domain: auto` (docs/facts.md, Paths)', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  let sites = 0;
  beforeAll(async () => {
    stage = await startBrowserStage();
    chromium = await startChromium(stage.browser);
    stage.serve('/', '<title>Page</title>');
  });
  afterAll(async () => {
    await chromium.close();
    await stage.close();
  });

  /** A site of this domain, with the custom domain `metrics.<domain>`. */
  function siteOf(domain: string): Promise<BrowserSite> {
    sites += 1;
    return stage.site({
      domains: [{ domain, webTagId: 'GTM-COOKIE1', token: `ct_auto000000000000${sites}` }],
      customDomains: [`metrics.${domain}`],
    });
  }

  /** The cookies that were sent with the last request for a host's page, by name. */
  function sentTo(host: string): Record<string, string> {
    const last = stage.asked().findLast((asked) => asked.host === host && asked.path === '/');
    if (last === undefined) throw new Error(`the page of ${host} was not requested`);
    const pairs = String(last.headers.cookie ?? '').split('; ');
    return Object.fromEntries(pairs.filter(Boolean).map((pair) => pair.split('=')));
  }

  test.each([
    // The custom domain is two labels below the highest domain that it can own.
    ['metrics.shop.acme.example', 'shop.acme.example', 'acme.example', 'rival.example'],
    // A public suffix of two labels.
    ['metrics.acme.co.uk', 'acme.co.uk', 'acme.co.uk', 'rival.co.uk'],
    // A suffix of the private section.
    ['metrics.acme.github.io', 'acme.github.io', 'acme.github.io', 'rival.github.io'],
  ])(
    'are set by %s for the highest domain that it can own, and are sent to its siblings',
    async (_host, domain, owned, rival) => {
      await using browser = await chromium.newContext();
      const site = await siteOf(domain);
      const { page } = await visit(browser, `${site.url.shop}/`);
      expect(await browser.cookies()).toEqual([]);
      const send = () =>
        page.evaluate(
          `fetch('${site.url.custom}${HIT}', { method: 'POST', credentials: 'include' }).then(({ status }) => status)`,
        );
      expect(await send()).toBe(200);

      const [id, link] = [await cookie(browser, 'FPID'), await cookie(browser, 'FPLC')];
      for (const kept of [id, link]) {
        expect(kept).toMatchObject({ domain: `.${owned}`, path: '/', secure: true, sameSite: 'Lax' });
      }
      expect([id?.httpOnly, link?.httpOnly]).toEqual([true, false]);
      // Two years, which Chromium shortens to 400 days.
      expect(id?.expires).toBeGreaterThan(Date.now() / 1000 + 399 * DAY);

      for (const host of [`another.${owned}`, owned]) {
        await visit(browser, `https://${host}/`);
        expect(sentTo(host)).toEqual({ FPID: id?.value, FPLC: link?.value });
      }
      await visit(browser, `https://${rival}/`);
      expect(sentTo(rival)).toEqual({});

      // The tag server gets its cookie back, so the visitor stays the same.
      expect(await send()).toBe(200);
      expect(await cookie(browser, 'FPID')).toMatchObject({ value: id?.value });
    },
  );

  test('don’t reach the browser from the edge hostname: all sites of the zone would get them', async () => {
    await using browser = await chromium.newContext();
    const site = await siteOf('zone.example');
    const { page } = await visit(browser, `${site.url.edge}${HIT}`);
    expect(page.url()).toBe(`${site.url.edge}${HIT}`);
    expect(await browser.cookies()).toEqual([]);
    // The control: the same visit to the custom domain.
    await visit(browser, `${site.url.custom}${HIT}`);
    expect((await browser.cookies()).map(({ name }) => name).sort()).toEqual(['FPID', 'FPLC']);
  });
});
