import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
beforeEach(async () => {
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => ({});
  await stage.seen();
});
afterAll(() => stage.close());

const session = { id: 'e'.repeat(32) };
const mark = (site: StagedSite, body: object, headers = {}) =>
  stage.send(site.host, '/mark-session-detection', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ loader: site.loader, session, signals: { adblock: true, itp: false }, ...body }),
  });

/** What the site's tag server has received. */
const forwardedOf = (site: StagedSite) =>
  stage.upstream.received.filter(({ url }) => url.includes(`${site.id}-`));

describe('POST /mark-session-detection', () => {
  test('forwards the signals to the tag server, with the visitor’s address, and counts them', async () => {
    const site = await stage.site();
    const answer = await mark(
      site,
      {},
      { 'cf-connecting-ip': '203.0.113.9', origin: `https://${site.domains[0]?.domain}` },
    );
    expect(answer).toMatchObject({ status: 202, json: { forwarded: true } });
    expect(answer.headers['access-control-allow-credentials']).toBe('true');
    await expect.poll(() => stage.upstream.received).toHaveLength(1);
    const [received] = stage.upstream.received;
    expect(received).toMatchObject({
      method: 'POST',
      url: `https://${site.id}-origin.test:8443/tagyard/detection`,
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9' },
    });
    expect(JSON.parse(received?.body ?? '')).toEqual({
      site: site.id,
      session,
      signals: { adblock: true, itp: false },
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
    expect((await stage.seen()).records[0]).toMatchObject({
      site: site.id,
      route: '/mark-session-detection',
      signals: { adblock: true, itp: false },
    });
  });

  test('counts the signals of each site separately', async () => {
    const [one, other] = [await stage.site(), await stage.site()];
    for (const adblock of [true, true, false]) await mark(one, { signals: { adblock } });
    await mark(other, { signals: { adblock: false } });
    const { records } = await stage.seen();
    const counted = (site: StagedSite, adblock: boolean) =>
      records.filter((record) => record.site === site.id && record.signals?.adblock === adblock).length;
    expect([counted(one, true), counted(one, false), counted(other, true), counted(other, false)]).toEqual([
      2, 1, 0, 1,
    ]);
  });

  test('logs a receiver that refuses, with its status only', async () => {
    stage.upstream.reply = () => ({ status: 403, body: 'secret' });
    await mark(await stage.site(), {});
    await expect
      .poll(async () => (await stage.seen()).events)
      .toEqual([
        {
          event: 'background_failed',
          fields: { error: 'Error: the receiver of signals answered 403' },
        },
      ]);
  });

  test('/bait/gtm.js: answered, uncached and without a request to another server', async () => {
    const site = await stage.site();
    expect(await stage.send(site.host, '/bait/gtm.js?v=1&ad_type=banner')).toMatchObject({
      status: 204,
      text: '',
      headers: { 'cache-control': 'no-store' },
    });
    const off = await stage.site({ modules: { adblock_itp_detection: { enabled: false } } });
    expect((await stage.send(off.host, '/bait/gtm.js')).status).toBe(404);
    expect(stage.upstream.received.filter(({ url }) => url.includes('bait'))).toEqual([]);
  });

  test('disabled: accepted, but not forwarded', async () => {
    const site = await stage.site({ modules: { adblock_itp_detection: { enabled: false } } });
    expect(await mark(site, {})).toMatchObject({ status: 202, json: { forwarded: false } });
    expect((await mark(site, {}, { origin: 'https://evil.example' })).status).toBe(403);
    expect(stage.upstream.received.filter(({ url }) => url.includes(`${site.id}-`))).toEqual([]);
  });

  test.each([
    ['forbids it', { enabled: false }, false],
    ['allows it', {}, true],
  ])('waits for a late EDGE_CONFIG that %s', async (_name, options, forwarded) => {
    const site = await stage.site({ modules: { adblock_itp_detection: options } });
    await stage.fault('EDGE_CONFIG', 'hold');
    const answer = mark(site, {});
    // A bootstrap doesn't wait. Once it is answered, the earlier report is waiting for the document.
    expect((await stage.boot(site)).status).toBe(200);
    expect(forwardedOf(site)).toEqual([]);
    await stage.fault('EDGE_CONFIG', null);
    expect(await answer).toMatchObject({ status: 202, json: { forwarded } });
    await expect.poll(() => forwardedOf(site)).toHaveLength(forwarded ? 1 : 0);
  });

  test.each([
    ['fails', 'fail'],
    ['is missing', null],
  ] as const)('forwards where EDGE_CONFIG %s', async (_name, fault) => {
    const site = await stage.site();
    await stage.remove('EDGE_CONFIG', site.container);
    await stage.fault('EDGE_CONFIG', fault);
    expect(await mark(site, {})).toMatchObject({ status: 202, json: { forwarded: true } });
    await stage.fault('EDGE_CONFIG', null);
  });

  test('doesn’t forward what a bot reports', async () => {
    const bot = { 'user-agent': 'Twitterbot/1.0' };
    const site = await stage.site();
    expect(await mark(site, {}, bot)).toMatchObject({ json: { forwarded: false } });
    expect(forwardedOf(site)).toEqual([]);
  });

  test.each([
    ['Sec-GPC', 'opt_out', undefined, { 'sec-gpc': '1' }, false],
    ['Sec-GPC despite a grant', 'required', 'granted', { 'sec-gpc': '1' }, false],
    ['a denial', 'opt_out', 'denied', {}, false],
    ['no choice where a grant is needed', 'required', undefined, {}, false],
    ['no choice where none is needed', 'opt_out', undefined, {}, true],
    ['a grant', 'required', 'granted', {}, true],
  ] as const)(
    '%s (%s): counted, and forwarded only where an id is allowed',
    async (_name, mode, choice, headers, forwarded) => {
      const site = await stage.site({ consent: mode });
      const consent = choice && { ad_storage: choice, analytics_storage: choice };
      expect(await mark(site, { consent }, headers)).toMatchObject({ status: 202, json: { forwarded } });
      // The record is written after the handler has run, so the request to the tag server has started by then.
      expect((await stage.seen()).records[0]).toMatchObject({ signals: { adblock: true, itp: false } });
      const received = () => stage.upstream.received.filter(({ url }) => url.includes(`${site.id}-`));
      if (forwarded) await expect.poll(received).toHaveLength(1);
      // Requests to one server arrive in order: after this one, no earlier one is pending.
      await stage.send(site.host, '/healthy');
      expect(received()).toHaveLength(forwarded ? 2 : 1);
    },
  );

  test.each([
    ['breaks the connection', () => Promise.reject(new Error('gone'))],
    ['answers 500', () => ({ status: 500 })],
    ['never answers', () => new Promise<never>(() => undefined)],
  ])('a receiver that %s doesn’t fail the call', async (_name, reply) => {
    stage.upstream.reply = reply;
    expect(await mark(await stage.site(), {})).toMatchObject({ status: 202, json: { forwarded: true } });
  });

  test.each([
    ['a foreign origin', {}, { origin: 'https://evil.example' }, 403, 'origin_not_allowed'],
    ['an unknown loader', { loader: 'lt_unknown000000000' }, {}, 404, 'unknown_loader'],
    ['a malformed session id', { session: { id: 'x' } }, {}, 400, 'malformed_request'],
    ['signals that are not booleans', { signals: { adblock: 'yes' } }, {}, 400, 'malformed_request'],
    ['a signal with an invalid name', { signals: { 'a b': true } }, {}, 400, 'malformed_request'],
    [
      'too many signals',
      { signals: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`s${i}`, true])) },
      {},
      400,
      'malformed_request',
    ],
  ])('%s: refused, and not forwarded', async (_name, body, headers, status, code) => {
    const site = await stage.site();
    expect(await mark(site, body, headers)).toMatchObject({ status, json: { code } });
    expect(stage.upstream.received.filter(({ url }) => url.includes(`${site.id}-`))).toEqual([]);
  });
});

describe('records', () => {
  test('are one per request, without cookie values, addresses, tokens or query strings', async () => {
    const site = await stage.site({ features: { cookie_restoration: true } });
    const secrets = {
      cookie: 'secret-cookie=1',
      'cf-connecting-ip': '203.0.113.9',
      'user-agent': 'secret-agent',
    };
    await stage.boot(site, { cookies: { _ga: 'secret-value' } }, secrets);
    await stage.send(site.host, '/g/collect?secret=query', { headers: secrets });
    await stage.send(site.host, `/l/${site.loader}.js`, { headers: secrets });
    await stage.send(site.host, '/secret/path', { headers: secrets });
    const { records } = await stage.seen();
    expect(records.map(({ route, status, error }) => [route, status, error])).toEqual([
      ['/boot', 200, null],
      ['/g/collect', 200, null],
      ['/l/:token.js', 200, null],
      ['', 404, 'not_found'],
    ]);
    expect(JSON.stringify(records)).not.toMatch(/secret|203\.0\.113|lt_/);
    expect(records[0]?.plugins).toHaveProperty('custom_loader');
    expect(records[0]?.plugins).toHaveProperty('cookie_restoration');
  });
});
