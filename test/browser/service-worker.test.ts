import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChromium } from '../support/browser/chromium.ts';
import { ALL_DENIED, ALL_GRANTED, DEFAULT_DENIED } from '../support/browser/consent-page.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, settled, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type ForwardedShop, startForwardedShop } from '../support/forwarders/shop.ts';

const WORKER = /\/_\/service_worker\/\w+\/sw\.js/;

/** A hit as it arrived at the tag server. */
interface Hit {
  readonly event: string | null;
  readonly gcs: string | null;
  readonly cookie: string;
  readonly referrer: string;
}

interface Recorded {
  readonly path: string;
  readonly query: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

describeWith(
  ['chromium', 'nginx', 'mount'],
  'hits of Google’s service worker (docs/facts.md, Service worker)',
  () => {
    let stage: BrowserStage;
    let prefixed: ForwardedShop;
    beforeAll(async () => {
      stage = await startBrowserStage();
      prefixed = await startForwardedShop(stage, 'nginx', { page: DEFAULT_DENIED });
    });
    afterAll(async () => {
      await prefixed?.close();
      await stage.close();
    });

    /** The hits of a Google tag that arrived at the tag server. */
    async function hits(tag: string): Promise<Hit[]> {
      const response = await fetch(`${stage.tagServerUrl}/tagyard-demo/events`);
      const { events } = (await response.json()) as { events: Recorded[] }; // its documented shape
      return events
        .filter(({ path }) => path === '/g/collect')
        .map(({ query, headers }) => ({ query: new URLSearchParams(query), headers }))
        .filter(({ query }) => query.get('tid') === tag)
        .map(({ query, headers }) => {
          const of = (name: string) => headers.find(([each]) => each.toLowerCase() === name)?.[1] ?? '';
          return {
            event: query.get('en'),
            gcs: query.get('gcs'),
            cookie: of('cookie'),
            referrer: of('referer'),
          };
        });
    }

    /** Where a page is, the base of its tags, and its Google tag. */
    interface Case {
      readonly shop: string;
      readonly base: string;
      readonly tag: string;
    }

    async function underPrefix(): Promise<Case> {
      const shop = `https://${prefixed.host}`;
      return { shop, base: shop + prefixed.path, tag: 'G-PREFIX1' };
    }

    async function onSubdomain(): Promise<Case> {
      const domain = 'worker.example';
      const site = await stage.site({
        domains: [{ domain, webTagId: 'GTM-WORKER1', token: 'ct_container0of0worker' }],
        customDomains: [`metrics.${domain}`],
      });
      stage.serve('/', `<title>Shop</title>${DEFAULT_DENIED}${site.snippet({ edgeUrl: site.url.custom })}`);
      return { shop: site.url.shop, base: site.url.custom, tag: 'G-WORKER1' };
    }

    const launch = (): Promise<BrowserContext> =>
      launchChromium({
        ...stage.browser,
        hosts: { [prefixed.host]: `127.0.0.1:${prefixed.port}`, ...stage.browser.hosts },
        thirdPartyCookies: false,
      });

    describe.each([
      ['under the prefix', underPrefix],
      ['on a subdomain', onSubdomain],
    ])('%s', (_where, prepare) => {
      test('count once each, and obey the visitor’s consent', async () => {
        const { shop, base, tag } = await prepare();
        stage.webContainer = () => ({
          googleTag: tag,
          destinations: [],
          serverContainerUrl: base,
          serviceWorker: true,
        });
        await using browser = await launch();
        const { page, errors } = await visit(browser, `${shop}/`);
        const arrived = (event: string) =>
          eventually(async () => {
            const found = (await hits(tag)).filter((hit) => hit.event === event);
            expect(found).not.toEqual([]);
            return found;
          });
        const say = (command: string) => page.evaluate(command);

        // Denied: the hit counts without any id.
        expect((await settled(page))?.gtm).toBe('loaded');
        const [view, ...moreViews] = await arrived('page_view');
        expect(view).toMatchObject({ gcs: 'G100', referrer: expect.stringMatching(WORKER) });
        expect(view?.referrer.startsWith(`${base}/_/`)).toBe(true);
        expect(view?.cookie).not.toContain('_fpid');
        expect(await cookie(browser, '_fpid')).toBeUndefined();

        // Granted: the worker's hits have the id.
        await say(`gtag('consent','update',${ALL_GRANTED})`);
        const id = await eventually(async () => {
          const found = await cookie(browser, '_fpid');
          expect(found?.value).toMatch(/^[0-9a-f]{32}$/);
          return found?.value;
        });
        await say(`gtag('event','purchase')`);
        const [purchase, ...morePurchases] = await arrived('purchase');
        expect(purchase).toMatchObject({ gcs: 'G111', referrer: expect.stringMatching(WORKER) });
        expect(purchase?.cookie).toContain(`_fpid=${id}`);

        // Withdrawn: the same running worker has no id any more.
        await say(`gtag('consent','update',${ALL_DENIED})`);
        await eventually(async () => expect(await cookie(browser, '_fpid')).toBeUndefined());
        await say(`gtag('event','refund')`);
        const [refund, ...moreRefunds] = await arrived('refund');
        expect(refund).toMatchObject({ gcs: 'G100', referrer: expect.stringMatching(WORKER) });
        expect(refund?.cookie).not.toContain('_fpid');

        expect([...moreViews, ...morePurchases, ...moreRefunds]).toEqual([]);
        expect(browser.serviceWorkers().map((worker) => worker.url())).toEqual([
          expect.stringMatching(WORKER),
        ]);
        expect(errors).toEqual([]);
      });
    });
  },
);
