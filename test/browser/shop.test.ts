import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { renderSnippet } from '../../plugins/custom_loader/snippet.ts';
import { buildShop } from '../../sites/local/demo/shop/app.ts';
import { launchChromium, startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const LOADER = `
  window.tagyard = Object.assign(window.tagyard ?? {}, {
    edge: new URL('..', document.currentScript.src).href, gtm: 'edge', restored: ['_ga'],
    session: { id: 'session-1', isNew: true }, profile: { id: 'profile-1', isNew: false },
  });
  const tag = document.createElement('script');
  tag.src = new URL('../c/ct_shop.js', document.currentScript.src).href;
  tag.onload = () => { window.tagyard.gtm = 'loaded'; };
  document.head.append(tag);`;
const TAG = `(window.dataLayer ??= []).push({ event: 'gtm.js' });
  window.google_tag_manager = { 'GTM-DEMO1': {} };`;

/** The loader and the tag manager's script, below a prefix. */
function serveScripts(app: FastifyInstance, prefix = ''): void {
  for (const [path, script] of [
    ['/l/lt_shop.js', LOADER],
    ['/c/ct_shop.js', TAG],
  ]) {
    app.get(`${prefix}${path}`, (_request, reply) =>
      reply.type('application/javascript').header('access-control-allow-origin', '*').send(script),
    );
  }
}

/**
 * An edge as the page sees it: the loader's globals, gtm.js, and collected events. `bots`: each bootstrap's user agent
 * and body.
 */
function buildEdge(collected: URLSearchParams[], bots: unknown[]): FastifyInstance {
  const edge = fastify();
  serveScripts(edge);
  edge.post('/boot', ({ headers, body }) => {
    bots.push([headers['user-agent'], JSON.parse(String(body))]);
    return { profile: null };
  });
  edge.post('/g/collect', (request, reply) => {
    collected.push(new URL(request.url, 'http://edge').searchParams);
    return reply
      .headers({
        'access-control-allow-origin': request.headers.origin ?? '',
        'access-control-allow-credentials': 'true',
      })
      .code(204)
      .send();
  });
  return edge;
}

const portOf = (app: FastifyInstance) => (app.server.address() as AddressInfo).port; // listening on TCP, so an AddressInfo

const cell = (page: Page, id: string) => page.locator(`#${id}`).textContent();

describeWith('chromium', 'the demo shop in a browser', () => {
  const collected: URLSearchParams[] = [];
  const bots: unknown[] = [];
  const edge = buildEdge(collected, bots);
  const reached: string[] = [];
  edge.addHook('onRequest', async ({ url }) => void reached.push(url));
  const vendor = fastify();
  vendor.get('/gtm.js', (_request, reply) => reply.type('application/javascript').send(TAG));
  const edgeUrl = () => `http://demo.tagyard.localhost:${portOf(edge)}`;
  const vendorUrl = () => `http://vendor.localhost:${portOf(vendor)}`;
  let snippet = '';
  const shop = buildShop({
    site: () => ({
      snippet,
      edgeUrl: edgeUrl(),
      vendorUrl: vendorUrl(),
      consoleUrl: 'http://127.0.0.1:8082/console/containers/c1',
    }),
  });
  serveScripts(shop, '/m3trics');
  const snippetOf = (base: string, vendorAt = vendorUrl()) =>
    renderSnippet({
      edgeUrl: base,
      loaderToken: 'lt_shop',
      webTagId: 'GTM-DEMO1',
      vendorUrl: vendorAt,
    });
  const home = () => `http://shop.localhost:${portOf(shop)}/`;
  const shows = (page: Page, id: string, text: string | RegExp) =>
    eventually(async () => expect(await cell(page, id)).toMatch(text));

  let visitors: Visitors;
  beforeAll(async () => {
    visitors = await startChromium();
    await Promise.all([edge, shop, vendor].map((app) => app.listen({ port: 0, host: '127.0.0.1' })));
  });
  afterAll(() => Promise.all([visitors, edge, shop, vendor].map((each) => each.close())));

  test('shows the loader’s state and the edge’s answer to an event', async () => {
    snippet = `<script async src="http://demo.tagyard.localhost:${portOf(edge)}/l/lt_shop.js"></script>`;
    await using browser = await visitors.newContext();
    const page = await browser.newPage();
    const refused: string[] = [];
    page.on('console', (message) => message.type() === 'error' && refused.push(message.text()));

    await page.goto(`http://shop.localhost:${portOf(shop)}/`);
    await eventually(async () =>
      expect(await cell(page, 'gtm')).toBe(
        `ran for GTM-DEMO1, from the edge demo.tagyard.localhost:${portOf(edge)}`,
      ),
    );
    expect(await cell(page, 'loader')).toBe(`from the edge demo.tagyard.localhost:${portOf(edge)}`);
    expect(await page.getByRole('link', { name: 'in the console' }).getAttribute('href')).toBe(
      'http://127.0.0.1:8082/console/containers/c1',
    );
    expect(await cell(page, 'session')).toBe('session-1 (new)');
    expect(await cell(page, 'profile')).toBe('profile-1 (returning)');
    expect(await cell(page, 'restored')).toBe('_ga');

    await page.getByRole('navigation').getByText('Marsh jug').click();
    await page.getByRole('heading', { name: 'Marsh jug' }).waitFor();
    await page.getByRole('button', { name: 'Add to basket' }).click();
    await eventually(async () => expect(await cell(page, 'event')).toMatch(/^add_to_cart: 204 from demo\./));
    expect(await cell(page, 'basket')).toBe('1');
    expect(collected.map((query) => [query.get('en'), query.get('tid'), query.get('cid')])).toEqual([
      ['add_to_cart', 'G-DEMO', 'profile-1'],
    ]);
    expect(refused).toEqual([]);
  });

  test('works without the loader, and reports that', async () => {
    snippet = `<script async src="http://demo.tagyard.localhost:${portOf(edge)}/l/lt_gone.js"></script>`;
    await using browser = await launchChromium({ colorScheme: 'dark' });
    const page = await browser.newPage();
    await page.goto(`http://shop.localhost:${portOf(shop)}/products/tide-mug`);
    await eventually(async () => expect(await cell(page, 'loader')).toMatch(/^failed: .*lt_gone\.js$/));
    await page.getByRole('button', { name: 'Add to basket' }).click();
    expect(await cell(page, 'basket')).toBe('1');
    expect(await cell(page, 'gtm')).toBe('nothing has loaded');
  });

  test('says that the vendor served the script while the visitor blocks the edge', async () => {
    snippet = snippetOf(edgeUrl());
    await using browser = await visitors.newContext();
    const page = await browser.newPage();
    await page.goto(home());
    await shows(page, 'gtm', /^ran for GTM-DEMO1, from the edge demo/);
    reached.length = 0;
    await page.getByRole('button', { name: 'Block the edge' }).click();
    await shows(
      page,
      'gtm',
      /^ran for GTM-DEMO1, from the vendor vendor\.localhost:\d+, as the edge did not/,
    );
    expect(await cell(page, 'loader')).toBe(`blocked: ${edgeUrl()}/l/lt_shop.js`);
    await page.getByRole('button', { name: 'Add to basket' }).first().click();
    await shows(page, 'event', 'add_to_cart not sent: the edge is blocked');
    expect(await cell(page, 'profile')).toBe('none: the loader did not arrive');
    expect(reached).toEqual([]);
    await page.screenshot({ path: 'test/screenshots/shop-blocked.png', fullPage: true });
    await page.getByRole('button', { name: 'Block the edge', pressed: true }).click();
    await shows(page, 'gtm', /^ran for GTM-DEMO1, from the edge demo/);
  });

  test('shows whether the script came from the shop’s own origin, or from nowhere', async () => {
    snippet = snippetOf('/m3trics');
    await using browser = await visitors.newContext();
    const page = await browser.newPage();
    await page.goto(home());
    await shows(page, 'gtm', /^ran for GTM-DEMO1, from this shop’s own origin$/);
    expect(await cell(page, 'loader')).toBe('from this shop’s own origin');
    // Port 9 accepts no connection.
    snippet = snippetOf(edgeUrl().replace(/\d+$/, '9'), 'http://vendor.localhost:9');
    await page.goto(home());
    await shows(page, 'gtm', /^nothing: neither the edge nor the vendor served it$/);
  });

  test('keeps a refusal and a grant, and passes both to the tags', async () => {
    snippet = snippetOf(edgeUrl());
    await using browser = await visitors.newContext();
    const page = await browser.newPage();
    const heard = () =>
      page.evaluate(`[...dataLayer].flatMap(({ 0: command, 1: kind, 2: choices }) =>
        command === 'consent' ? [[kind, choices.ad_storage, choices.analytics_storage]] : [])`);
    await page.goto(home());
    await shows(page, 'consent', 'no choice yet');
    expect(await heard()).toEqual([]);
    await page.getByRole('button', { name: 'Refuse consent' }).click();
    await shows(page, 'consent', 'denied');
    expect(await heard()).toEqual([['update', 'denied', 'denied']]);
    await page.reload();
    await page.getByRole('button', { name: 'Refuse consent', pressed: true }).waitFor();
    expect(await heard()).toEqual([['update', 'denied', 'denied']]);
    await page.getByRole('button', { name: 'Grant consent' }).click();
    await shows(page, 'consent', 'granted');
    expect(await heard()).toContainEqual(['update', 'granted', 'granted']);
  });

  test('deletes every cookie of the visitor on request, including those that scripts can’t read', async () => {
    snippet = snippetOf(edgeUrl());
    await using browser = await visitors.newContext();
    const page = await browser.newPage();
    const url = home();
    const names = async () => (await browser.cookies(url)).map(({ name }) => name).sort();
    await browser.addCookies([
      { name: 'FPID', value: 'a', domain: '.shop.localhost', path: '/', httpOnly: true, secure: true },
      { name: '_ga', value: 'b', domain: 'shop.localhost', path: '/' },
    ]);
    await page.goto(url);
    await page.getByRole('button', { name: 'Grant consent' }).click();
    expect(await names()).toEqual(['FPID', '_ga', 'shop_consent']);
    await page.getByRole('button', { name: 'Lose the cookies' }).click();
    await eventually(async () => expect(await names()).toEqual([]));
    await shows(page, 'consent', 'no choice yet');
  });

  test('sends a bootstrap with a crawler’s user agent on request', async () => {
    snippet = snippetOf(edgeUrl());
    await using browser = await visitors.newContext();
    const page = await browser.newPage();
    await page.goto(home());
    bots.length = 0;
    await page.getByRole('button', { name: 'Visit as a bot' }).click();
    await shows(page, 'outcome', 'As Googlebot: the edge answered 200, and keeps nothing of the visit.');
    expect(bots).toEqual([
      [
        expect.stringContaining('Googlebot/2.1'),
        { loader: 'lt_shop', url: home().slice(0, -1), consent: {} },
      ],
    ]);
  });
});
