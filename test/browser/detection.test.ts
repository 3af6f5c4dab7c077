import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type EdgePage, startEdgePage, webTag } from '../support/browser/edge-page.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const BAIT = /mark-session-detection\?bait=\/bait\/gtm\.js/;
const WEB_TAG = /\/c\/ct_|:\d+\/gtm\.js/;

/** What a blocker's filter list does to a page to hide advertisements. */
const HIDES_ADS = `const sheet = new CSSStyleSheet();
  sheet.replaceSync('.adsbox { display: none !important }');
  document.adoptedStyleSheets = [sheet];`;

/** A browser that lets scripts set cookies for one week only, and shows scripts the expiry. */
const SHOWS_A_WEEK = `Object.defineProperty(window, 'cookieStore', {
    value: { get: () => Promise.resolve({ expires: Date.now() + 7 * 86_400_000 }) },
  });`;

const nothing = {
  adblock: false,
  bait_hidden: false,
  bait_blocked: false,
  tag_stubbed: false,
  tag_blocked: false,
};

describeWith('chromium', 'what a page reports about blockers and shortened cookies', () => {
  let world: EdgePage;
  let chromium: Visitors;
  beforeAll(async () => {
    world = await startEdgePage();
    chromium = await startChromium({ hosts: world.hosts });
  });
  beforeEach(() => {
    world.vendor = webTag;
    world.stage.upstream.received.length = 0;
  });
  afterAll(async () => {
    await chromium.close();
    await world.close();
  });

  /** Opens the page in a separate browser and returns the signals that reach the tag server. */
  async function signalsOf(arrange: (browser: BrowserContext) => Promise<unknown> = async () => undefined) {
    await using browser = await chromium.newContext();
    await arrange(browser);
    const page = await browser.newPage();
    await page.goto(world.url.page);
    // Awaited here, because the browser is closed at the end of this function.
    return await eventually(() => {
      const mark = world.stage.upstream.received.find(({ url }) => url.endsWith('/tagyard/detection'));
      if (mark === undefined) throw new Error('nothing has been reported yet');
      return JSON.parse(mark.body).signals;
    });
  }

  test.each<[string, (browser: BrowserContext) => Promise<unknown>, object]>([
    ['no blocker', async () => undefined, nothing],
    [
      'a blocker that hides elements',
      (browser) => browser.addInitScript({ content: HIDES_ADS }),
      { ...nothing, adblock: true, bait_hidden: true },
    ],
    [
      'a blocker that blocks requests',
      (browser) => browser.route(BAIT, (route) => route.abort('blockedbyclient')),
      { ...nothing, adblock: true, bait_blocked: true },
    ],
    [
      'a substitute for the web tag',
      (browser) =>
        browser.route(WEB_TAG, (route) =>
          route.fulfill({ contentType: 'text/javascript', body: 'window.dataLayer=window.dataLayer||[]' }),
        ),
      { ...nothing, adblock: true, tag_stubbed: true },
    ],
    [
      'a blocked web tag',
      (browser) => browser.route(WEB_TAG, (route) => route.abort('blockedbyclient')),
      { ...nothing, adblock: true, tag_blocked: true },
    ],
  ])('has the signals of %s', async (_name, arrange, expected) => {
    expect(await signalsOf(arrange)).toMatchObject(expected);
  });

  test('a vendor that is down does not count as a blocker', async () => {
    world.vendor = () => ({ status: 500 });
    const signals = await signalsOf((browser) =>
      // A script that the edge has no copy of: a copy would be served during the outage.
      browser.route(/\/c\/ct_/, (route) => route.continue({ url: `${route.request().url()}?l=never` })),
    );
    expect(signals).toMatchObject(nothing);
  });

  test('a browser that doesn’t shorten cookies is recognized by measurement', async () => {
    expect(await signalsOf()).toMatchObject({ itp: false, itp_measured: true, id_capped: false });
  });

  test('a browser that shortens cookies to a week is recognized by measurement', async () => {
    const signals = await signalsOf((browser) => browser.addInitScript({ content: SHOWS_A_WEEK }));
    expect(signals).toMatchObject({ itp: true, itp_measured: true, id_capped: true });
  });

  test.each<[string, string, object]>([
    ['Safari', 'AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.3 Safari/605.1.15', { itp: true }],
    ['Firefox', 'Gecko/20100101 Firefox/140.0', { itp: false }],
    ['WebKit without a version', 'AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Safari/604.1', {}],
  ])(
    'without a readable expiry, `itp` for %s is derived from the engine or left out, and marked as not measured',
    async (_name, agent, known) => {
      const signals = await signalsOf((browser) =>
        browser.addInitScript({
          content: `Object.defineProperty(window, 'cookieStore', { value: undefined });
          Object.defineProperty(navigator, 'userAgent', { value: 'Mozilla/5.0 ${agent}' });`,
        }),
      );
      expect(Object.keys(signals)).not.toContain('id_capped');
      const { itp_measured, itp } = signals;
      expect({ itp_measured, ...(itp === undefined ? {} : { itp }) }).toEqual({
        itp_measured: false,
        ...known,
      });
    },
  );
});
