import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { neededPolicy } from '../../edge/verification/content-security-policy.ts';
import { launchChromium } from '../support/browser/chromium.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { booted, settled, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type ForwardedShop, startForwardedShop } from '../support/forwarders/shop.ts';

const NONCE = 'bm9uY2Utb2YtdGhlLXBhZ2U';

/** Records violations of the page's policy, such as `frame-src https://…`. */
const NOTE_VIOLATIONS = `window.violations = [];
  document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) =>
    violations.push(effectiveDirective + ' ' + blockedURI));`;

/** A page's policy that allows nothing but its own inline scripts, what an address needs, and named Trusted Types policies. */
const pagePolicy = (needed: string) =>
  [
    "default-src 'none'; base-uri 'none'",
    needed.replace('script-src', `script-src 'nonce-${NONCE}'`),
    "require-trusted-types-for 'script'; trusted-types tagyard tagyard-loader tagyard-demo-vendor",
  ].join('; ');

/** The policy for the prefix of `startForwardedShop`, as management shows it for a domain's pages. */
const ofPrefix = (domain: string) =>
  neededPolicy([`https://${domain}/m3trics1`, `https://*.${domain}/m3trics1`]);

const violations = (page: Page): Promise<string[]> => page.evaluate('violations');

interface Recorded {
  readonly path: string;
  readonly query: string;
}

describeWith(['chromium', 'nginx', 'mount'], 'a page with the policy that is shown for its address', () => {
  let stage: BrowserStage;
  let prefixed: ForwardedShop;
  beforeAll(async () => {
    stage = await startBrowserStage();
    prefixed = await startForwardedShop(stage, 'nginx', { nonce: NONCE });
    const policy = pagePolicy(ofPrefix(prefixed.host.replace(/^www\./, '')));
    prefixed.show(`<meta http-equiv="Content-Security-Policy" content="${policy}">`);
  });
  afterAll(async () => {
    await prefixed?.close();
    await stage.close();
  });

  /** The events of a Google tag's hits that arrived at the tag server. */
  async function hits(tag: string): Promise<(string | null)[]> {
    const response = await fetch(`${stage.tagServerUrl}/tagyard-demo/events`);
    const { events } = (await response.json()) as { events: Recorded[] }; // its documented shape
    return events
      .filter(({ path }) => path === '/g/collect')
      .map(({ query }) => new URLSearchParams(query))
      .filter((query) => query.get('tid') === tag)
      .map((query) => query.get('en'));
  }

  /** A site for one test, because the edge keeps copies of a container's script. */
  async function served(name: string, address: 'edge' | 'custom', needed = neededPolicy) {
    const domain = `${name}.example`;
    const token = `ct_container0of0${name}`;
    const site = await stage.site({
      domains: [{ domain, webTagId: `GTM-${name.toUpperCase()}1`, token }],
      customDomains: [`metrics.${domain}`],
    });
    const base = site.url[address];
    const html = site.snippet({ edgeUrl: base }).replace('<script>', `<script nonce="${NONCE}">`);
    stage.serve('/', html, { 'content-security-policy': pagePolicy(needed(base)) });
    return { shop: site.url.shop, base, tag: `G-${name.toUpperCase()}1` };
  }

  async function open({ shop, base, tag }: Awaited<ReturnType<typeof served>>, browser: BrowserContext) {
    stage.webContainer = () => ({
      googleTag: tag,
      destinations: [`AW-${tag.slice(2)}`],
      serverContainerUrl: base,
      serviceWorker: true,
    });
    await browser.addInitScript({ content: NOTE_VIOLATIONS });
    return await visit(browser, `${shop}/`);
  }

  const launch = () =>
    launchChromium({
      ...stage.browser,
      hosts: { [prefixed.host]: `127.0.0.1:${prefixed.port}`, ...stage.browser.hosts },
    });

  describe.each([
    ['the edge hostname', () => served('policyedge', 'edge')],
    ['a subdomain', () => served('policysub', 'custom')],
    [
      'a prefix',
      async () => {
        const shop = `https://${prefixed.host}`;
        return { shop, base: shop + prefixed.path, tag: 'G-POLICYPRE1' };
      },
    ],
  ])('whose base is %s', (_what, prepare) => {
    test('loads, boots and sends its hits by fetch, image and service worker, without a violation', async () => {
      await using browser = await launch();
      const at = await prepare();
      const { page, asked, errors } = await open(at, browser);
      expect((await settled(page))?.gtm).toBe('loaded');
      expect(await booted(page)).toMatchObject({
        profile: { id: expect.stringMatching(/^[0-9a-f]{32}$/) },
      });
      const collect = `${at.base}/g/collect?v=2&tid=${at.tag}&en=`;
      await page.evaluate(`fetch('${collect}fetched', { method: 'POST', mode: 'no-cors' })`);
      await page.evaluate(`void (new Image().src = '${collect}pictured')`);
      await eventually(async () =>
        expect((await hits(at.tag)).sort()).toEqual(['fetched', 'page_view', 'pictured']),
      );
      // In a frame of another site the worker doesn't always start; if not, the tag sends its hit itself.
      expect(asked.filter((url) => url.startsWith(`${at.base}/_/service_worker/`))).not.toEqual([]);
      expect(asked.some((url) => url.startsWith('https://www.googletagmanager.com/gtag/js'))).toBe(true);
      expect(await violations(page)).toEqual([]);
      expect(errors).toEqual([]);
    });
  });

  test('without its frame-src: the worker’s page is refused, which proves that the browser enforces it', async () => {
    await using browser = await launch();
    const withoutFrames = (base: string | readonly string[]) =>
      neededPolicy(base).replace(/; frame-src .*/, '');
    const at = await served('policynone', 'custom', withoutFrames);
    const { page } = await open(at, browser);
    // The worker’s page is in a frame of an empty frame, so the violation isn’t recorded in the page itself.
    await eventually(async () => {
      const found = await Promise.all(
        page.frames().map((frame) => frame.evaluate<string[]>('window.violations || []')),
      );
      expect(found.flat()).toEqual([
        expect.stringMatching(/^frame-src https:\/\/metrics\.policynone\.example/),
      ]);
    });
    await eventually(async () => expect(await hits(at.tag)).toEqual(['page_view']));
    expect(browser.serviceWorkers()).toEqual([]);
  });
});
