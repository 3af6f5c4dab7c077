import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  HOP_SECRET,
  type SiteOptions,
  type Stage,
  type StagedSite,
  startStage,
} from '../support/edge/stage.ts';

let stage: Stage;
let site: StagedSite;
beforeAll(async () => {
  stage = await startStage();
  site = await stage.site({ features: { cookie_restoration: true } });
});
beforeEach(async () => {
  await stage.seen();
});
afterAll(() => stage.close());

const KNOWN = 'a'.repeat(32);
const denied = { analytics_storage: 'denied', ad_storage: 'denied' };
/** A first-party host, with the cookies that a browser sends there by itself. */
const firstParty = (cookie: string) => ({
  'x-tagyard-hop-secret': HOP_SECRET,
  'x-forwarded-host': `m.${site.domains[0]?.domain}`,
  'x-forwarded-proto': 'https',
  cookie,
});
const at = (country: string, regionCode?: string) => ({
  'cf-connecting-ip': '203.0.113.7',
  'mf-cf-blob': JSON.stringify({ country, regionCode }),
});

describe('the members of `consent`', () => {
  test.each([
    ['Consent Mode’s others', { functionality_storage: 'granted', security_storage: 'denied' }],
    ['of any type', { tcString: { parsed: true }, gppString: 7, regions: null, wait_for_update: 500 }],
    ['a consent string of 60 KB', { tcString: 'C'.repeat(60_000) }],
  ])('that are unknown are ignored: %s', async (_name, unknown) => {
    const { status, json } = await stage.boot(site, {
      consent: { ...unknown, analytics_storage: 'granted' },
    });
    expect(status).toBe(200);
    expect(json.profile).not.toBeNull();
    expect((await stage.boot(site, { consent: { ...unknown, ...denied } })).json.profile).toBeNull();
  });

  test('make the request fail if they have 100 KB, and the answer has nothing of them', async () => {
    const answer = await stage.boot(site, { consent: { tcString: 'SECRET'.repeat(17_000) } });
    expect(answer).toMatchObject({ status: 413, json: { code: 'body_too_large' } });
    expect(answer.text).not.toMatch(/SECRET|tcString|consent/);
    const { reads, writes, records } = await stage.seen();
    expect(writes).toEqual([]);
    expect(reads.filter((key) => key.startsWith('COOKIES'))).toEqual([]);
    expect(JSON.stringify(records)).not.toContain('SECRET');
  });

  test('ad_user_data and ad_personalization neither allow nor prevent identifying a visitor', async () => {
    const required = await stage.site({ consent: 'required' });
    const consent = { ad_user_data: 'granted', ad_personalization: 'granted' };
    expect((await stage.boot(required, { consent })).json.profile).toBeNull();
    const refused = { ad_user_data: 'denied', ad_personalization: 'denied' };
    expect((await stage.boot(site, { consent: refused })).json.profile).not.toBeNull();
  });
});

describe('under a denial', () => {
  test('what a request carries nevertheless is discarded: no cookie is set, stored or answered', async () => {
    const answer = await stage.boot(
      site,
      { consent: denied, cookies: { _ga: 'GA1.1.1.1', _fbp: 'fb.1.1.1' }, session: { id: KNOWN } },
      { ...firstParty('_ga=GA1.1.1.1; basket=SECRET'), referer: 'https://shop.example/SECRET?q=SECRET' },
    );
    expect(answer.json).toMatchObject({ profile: null, restoreCookies: [] });
    expect(answer.json.session.id).not.toBe(KNOWN);
    expect(answer.headers).not.toHaveProperty('set-cookie');
    const { reads, writes, records, events } = await stage.seen();
    expect(writes).toEqual([]);
    expect(reads.filter((key) => key.startsWith('COOKIES'))).toEqual([]);
    expect(JSON.stringify([records, events])).not.toContain('SECRET');
  });

  test('the request’s profile is deleted; the cookies to delete in the browser are read first', async () => {
    const { json } = await stage.boot(site, { cookies: { _ga: 'GA1.1.1.1' } });
    const key = `${site.id}:${json.profile.id}`;
    expect(await stage.get('COOKIES', key)).toMatchObject({ cookies: [{ name: '_ga' }] });
    await stage.seen();
    const answer = await stage.boot(site, { fpid: json.profile.id, consent: denied });
    expect(answer.json.profile).toBeNull();
    const { reads, writes } = await stage.seen();
    expect({ reads, writes }).toEqual({ reads: [`COOKIES/${key}`], writes: [`COOKIES/${key}`] });
    expect(await stage.get('COOKIES', key)).toBeNull();
  });

  test('or rules that need a grant, a later grant identifies the visitor', async () => {
    const required = await stage.site({ consent: 'required' });
    expect((await stage.boot(required, {})).json.profile).toBeNull();
    const { json } = await stage.boot(required, { consent: { analytics_storage: 'granted' } });
    expect(json.profile).toMatchObject({ isNew: true });
  });
});

