import type { AddressInfo } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildShop } from '../../sites/demo/shop/app.ts';
import { launchChromium } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

/** An edge as the page sees it: the loader's globals, gtm.js, and collected events. */
function buildEdge(collected: URLSearchParams[]): FastifyInstance {
  const edge = fastify();
  edge.get('/l/lt_shop.js', (_request, reply) =>
    reply.type('application/javascript').send(`
      window.tagyard = {
        edge: new URL(document.currentScript.src).origin, gtm: 'edge', restored: ['_ga'],
        session: { id: 'session-1', isNew: true }, profile: { id: 'profile-1', isNew: false },
      };
      const tag = document.createElement('script');
      tag.src = new URL('/c/ct_shop.js', document.currentScript.src).href;
      document.head.append(tag);`),
  );
  edge.get('/c/ct_shop.js', (_request, reply) =>
    reply
      .type('application/javascript')
      .send(`window.dataLayer = [{ event: 'gtm.js' }]; window.google_tag_manager = { 'GTM-DEMO1': {} };`),
  );
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
  const edge = buildEdge(collected);
  let snippet = '';
  const shop = buildShop({
    site: () => ({ snippet, edgeUrl: `http://demo.tagyard.localhost:${portOf(edge)}` }),
  });

  beforeAll(async () => {
    await Promise.all([
      edge.listen({ port: 0, host: '127.0.0.1' }),
      shop.listen({ port: 0, host: '127.0.0.1' }),
    ]);
  });
  afterAll(() => Promise.all([edge.close(), shop.close()]));

  test('shows the loader’s state and the edge’s answer to an event', async () => {
    snippet = `<script async src="http://demo.tagyard.localhost:${portOf(edge)}/l/lt_shop.js"></script>`;
    await using browser = await launchChromium();
    const page = await browser.newPage();
    const refused: string[] = [];
    page.on('console', (message) => message.type() === 'error' && refused.push(message.text()));

    await page.goto(`http://shop.localhost:${portOf(shop)}/`);
    await eventually(async () => expect(await cell(page, 'gtm')).toBe('ran for GTM-DEMO1, from the edge'));
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
    await eventually(async () =>
      expect(await cell(page, 'loader')).toMatch(/^not loaded yet: .*lt_gone\.js$/),
    );
    await page.getByRole('button', { name: 'Add to basket' }).click();
    expect(await cell(page, 'basket')).toBe('1');
    expect(await cell(page, 'gtm')).toBe('has not run');
  });
});
