import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  HOP_SECRET,
  type SiteOptions,
  type Stage,
  type StagedSite,
  startStage,
} from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
beforeEach(async () => {
  await stage.seen();
});
afterEach(() => {
  stage.upstream.reply = () => ({});
});
afterAll(() => stage.close());

const DENIED = { analytics_storage: 'denied', ad_storage: 'denied' };
const NO_ANALYTICS = { analytics_storage: 'denied', ad_storage: 'granted' };
const RANDOM = '9f86d081884c7d659a2feaa0c55ad015';
const MASTER = { modules: { cookie_restoration: { masterCookie: 'shop_id' } } };
const on = (options: SiteOptions = {}) => stage.site({ features: { cookie_restoration: true }, ...options });
/** Headers of a request to a first-party host of the site. */
const own = (site: StagedSite, cookie = '') => ({
  'x-tagyard-hop-secret': HOP_SECRET,
  'x-forwarded-host': `m.${site.domains[0]?.domain}`,
  'x-forwarded-proto': 'https',
  ...(cookie && { cookie }),
});
const lines = ({
  headers,
}: {
  readonly headers: { readonly 'set-cookie'?: string | string[] | undefined };
}) => [headers['set-cookie'] ?? []].flat().toSorted();

describe('a withdrawal', () => {
  test.each([
    [
      'in the request’s header',
      (site: StagedSite) => stage.boot(site, { consent: DENIED }, own(site, `shop_id=${RANDOM}`)),
    ],
    [
      'in the request’s body',
      (site: StagedSite) => stage.boot(site, { consent: DENIED, cookies: { shop_id: RANDOM } }),
    ],
  ])(
    'by a browser that has lost its id, with the master cookie %s: the record is deleted',
    async (_name, deny) => {
      const site = await on(MASTER);
      await stage.boot(site, { cookies: { _ga: '1' } }, own(site, `shop_id=${RANDOM}`));
      const [key = ''] = (await stage.seen()).writes;
      expect(key).toMatch(/:master:/);
      const record = () => stage.get('COOKIES', key.slice('COOKIES/'.length));
      expect(await record()).not.toBeNull();
      expect((await deny(site)).json.profile).toBeNull();
      expect(await record()).toBeNull();
    },
  );

  test('by one of many visitors with the same master cookie: the cookie stays refused as a key', async () => {
    const site = await on(MASTER);
    const boot = (body: object) => stage.boot(site, body, own(site, `shop_id=${RANDOM}`));
    for (let browser = 0; browser < 11; browser += 1) await boot({ cookies: { _ga: `of-${browser}` } });
    const [key = ''] = (await stage.seen()).writes;
    await boot({ consent: DENIED });
    const record = await stage.get('COOKIES', key.slice('COOKIES/'.length));
    expect(record).toMatchObject({ isShared: true, cookies: [] });
  });

  /** A site whose store has `_ga`, `_fbp`, `mine` and the tag server's `FPID` of a visitor. */
  async function kept(): Promise<{ site: StagedSite; id: string }> {
    const cookies = ['_ga', '_fbp', 'mine'];
    const site = await on({ modules: { cookie_restoration: { cookies } } });
    const { domain } = site.domains[0] ?? {};
    const values = Object.fromEntries(cookies.map((name) => [name, '1']));
    const { id } = (await stage.boot(site, { cookies: values })).json.profile;
    const line = `FPID=abc; Max-Age=34128000; Domain=${domain}; Path=/; Secure; HttpOnly; SameSite=Lax`;
    stage.upstream.reply = () => ({ status: 204, headers: { 'set-cookie': line } });
    await stage.send(site.host, '/g/collect', { headers: own(site, `_fpid=${id}`) });
    await expect
      .poll(() => stage.get('COOKIES', `${site.id}:${id}`))
      .toMatchObject({ cookies: { length: 4 } });
    return { site, id };
  }

  test('of all purposes: the answer deletes the record’s cookies in the browser, even HttpOnly', async () => {
    const { site, id } = await kept();
    const answer = await stage.boot(site, { fpid: id, consent: DENIED }, own(site));
    const end = (name: string) =>
      `${name}=; Path=/; Max-Age=0; Domain=${site.domains[0]?.domain}; Secure; SameSite=Lax`;
    expect(lines(answer)).toEqual(
      [
        `FPID=; Max-Age=0; Domain=${site.domains[0]?.domain}; Path=/; Secure; HttpOnly; SameSite=Lax`,
        ...['_fbp', '_ga', 'mine'].map(end),
      ].toSorted(),
    );
    expect(answer.json.deleteCookies.toSorted()).toEqual(['_fbp', '_ga', 'mine']);
    expect(answer.json).toMatchObject({ profile: null, restoreCookies: [] });
    // There is nothing left to end.
    const again = await stage.boot(site, { fpid: id, consent: DENIED }, own(site));
    expect(lines(again)).toEqual([]);
    expect(again.json).not.toHaveProperty('deleteCookies');
  });

  test('on the edge hostname, whose answer can’t reach the page’s cookies: the page learns their names', async () => {
    const { site, id } = await kept();
    const answer = await stage.boot(site, { fpid: id, consent: DENIED });
    expect(lines(answer)).toEqual([]);
    expect(answer.json.deleteCookies.toSorted()).toEqual(['_fbp', '_ga', 'mine']);
  });

  test('of one purpose: only that purpose’s cookies and those of unknown purpose end', async () => {
    const { site, id } = await kept();
    const body = { fpid: id, consent: NO_ANALYTICS, withdrawn: true };
    const answer = await stage.boot(site, body, own(site, `_fpid=${id}; _fbp=1`));
    expect(lines(answer).map((line) => line.split('=')[0])).toEqual(['FPID', '_ga', 'mine']);
    expect(answer.json.deleteCookies.toSorted()).toEqual(['_ga', 'mine']);
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toMatchObject({ cookies: [{ name: '_fbp' }] });
  });

  test('of one purpose isn’t assumed from a page’s default: nothing ends in the browser', async () => {
    const { site, id } = await kept();
    const answer = await stage.boot(
      site,
      { fpid: id, consent: NO_ANALYTICS },
      own(site, `_fpid=${id}; _fbp=1`),
    );
    expect(lines(answer)).toEqual([]);
    expect(answer.json).not.toHaveProperty('deleteCookies');
  });
});

