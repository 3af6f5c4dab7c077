import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const GOOGLE = 'www.googletagmanager.com';
const ANALYTICS = 'www.google-analytics.com';
const HIT = /\/g\/collect\?/;

/** Google's own snippet, without its comment and its `noscript` part. */
const googleSnippet = (id: string) =>
  `<script>window.dataLayer=[{'gtm.start':Date.now(),event:'gtm.js'}]</script>
  <script async src="https://${GOOGLE}/gtm.js?id=${id}"></script>`;

describeWith('chromium', 'the hosts that a page contacts (docs/facts.md, Web container script)', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  let site: BrowserSite;
  let id: string;
  let custom: string;
  beforeAll(async () => {
    stage = await startBrowserStage();
    chromium = await startChromium(stage.browser);
  });
  afterAll(async () => {
    await chromium.close();
    await stage.close();
  });

  /** Each case has a site of its own, because the edge keeps copies of a container's script. */
  async function newSite(webTagId: string, serverContainer: boolean): Promise<void> {
    const name = webTagId.slice('GTM-'.length).toLowerCase();
    id = webTagId;
    custom = `metrics.${name}.example`;
    site = await stage.site({
      domains: [{ domain: `${name}.example`, webTagId, token: `ct_container0of0${name}` }],
      customDomains: [custom],
    });
    stage.webContainer = () => ({
      googleTag: 'G-SHOP1234',
      destinations: ['AW-7654321'],
      serverContainerUrl: serverContainer ? `https://${custom}` : null,
    });
  }

  /** What a page with this snippet requests of each host other than its own, until its hit has been sent. */
  async function contacted(snippet: string): Promise<Record<string, string[]>> {
    stage.serve('/', `<title>Shop</title>${snippet}`);
    await using browser = await chromium.newContext();
    const page = await browser.newPage();
    const urls: URL[] = [];
    page.on('request', (request) => urls.push(new URL(request.url())));
    await page.goto(site.url.shop);
    await eventually(async () => {
      expect(urls.some((url) => HIT.test(url.href))).toBe(true);
      expect(urls.some((url) => url.pathname === '/gtag/destination')).toBe(true);
    });
    const own = new URL(site.url.shop).host;
    const byHost = Map.groupBy(
      urls.filter(({ host }) => host !== own),
      ({ host }) => host,
    );
    return Object.fromEntries(
      [...byHost].map(([host, all]) => [
        host,
        [...new Set(all.map(({ pathname }) => withoutToken(pathname)))].sort(),
      ]),
    );
  }
  const withoutToken = (path: string) => path.replace(/^\/([lc])\/\w+\.js$/, '/$1/….js');

  const FOLLOW_UPS = ['/gtag/destination', '/gtag/js'];
  const OURS = ['/boot', '/c/….js', '/l/….js'];
  /** Detection reports only after the web tag has loaded, so its requests may come after the hit. */
  const withoutDetection = (hosts: Record<string, string[]>) =>
    Object.fromEntries(
      Object.entries(hosts).map(([host, paths]) => [
        host,
        paths.filter((path) => path !== '/mark-session-detection' && path !== '/bait/gtm.js'),
      ]),
    );

  test('are only Google’s with Google’s snippet', async () => {
    await newSite('GTM-PLAIN1', false);
    expect(await contacted(googleSnippet(id))).toEqual({
      [GOOGLE]: [...FOLLOW_UPS, '/gtm.js'],
      [ANALYTICS]: ['/g/collect'],
    });
  });

  test('are Google’s for the scripts and ours for the hits, with Google’s snippet and a server container', async () => {
    await newSite('GTM-PLAIN2', true);
    expect(await contacted(googleSnippet(id))).toEqual({
      [GOOGLE]: [...FOLLOW_UPS, '/gtm.js'],
      [custom]: ['/g/collect'],
    });
  });

  test('are ours up to gtm.js and Google’s after it, with the loader', async () => {
    await newSite('GTM-LOADER1', false);
    const hosts = await contacted(site.snippet({ edgeUrl: site.url.custom }));
    expect(withoutDetection(hosts)).toEqual({
      [custom]: OURS,
      [GOOGLE]: FOLLOW_UPS,
      [ANALYTICS]: ['/g/collect'],
    });
  });

  test('are Google’s for the follow-up scripts only, with the loader and a server container', async () => {
    await newSite('GTM-LOADER2', true);
    const hosts = await contacted(site.snippet({ edgeUrl: site.url.custom }));
    expect(withoutDetection(hosts)).toEqual({
      [custom]: [...OURS.slice(0, 2), '/g/collect', ...OURS.slice(2)],
      [GOOGLE]: FOLLOW_UPS,
    });
  });
});
