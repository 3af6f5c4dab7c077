import { createServer, type Server, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { webTag } from '../support/browser/edge-page.ts';
import { describeWith } from '../support/components.ts';
import { forwarderToken, prefixed, stated } from '../support/edge/forwarder.ts';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import { eventually } from '../support/eventually.ts';

const PREFIX = '/m3trics1';
const TOKEN = forwarderToken('shop');

/** The vendor's snippet as plugins of shops print it: an address, then a query. */
const snippet = (address: string, query: string, layer: string, id: string) =>
  `<script>(function(w,d,s,l,i){w[l]=w[l]||[];w[l].push({'gtm.start':new Date().getTime(),event:'gtm.js'});
var f=d.getElementsByTagName(s)[0],j=d.createElement(s),dl=l!='dataLayer'?'&l='+l:'';j.async=true;
j.src='${address}'+${query};f.parentNode.insertBefore(j,f)})(window,document,'script','${layer}','${id}')</script>`;

describeWith('chromium', 'a page whose shop plugin loads the script from its own origin', () => {
  let stage: Stage;
  let site: StagedSite;
  let server: Server;
  let base: string;
  let chromium: Visitors;
  let html = '';
  beforeAll(async () => {
    stage = await startStage();
    stage.upstream.reply = (asked) => (asked.url.includes('vendor.test') ? webTag(asked) : {});
    const sameOrigin = { ...prefixed(PREFIX, TOKEN), loader: 'lt_loader0token00001' };
    site = await stage.site({ domains: [{ domain: 'shop.localhost', cookieDomain: null, sameOrigin }] });
    // The pages' own server, which forwards the prefix.
    server = createServer((request, response) => {
      if (!request.url?.startsWith(PREFIX)) {
        response
          .writeHead(200, { 'content-type': 'text/html' })
          .end(`<!doctype html><title>Shop</title>${html}`);
        return;
      }
      const { host = '', ...headers } = request.headers;
      const own = { ...headers, ...stated(TOKEN, host), 'x-tagyard-scheme': 'http', host: site.host };
      const forwarded = { port: stage.port, path: request.url, method: request.method, headers: own };
      request.pipe(
        send({ host: '127.0.0.1', ...forwarded }, (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo; // a TCP server's address is never a string
    base = `http://shop.localhost:${port}`;
    chromium = await startChromium({ hosts: {} });
  });
  afterAll(async () => {
    await chromium?.close();
    server?.closeAllConnections();
    server?.close();
    await stage?.close();
  });

  test.each([
    ['GTM4WP', '//{host}{prefix}/gtm.js', `'?id='+i+dl`, 'dataLayer'],
    ['GTM4WP with a data layer and no id', '//{host}{prefix}/gtm.js', `'?'+dl`, 'shopLayer'],
    ['hm-gtm', '{base}{prefix}/gtm.js', `'?id='+i+dl`, 'hmLayer'],
    ['GoogleTagManager2', '{base}{prefix}', `'/gtm.js?id='+i+dl`, 'dataLayer'],
    ['DtgsGoogleTagManagerSw6', '{base}{prefix}/shop/gtm.js', `'?id='+i+dl`, 'dataLayer'],
    ['gtm-server-side-magento-module', '{base}{prefix}/gtm.js', `'?'+i`, 'dataLayer'],
  ])(
    '%s: the web tag runs once, and the page contacts no other origin',
    async (_plugin, address, query, layer) => {
      const filled = address
        .replace('{host}', new URL(base).host)
        .replace('{base}', base)
        .replace('{prefix}', PREFIX);
      html = snippet(filled, query, layer, site.domains[0]?.webTagId ?? '');
      await using browser = await chromium.newContext();
      const page = await browser.newPage();
      const asked: URL[] = [];
      page.on('request', (request) => asked.push(new URL(request.url())));
      const marked = page.waitForResponse((response) => response.url().endsWith('/mark-session-detection'));
      await page.goto(base);
      await marked;
      expect(await page.evaluate('[window.ran, window.tagyard.gtm]')).toEqual([1, 'loaded']);
      const pushed = `${layer}.filter((entry) => entry['gtm.start']).length`;
      expect(await page.evaluate(pushed)).toBe(1);
      expect(new Set(asked.map(({ origin }) => origin))).toEqual(new Set([base]));
      const script = asked.find(({ pathname }) => pathname.startsWith(`${PREFIX}/c/`));
      expect(script?.searchParams.get('l')).toBe(layer === 'dataLayer' ? null : layer);
      // Besides these two, the detection sets a cookie for a moment.
      await eventually(async () => {
        const names = (await browser.cookies(base)).map(({ name }) => name);
        expect(names.sort()).toEqual(['_fpid', 'tagyard_session']);
      });
    },
  );
});