describe('with consentMode basic, only a grant counts, whatever the site’s `consent` is:', () => {
  const BASIC: SiteOptions = { consent: 'opt_out', rules: { consentMode: 'basic' } };

  test('a bootstrap without choices identifies and stores nothing', async () => {
    const site = await on(BASIC);
    const answer = await stage.boot(site, { cookies: { _ga: '1' } }, own(site));
    expect(answer.json.profile).toBeNull();
    expect(lines(answer)).toEqual([]);
    expect((await stage.seen()).writes).toEqual([]);
    const granted = await stage.boot(site, { consent: { analytics_storage: 'granted' } });
    expect(granted.json.profile).toMatchObject({ isNew: true });
  });

  test('what the tag server sets before a grant isn’t kept', async () => {
    const id = 'd'.repeat(32);
    const line = 'FPID=abc; Max-Age=34128000; Path=/; Secure; HttpOnly';
    stage.upstream.reply = () => ({ status: 204, headers: { 'set-cookie': line } });
    const hit = (site: StagedSite) =>
      stage.send(site.host, '/g/collect', { headers: own(site, `_fpid=${id}`) });
    const [site, witness] = [await on(BASIC), await on()];
    await hit(site);
    await hit(witness);
    await expect.poll(() => stage.get('COOKIES', `${witness.id}:${id}`)).not.toBeNull();
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toBeNull();
  });
});

describe('the detection’s report', () => {
  test.each([
    ['ads alone are granted', { ad_storage: 'granted' }, 'required', false],
    ['analytics is denied', { analytics_storage: 'denied' }, 'opt_out', false],
    ['analytics is granted', { analytics_storage: 'granted' }, 'required', true],
    ['ads are denied', { ad_storage: 'denied' }, 'opt_out', true],
  ] as const)('is forwarded only where analytics is allowed: %s', async (_name, consent, mode, forwarded) => {
    const site = await stage.site({ consent: mode });
    const answer = await stage.send(site.host, '/mark-session-detection', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        loader: site.loader,
        session: { id: RANDOM },
        signals: { adblock: true },
        consent,
      }),
    });
    expect(answer).toMatchObject({ status: 202, json: { forwarded } });
  });
});

test.each([
  ['the loader', (site: StagedSite) => `/l/${site.loader}.js`],
  ['the web tag’s script', (site: StagedSite) => `/c/${site.domains[0]?.token}.js`],
  ['the script’s preview', (site: StagedSite) => `/c/${site.domains[0]?.token}.js?gtm_preview=env-1`],
])(
  '%s can be requested without credentials from any page, even if the vendor doesn’t allow it',
  async (_name, pathOf) => {
    stage.upstream.reply = () => ({ headers: { 'content-type': 'application/javascript' }, body: '1' });
    const site = await on();
    const answer = await stage.send(site.host, pathOf(site), { headers: { origin: 'https://shop.example' } });
    expect(answer).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': '*' } });
  },
);

describe('a visitor of whom no choice is known', () => {
  const inGermany = { rules: { regions: [{ places: ['DE'], consent: 'required' as const }] } };
  const from = (site: StagedSite, country: string, id: string, headers = {}) => ({
    ...own(site, `_fpid=${id}`),
    'x-forwarded-for': '203.0.113.7',
    ...(country && { 'x-forwarded-country': country }),
    ...headers,
  });

  test.each([
    { why: 'the place is unknown this time', headers: {}, isKept: true },
    { why: 'Sec-GPC denies', headers: { 'sec-gpc': '1' }, isKept: false },
  ])('gets no id under stricter rules: $why; the record is kept: $isKept', async ({ headers, isKept }) => {
    const site = await on(inGermany);
    const id = 'd'.repeat(32);
    const boot = (place: string, more = {}, cookies = {}) =>
      stage.boot(site, { cookies }, from(site, place, id, more));
    await boot('US', {}, { _ga: 'GA1.1.1.1' });
    const strict = await boot('', headers);
    expect(strict.json).toMatchObject({ profile: null, restoreCookies: [] });
    expect(lines(strict).length === 0).toBe(isKept);
    expect((await boot('US')).json.restoreCookies).toHaveLength(isKept ? 1 : 0);
  });
});
