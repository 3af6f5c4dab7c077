import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

const PATH = '/gtw4k2p';
const site = (options: object = {}) =>
  stage.site({
    features: { google_tag_gateway: true },
    modules: { google_tag_gateway: { path: PATH, acknowledged: true, ...options } },
    proxyPaths: ['/*'],
  });

const PEER = {
  'cf-connecting-ip': '203.0.113.7',
  'mf-cf-blob': JSON.stringify({ country: 'US', regionCode: 'CA' }),
};

async function ask(path: string, options = {}, { method = 'GET', headers = {}, body = '' } = {}) {
  const { host } = await site(options);
  stage.upstream.received.length = 0;
  const answer = await stage.send(host, path, {
    method,
    headers: { ...PEER, ...headers },
    ...(method === 'POST' && { body }),
  });
  return { answer, arrived: stage.upstream.received[0] };
}

test.each([
  ['GET', `${PATH}/`],
  ['GET', `${PATH}/3hf8/aX_-%7Etoken?l=dl`],
  ['POST', `${PATH}/ag/g/c?v=2&tid=G-1`],
  ['GET', `${PATH}/as/d/ccm/conversion/1/?x=%2F..%2f`],
  ['POST', `${PATH}/d/ccm/form-data/1`],
  ['GET', `${PATH}/td?id=1`],
  ['GET', `${PATH}/_/service_worker/1/sw.js?path=${PATH}`],
  ['GET', `${PATH}/healthy`],
  ['GET', `${PATH}/?validate_geo=healthy`],
])('%s %s reaches the gateway of the tag as it came', async (method, path) => {
  const { answer, arrived } = await ask(path, { tagId: 'G-ABC1234' }, { method, body: 'en=x' });
  expect(answer.status).toBe(200);
  expect(arrived).toMatchObject({
    method,
    url: `https://g-abc1234.fps.goog${path}`,
    body: method === 'POST' ? 'en=x' : '',
  });
});

test('a slash is added to the path alone; the tag is the domain’s if no other is named', async () => {
  expect((await ask(`${PATH}?id=GTM-X`)).arrived?.url).toMatch(
    /^https:\/\/gtm-abc\d+\.fps\.goog\/gtw4k2p\/\?id=GTM-X$/,
  );
});

const FORGED = {
  'x-forwarded-for': '192.0.2.1',
  'x-forwarded-country': 'FR',
  'x-forwarded-region': 'IDF',
  'x-forwarded-geolocation': 'latlong=1,2',
  'x-gtg-tag-id': 'G-OTHER',
  authorization: 'Basic eDp5',
  cookie: 'session=1; _ga=GA1; _gcl_au=2; _fpid=3',
};

test('Google gets its own cookies and the place as we know it, and nothing that the visitor claims', async () => {
  const { arrived } = await ask(`${PATH}/healthy`, {}, { headers: FORGED });
  expect(arrived?.headers).toMatchObject({
    'x-forwarded-countryregion': 'US-CA',
    'accept-encoding': 'identity',
    cookie: '_ga=GA1; _gcl_au=2',
  });
  for (const name of Object.keys(FORGED).filter((each) => each !== 'cookie')) {
    expect(arrived?.headers).not.toHaveProperty(name);
  }
});

test('Google gets the address only where the site says so', async () => {
  const { arrived } = await ask(`${PATH}/healthy`, { visitorAddress: true });
  expect(arrived?.headers['x-forwarded-for']).toBe('203.0.113.7');
});

test('answers pass as they are: status, redirect and cache', async () => {
  stage.upstream.reply = () => ({
    status: 302,
    headers: { location: 'https://elsewhere.example/', 'cache-control': 'no-store' },
  });
  const { answer } = await ask(`${PATH}/x`);
  stage.upstream.reply = () => ({});
  expect(answer).toMatchObject({
    status: 302,
    headers: { location: 'https://elsewhere.example/', 'cache-control': 'no-store' },
  });
});

test.each([
  ['without the acknowledgement', { acknowledged: undefined }],
  ['with another path than a plain one', { path: '/a/b' }],
])('%s the plugin is off, and the tag server answers', async (_case, options) => {
  const { arrived } = await ask(`${PATH}/x`, options);
  expect(arrived?.url).toContain('-origin.test');
});

test('a path that only begins alike is the tag server’s', async () => {
  expect((await ask(`${PATH}x/healthy`)).arrived?.url).toContain('-origin.test');
});
