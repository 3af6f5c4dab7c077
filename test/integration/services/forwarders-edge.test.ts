import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BrowserStage, startBrowserStage } from '../../support/browser/stage.ts';
import { describeWith } from '../../support/components.ts';
import { FORWARDERS, WORKER_PLACE } from '../../support/forwarders/forwarder.ts';
import { type ForwardedShop, startForwardedShop } from '../../support/forwarders/shop.ts';
import { type Ask, ask } from '../../support/proxy/proxy.ts';

/** An address that is not the forwarder's. */
const VISITOR = '127.0.0.9';
/** The place that the forwarder's own database has for the visitor's address. Only the tests' nginx has a database. */
const DATABASE = { country: 'DE', region: 'BE' };

describeWith(['nginx', 'apache', 'caddy', 'haproxy', 'mount'], 'the edge behind a forwarder', () => {
  let stage: BrowserStage;
  beforeAll(async () => {
    stage = await startBrowserStage();
  });
  afterAll(() => stage.close());

  describe.each(FORWARDERS)('%s', (kind) => {
    let shop: ForwardedShop;
    let base: string;
    beforeAll(async () => {
      shop = await startForwardedShop(stage, kind, {
        manifest: { modules: { server_proxy: { passthrough: true } } },
        ...(kind === 'nginx' ? { place: DATABASE } : {}),
      });
      base = `https://${shop.host}:${shop.port}${shop.path}`;
    });
    afterAll(() => shop.close());

    const visit = (path: string, asked: Partial<Ask> = {}) =>
      ask(
        { address: '127.0.0.1', httpPort: 0, tlsPort: shop.port },
        { host: shop.host, path: shop.path + path, from: VISITOR, ...asked },
      );
    const loader = () => `/l/${shop.site.manifest.loaderToken}.js`;
    const boot = (headers: Record<string, string> = {}) =>
      visit('/boot', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          origin: `https://${shop.host}:${shop.port}`,
          ...headers,
        },
        body: JSON.stringify({ loader: shop.site.manifest.loaderToken, url: `https://${shop.host}/` }),
      });

    test('serves the loader, the bootstrap and the script with URLs under the path', async () => {
      const script = await visit(loader());
      expect(script.status, script.body).toBe(200);
      expect(script.body).toContain(base);
      const booted = await boot();
      expect(booted.status, booted.body).toBe(200);
      const { container } = JSON.parse(booted.body);
      expect(container.scriptUrl).toBe(`${base}/c/${container.token}.js`);
      const tag = await visit(container.scriptUrl.slice(base.length));
      expect([tag.status, tag.headers['content-type']]).toEqual([200, expect.stringMatching(/javascript/)]);
    });

    test('sets cookies of the registrable domain', async () => {
      const cookies = (await boot()).headers['set-cookie'] ?? [];
      const [domain] = shop.site.manifest.domains.map((entry) => entry.domain);
      expect(cookies.find((cookie) => cookie.startsWith('_fpid='))).toMatch(
        new RegExp(`; Domain=${domain?.replaceAll('.', '\\.')}(?:;|$)`, 'i'),
      );
    });

    test('passes a hit to the tag server with the visitor’s address, without the shop’s cookies and credentials', async () => {
      const path = `/g/collect?v=2&tid=G-SHOP&en=${kind}`;
      const hit = await visit(path, {
        method: 'POST',
        headers: {
          authorization: 'Basic s3cret',
          cookie: '_ga=GA1.1.1.2; session=s3cret; _fpid=00000000000000000000000000000000',
          'x-forwarded-for': '192.0.2.1',
        },
      });
      expect(hit.status).toBeLessThan(300);
      const [arrived] = await shop.arrived('/g/collect');
      expect(arrived?.headers).toMatchObject({ 'x-forwarded-for': VISITOR });
      expect(arrived?.headers.cookie).toContain('_ga=GA1.1.1.2');
      expect(JSON.stringify(arrived?.headers)).not.toMatch(/s3cret|ft_|x-tagyard-forwarder-token/);
    });

    test('passes the visitor’s place on if the forwarder knows it, and never one that the visitor claims', async () => {
      const hit = await visit('/g/collect?v=2&tid=G-SHOP', {
        headers: {
          'x-test-mark': `place ${kind}`,
          'x-tagyard-country': 'KP',
          'x-tagyard-region': '01',
          'x-gclb-country': 'KP',
          'x-geo-country': 'KP',
        },
      });
      expect(hit.status).toBeLessThan(300);
      const [arrived, ...others] = await shop.arrivedWith('x-test-mark', `place ${kind}`);
      expect(others).toEqual([]);
      const place = ['x-gclb-country', 'x-gclb-region', 'x-geo-country', 'x-geo-region'].map(
        (name) => arrived?.headers[name],
      );
      const expected: Partial<Record<typeof kind, string[]>> = {
        nginx: [DATABASE.country, 'DEBE', DATABASE.country, DATABASE.region],
        cloudflareWorker: [WORKER_PLACE.country, 'USCA', WORKER_PLACE.country, WORKER_PLACE.regionCode],
      };
      expect(place).toEqual(expected[kind] ?? [undefined, undefined, undefined, undefined]);
    });

    test.each(['/%6d3trics1/g/collect', '//m3trics1/g/collect', '/x/..%2Fm3trics1/g/collect'])(
      'doesn’t pass another spelling of the prefix to the tag server, which would answer 400: %s',
      async (path) => {
        const mark = `${kind} ${path}`;
        const { status, body } = await visit('', {
          path,
          headers: { 'x-test-mark': mark, cookie: 'session=s3cret' },
        });
        const hits = await shop.arrivedWith('x-test-mark', mark);
        // Apache normalises some of them to the prefix itself: those are ordinary hits.
        expect(status).toBe(hits.length === 0 ? 404 : 200);
        for (const hit of hits) {
          expect(hit).toMatchObject({ path: '/g/collect', headers: { 'x-forwarded-for': VISITOR } });
          expect(JSON.stringify(hit)).not.toContain('s3cret');
        }
        // nginx decodes the path to choose a location, and passes it on as it came.
        if (kind === 'nginx') expect(JSON.parse(body)).toMatchObject({ code: 'not_found' });
      },
    );

    test('ignores the forwarder’s headers if the visitor sends them', async () => {
      const before = (await shop.arrived('/g/collect')).length;
      await visit('/g/collect?v=2&tid=G-SHOP', {
        headers: { 'x-tagyard-visitor': '192.0.2.66', 'x-tagyard-host': 'evil.example' },
      });
      const after = await shop.arrived('/g/collect');
      expect(after).toHaveLength(before + 1);
      expect(after.at(-1)?.headers).toMatchObject({
        'x-forwarded-for': VISITOR,
        'x-forwarded-host': `${shop.host}:${shop.port}`,
      });
    });
  });
});
