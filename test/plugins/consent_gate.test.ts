import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SiteOptions, type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

interface Asked {
  readonly options?: object;
  readonly alsoAnonymized?: true;
  readonly consent?: SiteOptions['consent'];
  readonly path?: string;
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

async function ask({
  options = {},
  alsoAnonymized,
  consent = 'required',
  path = '/g/collect?v=2',
  ...sending
}: Asked) {
  const site = await stage.site({
    features: { consent_gate: true, ...(alsoAnonymized && { anonymizer: true }) },
    modules: { consent_gate: { ...options } },
    consent,
    proxyPaths: ['/data', '/webhooks/*'],
  });
  stage.upstream.received.length = 0;
  await stage.seen();
  const headers = { 'cf-connecting-ip': '203.0.113.7', ...sending.headers };
  const { status } = await stage.send(site.host, path, { method: 'POST', ...sending, headers });
  const { records } = await stage.seen();
  return { status, arrived: stage.upstream.received[0], counters: records[0]?.counters };
}

const DROPPED = { status: 204, arrived: undefined, counters: { 'consent_gate.dropped': 1 } };

test.each<[name: string, asked: Asked]>([
  ['no statement where consent is required', {}],
  ['a denial', { path: '/g/collect?gcs=G100', consent: 'opt_out' }],
  ['a denial of analytics only', { path: '/g/collect?gcs=G110' }],
  ['a denial by gcd', { path: '/g/collect?gcd=13p3p3p2p1', consent: 'opt_out' }],
  ['Sec-GPC', { path: '/g/collect?gcs=G111', headers: { 'sec-gpc': '1' } }],
  ['ads denied, where ads need it', { path: '/g/collect?gcs=G101', options: { purpose: 'ads' } }],
  ['both denied, where any is enough', { path: '/g/collect?gcs=G100', options: { purpose: 'any' } }],
  ['a hit by GET', { path: '/g/collect?gcs=G100', method: 'GET' }],
  ['a POST to a path of the site', { path: '/data?v=1' }],
])('%s: the hit is not passed on', async (_name, asked) => {
  expect(await ask(asked)).toEqual(DROPPED);
});

test.each<[name: string, asked: Asked]>([
  ['no statement where consent is opt-out', { consent: 'opt_out' }],
  ['a grant', { path: '/g/collect?gcs=G101' }],
  ['one of both, where any is enough', { path: '/g/collect?gcs=G110', options: { purpose: 'any' } }],
  ['an exception', { path: '/webhooks/orders', options: { except: ['/webhooks/orders'] } }],
  ['a script', { path: '/gtm.js?id=GTM-X', method: 'GET' }],
  ['a debug session', { path: '/gtm/debug' }],
])('%s: the request is passed on unchanged', async (_name, asked) => {
  const { status, arrived, counters } = await ask({ ...asked, headers: { cookie: '_ga=1' } });
  expect(status).toBe(200);
  expect(arrived?.headers).toMatchObject({ 'x-forwarded-for': '203.0.113.7', cookie: '_ga=1' });
  expect(counters).toEqual({});
});

test('a stripped hit has nothing of what the page lists', async () => {
  const { arrived, counters } = await ask({
    options: { action: 'strip' },
    path: '/g/collect?v=2&cid=1.2&dl=https%3A%2F%2Fshop.example%2Fa%3Fgclid%3Dx%23f&en=page_view&gclid=x',
    body: 'en=a&uid=me\nen=b&sid=9&epn.value=3',
    headers: { cookie: '_ga=1', referer: 'https://shop.example/a?gclid=x' },
  });
  expect(new URL(arrived?.url ?? '').search).toBe('?v=2&dl=https%3A%2F%2Fshop.example%2Fa&en=page_view');
  expect(arrived?.body).toBe('en=a\nen=b&epn.value=3');
  for (const name of ['cookie', 'referer', 'x-forwarded-for'])
    expect(arrived?.headers).not.toHaveProperty(name);
  expect(counters).toEqual({ 'consent_gate.stripped': 1 });
});

test('a stripped hit has no address either if the anonymizer would cut it', async () => {
  const { arrived } = await ask({ options: { action: 'strip' }, alsoAnonymized: true });
  expect(arrived?.method).toBe('POST');
  expect(arrived?.headers).not.toHaveProperty('x-forwarded-for');
});
