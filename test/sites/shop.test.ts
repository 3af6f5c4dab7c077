import { describe, expect, test } from 'vitest';
import { buildShop, type ShopSite } from '../../sites/local/demo/shop/app.ts';

const EDGE = 'http://shop.tagyard.localhost:8787';
const SNIPPET = `<script src="${EDGE}/l/lt_a.js"></script>`;
const shop = (site: Partial<ShopSite> = {}) =>
  buildShop({ site: () => ({ snippet: SNIPPET, edgeUrl: EDGE, ...site }) });

describe('the demo shop', () => {
  test.each([
    ['/', 200, 'Made slowly'],
    ['/products/tide-mug', 200, 'Tide mug'],
    ['/products/anvil', 404, 'There is no such page'],
    ['/elsewhere', 404, 'There is no such page'],
  ])('%s answers %i', async (url, status, text) => {
    const answer = await shop().inject(url);
    expect(answer.statusCode).toBe(status);
    expect(answer.body).toContain(text);
  });

  test('allows only its own scripts and the snippet, by a new nonce for each page', async () => {
    const app = shop({ snippet: '<script>one()</script><SCRIPT src="/two"></SCRIPT>' });
    const [first, second] = [await app.inject('/'), await app.inject('/')];
    const nonce = /'nonce-([\w-]{22})'/.exec(String(first.headers['content-security-policy']))?.[1];
    const scripts = first.body.match(/<script[^>]*>/gi) ?? [];
    expect(scripts).toHaveLength(4);
    expect(scripts.filter((tag) => tag.includes(`nonce="${nonce}"`))).toHaveLength(4);
    expect(second.headers['content-security-policy']).not.toBe(first.headers['content-security-policy']);
  });

  test('loads from no host but its own and the edge', async () => {
    const { headers, body } = await shop().inject('/');
    const addresses = body.match(/(?:src|href)="https?:[^"]+/g) ?? [];
    expect(addresses).toEqual([`src="${EDGE}/l/lt_a.js`]);
    expect(headers['content-security-policy']).toContain(`connect-src 'self' ${EDGE};`);
  });

  test('serves its pages with the error when the site can’t be read', async () => {
    const site = () => Promise.reject(new Error('the API answered 502 "<bad gateway>"'));
    const answer = await buildShop({ site }).inject('/');
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toContain('data-problem="the API answered 502 &quot;&lt;bad gateway&gt;&quot;"');
  });
});