test('the page’s address is read as an origin: path and query get into no log', async () => {
  const { domain } = site.domains[0] ?? {};
  const url = `https://www.${domain}/SECRET/checkout?email=SECRET#SECRET`;
  expect((await stage.boot(site, { url, referrer: `${url}&SECRET` })).status).toBe(200);
  expect((await stage.boot(site, { url: `https://elsewhere.example/SECRET` })).text).not.toContain('SECRET');
  expect((await stage.boot(site, { url: `https://www.${domain}` })).status).toBe(200);
  const { records, events, writes } = await stage.seen();
  expect(records).toHaveLength(3);
  expect(JSON.stringify([records, events, writes])).not.toContain('SECRET');
});

describe('the rules of the visitor’s place', () => {
  const options: SiteOptions = {
    rules: {
      regions: [
        { places: ['DE'], consent: 'required', consentMode: 'basic' },
        { places: ['US-CA'], fallback: 'none' },
      ],
    },
  };
  const loader = (of: StagedSite, headers = {}) => stage.send(of.host, `/l/${of.loader}.js`, { headers });
  /** The values in the loader. */
  async function values(of: StagedSite, headers = {}) {
    const { text } = await loader(of, headers);
    return JSON.parse(/\{"edge":.*?"days":\d+\}/.exec(text)?.[0] ?? '{}');
  }

  test('decide at the edge, and an unknown place counts as the strictest', async () => {
    const own = await stage.site(options);
    const identified = async (headers = {}) => (await stage.boot(own, {}, headers)).json.profile !== null;
    expect(await identified(at('US', 'NY'))).toBe(true);
    expect(await identified(at('DE'))).toBe(false);
    expect(await identified()).toBe(false);
  });

  test('are in the loader', async () => {
    const own = await stage.site(options);
    expect(await values(own, at('FR'))).toMatchObject({ strict: false, basic: false, vendor: true });
    expect(await values(own, at('DE', 'BY'))).toMatchObject({ strict: true, basic: true, vendor: true });
    expect(await values(own, at('US', 'CA'))).toMatchObject({ strict: false, basic: false, vendor: false });
    expect(await values(own)).toMatchObject({ strict: true, basic: true, vendor: false, days: 395 });
  });

  test('hold while EDGE_CONFIG fails: the registry has them, too', async () => {
    const own = await stage.site(options);
    await stage.remove('EDGE_CONFIG', own.container);
    expect((await stage.boot(own, {}, at('DE'))).json.profile).toBeNull();
    expect(await values(own, at('DE'))).toMatchObject({ strict: true, basic: true });
  });

  test('are in a loader that names the place, for this visitor only, with an etag of its own', async () => {
    const own = await stage.site();
    const [unknown, german, bavarian] = await Promise.all([
      loader(own),
      loader(own, at('DE')),
      loader(own, at('DE', 'BY')),
    ]);
    expect(unknown.headers['cache-control']).toMatch(/^public, /);
    for (const one of [german, bavarian]) expect(one.headers['cache-control']).toMatch(/^private, /);
    expect(german.text).toContain('"DE"');
    expect(bavarian.text).toContain('"DE-BY"');
    const etags = [unknown, german, bavarian].map(({ headers }) => headers.etag);
    expect(new Set(etags).size).toBe(3);
    expect((await loader(own, { ...at('DE'), 'if-none-match': String(german.headers.etag) })).status).toBe(
      304,
    );
    expect((await loader(own, { ...at('FR'), 'if-none-match': String(german.headers.etag) })).status).toBe(
      200,
    );
  });
});
