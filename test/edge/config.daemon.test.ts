import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { closedGate } from '../../plugins/document.ts';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterEach(async () => {
  for (const namespace of NAMESPACES) await stage.fault(namespace, null);
  await stage.seen();
});
afterAll(() => stage.close());

const NAMESPACES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG', 'COOKIES'] as const;
const loader = (site: StagedSite) => stage.send(site.host, `/l/${site.loader}.js`);
const configReads = async () => (await stage.seen()).reads.filter((read) => !read.startsWith('COOKIES'));

describe('documents are fresh for CONFIG_TTL_SECONDS', () => {
  test('each document is read once, and again after the TTL', async () => {
    const site = await stage.site();
    await stage.seen();
    await loader(site);
    expect((await configReads()).toSorted()).toEqual([
      `EDGE_CONFIG/${site.container}`,
      `LOADER_TOKEN_MAP/${site.loader}`,
      `ROUTES/${site.host}`,
      `SITE_REGISTRY/${site.container}`,
    ]);
    await stage.forward(50_000);
    await loader(site);
    expect(await configReads()).toEqual([]);
    await stage.forward(10_100);
    await loader(site);
    expect(await configReads()).toHaveLength(4);
  });

  test('a new isolate reads them from the data centre’s cache, and their age still counts from the read out of KV', async () => {
    const site = await stage.site();
    await loader(site);
    await stage.forward(40_000);
    await stage.restart();
    await stage.seen();
    await loader(site);
    expect(await configReads()).toEqual([]);
    await stage.forward(20_100);
    await loader(site);
    expect(await configReads()).toHaveLength(4);
  });

  test('simultaneous misses cause one read', async () => {
    const site = await stage.site();
    await stage.fault('ROUTES', 30);
    await stage.seen();
    const answers = await Promise.all(Array.from({ length: 20 }, () => loader(site)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(await configReads()).toHaveLength(4);
  });

  test('a change and a removal apply after the TTL', async () => {
    const site = await stage.site();
    await loader(site);
    await stage.remove('ROUTES', site.host);
    expect((await loader(site)).status).toBe(200);
    await stage.forward(60_100);
    await loader(site);
    // The host has no site any more, so its own server gets the request.
    expect(stage.upstream.received.at(-1)?.url).toBe(`http://${site.host}/l/${site.loader}.js`);
  });
});

describe('a store that fails', () => {
  test.each(['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP'] as const)(
    '%s: without a copy the answer is 503 with retry-after; with one, the last good copy is served',
    async (namespace) => {
      const [seen, unseen] = [await stage.site(), await stage.site()];
      await loader(seen);
      await stage.fault(namespace, 'fail');
      expect(await loader(unseen)).toMatchObject({
        status: 503,
        headers: { 'retry-after': '1' },
        json: { code: 'store_unavailable' },
      });
      await stage.forward(3_600_000);
      expect((await loader(seen)).status).toBe(200);
      await stage.restart();
      expect((await loader(seen)).status).toBe(200);
    },
  );

  test.each([
    ['fails', 'fail'],
    ['is slow', 2000],
  ] as const)(
    'EDGE_CONFIG %s: the answer is sent at once, without optional plugins',
    async (_name, fault) => {
      const site = await stage.site({ features: { cookie_restoration: true } });
      await stage.boot(site, { cookies: { _ga: 'GA1.1.1' } });
      const unseen = await stage.site({ features: { cookie_restoration: true } });
      await stage.fault('EDGE_CONFIG', fault);
      const began = performance.now();
      const answer = await stage.boot(unseen, {
        cookies: { _ga: 'GA1.1.1' },
        consent: { analytics_storage: 'granted' },
      });
      expect(performance.now() - began).toBeLessThan(1000);
      expect(answer).toMatchObject({ status: 200, json: { features: {}, restoreCookies: [] } });
      expect(answer.json.profile.id).toMatch(/^[0-9a-f]{32}$/);
      expect((await loader(unseen)).status).toBe(200);
      // A site that was requested before keeps its own configuration.
      expect((await stage.boot(site)).json.features).toEqual({ cookie_restoration: true });
    },
  );

  test.each([
    ['fails', 'fail'],
    ['is held', 'hold'],
  ] as const)('EDGE_CONFIG %s: plugins that fail closed keep their options', async (_name, fault) => {
    const options = {
      features: { anonymizer: true, consent_gate: true, user_id: true },
      modules: { anonymizer: { address: 'none', drop: ['uid'] }, consent_gate: { purpose: 'ads' } },
    };
    const site = await stage.site({ ...options, ...closedGate(options) });
    await stage.fault('EDGE_CONFIG', fault);
    const hit = (gcs: string) => stage.send(site.host, `/g/collect?v=2&uid=me&gcs=${gcs}`);
    stage.upstream.received.length = 0;
    expect((await hit('G101')).status).toBe(204);
    expect(stage.upstream.received).toEqual([]);
    expect((await hit('G110')).status).toBe(200);
    const [arrived] = stage.upstream.received;
    expect(new URL(arrived?.url ?? '').search).toBe('?v=2&gcs=G110');
    expect(arrived?.headers).not.toHaveProperty('x-forwarded-for');
  });

  test('a late EDGE_CONFIG still fills the cache', async () => {
    const site = await stage.site({ features: { cookie_restoration: true } });
    await stage.fault('EDGE_CONFIG', 'hold');
    expect((await stage.boot(site)).json.features).toEqual({});
    await stage.fault('EDGE_CONFIG', null);
    await expect
      .poll(async () => (await stage.boot(site)).json.features, { timeout: 5000 })
      .toEqual({ cookie_restoration: true });
    expect((await configReads()).filter((read) => read.startsWith('EDGE_CONFIG'))).toHaveLength(1);
  });

  test.each([
    ['required', false],
    ['opt_out', true],
  ] as const)('a site of mode %s keeps its mode while EDGE_CONFIG fails', async (consent, identified) => {
    const site = await stage.site({ consent });
    await stage.fault('EDGE_CONFIG', 'fail');
    const answer = await stage.boot(site);
    expect(answer.status).toBe(200);
    expect(answer.json.profile !== null).toBe(identified);
    expect(answer.headers['set-cookie'] !== undefined).toBe(identified);
  });

  test('an outage of EDGE_CONFIG deletes no stored profile', async () => {
    const site = await stage.site({ features: { cookie_restoration: true } });
    const fpid = '0123456789abcdef0123456789abcdef';
    const expiresAt = Date.now() + 86_400_000;
    const kept = { name: '_ga', value: 'GA1.1.1', setAt: Date.now(), expiresAt };
    await stage.put('COOKIES', `${site.id}:${fpid}`, { version: 1, session: null, cookies: [kept] });
    await stage.fault('EDGE_CONFIG', 'fail');
    expect((await stage.boot(site, { fpid })).json).toMatchObject({
      profile: { id: fpid },
      restoreCookies: [],
    });
    expect(await stage.get('COOKIES', `${site.id}:${fpid}`)).toMatchObject({ cookies: [kept] });
  });

  test('the second domain of a site keeps its tags without EDGE_CONFIG', async () => {
    const site = await stage.site({ features: { multi_domain: true }, domains: [{}, {}] });
    await stage.fault('EDGE_CONFIG', 'fail');
    expect((await stage.boot(site, { url: `https://${site.domains[1]?.domain}/` })).status).toBe(200);
  });

  test('the cookie store: the answer is sent, nothing is restored', async () => {
    const site = await stage.site({ features: { cookie_restoration: true } });
    const first = await stage.boot(site, { cookies: { _ga: 'GA1.1.1' } });
    await stage.fault('COOKIES', 'fail');
    const answer = await stage.boot(site, { fpid: first.json.profile.id });
    expect(answer).toMatchObject({
      status: 200,
      json: { profile: { id: first.json.profile.id, isNew: false }, restoreCookies: [] },
    });
    expect((await stage.seen()).writes.filter((key) => key.includes(first.json.profile.id))).toHaveLength(1);
  });
});

describe('an invalid document', () => {
  test.each([
    ['not JSON', '{'],
    [
      'a newer version',
      '{"version":3,"module":"tagyard","features":{"cookie_restoration":true},"modules":{},"consent":"opt_out"}',
    ],
    ['an incomplete document', '{"version":2,"module":"tagyard","features":{"cookie_restoration":true}}'],
    [
      'wrong types',
      '{"version":2,"module":"tagyard","features":{"cookie_restoration":"yes"},"modules":{},"consent":"opt_out"}',
    ],
  ])('is logged, and the last good copy is served: %s', async (_name, text) => {
    const site = await stage.site({ features: { multi_domain: true } });
    expect((await stage.boot(site)).json.features).toEqual({ multi_domain: true });
    await stage.put('EDGE_CONFIG', site.container, text);
    await stage.forward(60_100);
    await stage.seen();
    expect((await stage.boot(site)).json.features).toEqual({ multi_domain: true });
    const { events } = await stage.seen();
    expect(events).toContainEqual({
      event: 'document_rejected',
      fields: expect.objectContaining({ store: 'EDGE_CONFIG', key: site.container }),
    });
  });

  test('with invalid options disables an optional plugin; a mandatory one runs on its defaults', async () => {
    const site = await stage.site({
      features: { cookie_restoration: true },
      modules: { cookie_restoration: { cookies: 'all' }, adblock_itp_detection: { colour: 'red' } },
    });
    await stage.seen();
    expect((await stage.boot(site, { cookies: { _ga: '1' } })).json.restoreCookies).toEqual([]);
    expect((await loader(site)).status).toBe(200);
    const { events } = await stage.seen();
    expect(events.map(({ event, fields }) => [event, fields.plugin])).toEqual([
      ['options_rejected', 'adblock_itp_detection'],
      ['options_rejected', 'cookie_restoration'],
    ]);
  });
});
