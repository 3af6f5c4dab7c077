import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { settled, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';

const WEB_TAG = 'GTM-PLACES1';

describeWith('chromium', 'the script of visitors from two countries', () => {
  let stage: BrowserStage;
  let browser: Awaited<ReturnType<typeof launchChromium>>;
  let german: BrowserSite;
  let american: BrowserSite;
  beforeAll(async () => {
    stage = await startBrowserStage();
    browser = await launchChromium(stage.browser);
    stage.webContainer = () => ({
      googleTag: null,
      destinations: [],
      serverContainerUrl: null,
      consentDefaults: [
        { ad_storage: 'granted', analytics_storage: 'granted' },
        { region: ['DE'], ad_storage: 'denied', analytics_storage: 'denied' },
        { region: ['US-CA'], ad_storage: 'denied' },
      ],
    });
    // Two sites have the same web tag, so both hosts have the same copies of its script.
    const siteAt = (number: number) =>
      stage.site({
        domains: [
          { domain: `shop${number}.example`, webTagId: WEB_TAG, token: `ct_container0places0${number}` },
        ],
      });
    german = await siteAt(1);
    american = await siteAt(2);
    const places: Record<string, { country: string; region: string }> = {
      [new URL(german.url.edge).hostname]: { country: 'DE', region: 'BE' },
      [new URL(american.url.edge).hostname]: { country: 'US', region: 'CA' },
    };
    stage.placeOf = (host) => places[host];
  });
  afterAll(async () => {
    await browser?.close();
    await stage?.close();
  });

  /** What a page's visitor gets of the web container, through the edge hostname. */
  async function containerOn(site: BrowserSite): Promise<object> {
    stage.serve('/', `<title>Shop</title>${site.snippet({ edgeUrl: site.url.edge })}`);
    const { page, errors } = await visit(browser, site.url.shop);
    expect(await settled(page)).toMatchObject({ gtm: 'loaded' });
    expect(errors).toEqual([]);
    const container: object = await page.evaluate(`google_tag_manager[${JSON.stringify(WEB_TAG)}]`);
    await page.close();
    return container;
  }

  test('has each visitor’s place, and the consent defaults of that place', async () => {
    // Twice: from the vendor, then from the edge's copies.
    for (const round of [1, 2]) {
      expect(await containerOn(german), `round ${round}`).toMatchObject({
        place: 'DE-BE',
        consent: { ad_storage: 'denied', analytics_storage: 'denied' },
      });
      expect(await containerOn(american), `round ${round}`).toMatchObject({
        place: 'US-CA',
        consent: { ad_storage: 'denied', analytics_storage: 'granted' },
      });
    }
    const fetched = stage
      .asked()
      .filter(({ host, path }) => host === 'www.googletagmanager.com' && path.startsWith('/gtm.js'));
    expect(fetched.map(({ headers }) => headers['x-forwarded-countryregion'])).toEqual(['DE-BE', 'US-CA']);
    expect(stage.direct()).toBe(0);
  });
});
