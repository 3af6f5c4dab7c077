import { connect, createServer, type Server } from 'node:net';
import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChromium } from '../support/browser/chromium.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { booted, settled, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { FORWARDERS, type ForwarderKind, WORKER_PLACE } from '../support/forwarders/forwarder.ts';
import { type ForwardedShop, startForwardedShop } from '../support/forwarders/shop.ts';

const PAGE = `<script>document.cookie = 'session=s3cret; path=/'</script>`;
/** The browser's address as the shops' servers see it: no other part of the stage has it. */
const VISITOR = '127.0.0.9';
/** The place that the forwarder's own database has for the visitor's address; only the nginx of the tests has one. */
const DATABASE = { country: 'DE', region: 'BE' };
/** The place that each server states, and what the web container's defaults are there. */
const PLACES: Partial<
  Record<ForwarderKind, { place: string; gclb: string[]; ad: string; analytics: string }>
> = {
  nginx: { place: 'DE-BE', gclb: ['DE', 'DEBE'], ad: 'denied', analytics: 'denied' },
  cloudflareWorker: {
    place: `${WORKER_PLACE.country}-${WORKER_PLACE.regionCode}`,
    gclb: ['US', 'USCA'],
    ad: 'denied',
    analytics: 'granted',
  },
};

/** Forwards connections to a server on 127.0.0.1, from the visitor's address. */
async function startVisitorsNetwork(port: number): Promise<Server> {
  const network = createServer((socket) => {
    const onward = connect({ host: '127.0.0.1', port, localAddress: VISITOR });
    socket.pipe(onward).pipe(socket);
    socket.on('error', () => onward.destroy());
    onward.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => network.listen(0, '127.0.0.1', resolve));
  return network;
}

describeWith(['chromium', 'nginx', 'apache', 'caddy', 'haproxy', 'mount'], 'pages behind a forwarder', () => {
  let stage: BrowserStage;
  const shops = new Map<ForwarderKind, ForwardedShop>();
  const networks: Server[] = [];
  const hosts: Record<string, string> = {};
  beforeAll(async () => {
    stage = await startBrowserStage();
    for (const kind of FORWARDERS) {
      const place = kind === 'nginx' ? { place: DATABASE } : {};
      const shop = await startForwardedShop(stage, kind, { page: PAGE, ...place });
      const network = await startVisitorsNetwork(shop.port);
      const address = network.address();
      if (address === null || typeof address === 'string') throw new Error('it doesn’t listen on TCP');
      shops.set(kind, shop);
      networks.push(network);
      hosts[shop.host] = `127.0.0.1:${address.port}`;
    }
    stage.webContainer = (id) => {
      const shop = [...shops.values()].find(({ site }) => site.manifest.domains[0]?.webTagId === id);
      return {
        googleTag: 'G-SHOP1234',
        destinations: [],
        serverContainerUrl: shop === undefined ? null : `https://${shop.host}${shop.path}`,
        consentDefaults: [
          { ad_storage: 'granted', analytics_storage: 'granted' },
          { region: ['DE'], ad_storage: 'denied', analytics_storage: 'denied' },
          { region: ['US-CA'], ad_storage: 'denied' },
        ],
      };
    };
  });
  afterAll(async () => {
    for (const network of networks) network.close();
    for (const shop of shops.values()) await shop.close();
    await stage.close();
  });

  describe.each([
    ['blocked', false],
    ['allowed', true],
  ])('with third-party cookies %s', (_what, thirdPartyCookies) => {
    let browser: BrowserContext;
    beforeAll(async () => {
      const all = { ...hosts, ...stage.browser.hosts };
      browser = await launchChromium({ ...stage.browser, hosts: all, thirdPartyCookies });
    });
    afterAll(() => browser.close());

    test.each(FORWARDERS)(
      '%s: the edge is reached at the page’s host, with cookies, address and place',
      async (kind) => {
        const shop = shops.get(kind);
        if (shop === undefined) throw new Error(`${kind} was not started`);
        const base = `https://${shop.host}${shop.path}`;
        const before = (await shop.arrived('/g/collect')).length;
        const { page, asked, errors } = await visit(browser, `https://${shop.host}/`);
        expect((await settled(page))?.gtm).toBe('loaded');
        const answer = await booted(page);
        expect(answer?.profile?.id).toMatch(/./);
        // The Google tag's own hit.
        const arrived = await eventually(async () => {
          const hits = await shop.arrived('/g/collect');
          expect(hits).toHaveLength(before + 1);
          return hits.at(-1);
        });

        expect(errors).toEqual([]);
        // Only the web container itself names another host.
        const others = asked.filter((url) => new URL(url).host !== shop.host);
        expect(others).toEqual([expect.stringMatching(/^https:\/\/www\.googletagmanager\.com\/gtag\/js\?/)]);
        const paths = asked.map((url) => url.replace(base, '').replace(/\?.*/, ''));
        expect(paths).toEqual(
          expect.arrayContaining([
            expect.stringMatching(/^\/l\/lt_/),
            '/boot',
            expect.stringMatching(/^\/c\/ct_/),
            '/g/collect',
          ]),
        );

        const [domain] = shop.site.manifest.domains;
        const cookies = await browser.cookies(`https://${shop.host}/`);
        expect(cookies.find(({ name }) => name === '_fpid')).toMatchObject({
          domain: `.${domain?.domain}`,
          value: answer?.profile?.id,
        });
        expect(arrived?.headers.cookie).toContain(`_fpid=${answer?.profile?.id}`);
        expect(arrived?.headers.cookie).not.toContain('s3cret');
        expect(arrived?.headers).toMatchObject({ 'x-forwarded-for': VISITOR, 'x-forwarded-host': shop.host });

        const expected = PLACES[kind];
        const gclb = ['x-gclb-country', 'x-gclb-region'].map((name) => arrived?.headers[name]);
        expect(gclb).toEqual(expected?.gclb ?? [undefined, undefined]);
        const container: { place?: unknown; consent?: unknown } = await page.evaluate(
          `google_tag_manager[${JSON.stringify(domain?.webTagId)}]`,
        );
        expect(container.consent).toEqual({
          ad_storage: expected?.ad ?? 'granted',
          analytics_storage: expected?.analytics ?? 'granted',
        });
        expect(container.place).toBe(expected?.place ?? null);
      },
    );
  });
});
