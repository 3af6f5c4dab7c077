import { afterAll, beforeAll, expect, test } from 'vitest';
import { HOP_SECRET, type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

const hit = async (cf: object, headers: Record<string, string> = {}, features = { geo_headers: true }) => {
  const site = await stage.site({ features });
  stage.upstream.received.length = 0;
  // A header of Node's client has ASCII only.
  const blob = JSON.stringify(cf).replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const peer = { 'cf-connecting-ip': '203.0.113.7', 'mf-cf-blob': blob };
  await stage.send(site.host, '/g/collect?v=2', { headers: { ...peer, 'x-geo-city': 'Paris', ...headers } });
  return stage.upstream.received[0]?.headers;
};

test.each([
  ['Berlin', 'Berlin'],
  ['München', 'M%C3%BCnchen'],
  ['100%', '100%25'],
  ['東京', '%E6%9D%B1%E4%BA%AC'],
])('the tag server gets the city %s', async (city, told) => {
  expect(await hit({ country: 'DE', regionCode: 'BE', city })).toMatchObject({
    'x-geo-country': 'DE',
    'x-geo-region': 'BE',
    'x-geo-city': told,
  });
});

test.each([
  ['Cloudflare knows none', { country: 'DE' }, {}],
  ['it is too long', { country: 'DE', city: 'x'.repeat(101) }, {}],
  ['the country is unknown', { country: 'XX', city: 'Berlin' }, {}],
  [
    'Cloudflare’s peer is our proxy',
    { country: 'FI', city: 'Helsinki' },
    { 'x-tagyard-hop-secret': HOP_SECRET, 'x-forwarded-for': '203.0.113.8' },
  ],
])('no city is told if %s', async (_case, cf, headers) => {
  expect(await hit(cf, headers)).not.toHaveProperty('x-geo-city');
});

test('a site without the feature tells none', async () => {
  const headers = await hit({ country: 'DE', city: 'Berlin' }, {}, { geo_headers: false });
  expect(headers).not.toHaveProperty('x-geo-city');
});
