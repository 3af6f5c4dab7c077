import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
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
afterAll(() => stage.close());

const on = (options: SiteOptions = {}) => stage.site({ features: { cookie_restoration: true }, ...options });

/** Boots once with cookies and returns the profile that has them. */
async function store(site: StagedSite, cookies: Record<string, string>, body = {}): Promise<string> {
  return (await stage.boot(site, { cookies, ...body })).json.profile.id;
}

async function restore(site: StagedSite, fpid: string, body = {}, headers = {}) {
  const answer = await stage.boot(site, { fpid, ...body }, headers);
  const names = answer.json.restoreCookies.map(({ name }: { name: string }) => name).toSorted();
  return { answer, names, cookies: answer.json.restoreCookies };
}

describe('a bootstrap restores', () => {
  test('the listed cookies of the profile, with all attributes', async () => {
    const site = await on();
    const id = await store(site, { _ga: 'GA1.1.5.6' });
    expect((await restore(site, id)).cookies).toEqual([
      {
        name: '_ga',
        value: 'GA1.1.5.6',
        maxAge: expect.any(Number),
        domain: site.domains[0]?.cookieDomain,
        path: '/',
        sameSite: 'Lax',
        secure: true,
      },
    ]);
  });

  test.each([
    [
      'the default list',
      {},
      { _ga: '1', _ga_X1: '2', _fbp: '3', _fbc: '4', _gcl_au: '5', _gat: '6', session: '7', x_ga: '8' },
      ['_fbc', '_fbp', '_ga', '_ga_X1', '_gcl_au'],
    ],
    [
      'the site’s own list',
      { cookies: ['mine', 'pre_*'] },
      { mine: '1', mine2: '2', pre_: '3', pre_a: '4', _ga: '5' },
      ['mine', 'pre_', 'pre_a'],
    ],
    [
      'no names with reserved prefixes',
      { cookies: ['__Host-*', '__secure-*', 'ok'] },
      { '__Host-a': '1', '__Secure-b': '2', ok: '3' },
      ['ok'],
    ],
    [
      'no values that would break the header',
      {},
      { _ga: 'a;Domain=evil', _fbp: 'a\r\nSet-Cookie: x=1', _fbc: ' a', _gcl_a: 'ü', _gcl_b: 'a b"c,d=' },
      ['_gcl_b'],
    ],
    ['no invalid cookie names', { cookies: ['pre_*'] }, { 'pre_a b': '1', 'pre_;': '2', 'pre_=': '3' }, []],
    ['no pairs over 4096 octets', {}, { _ga: 'x'.repeat(4094), _fbp: 'x'.repeat(4092) }, ['_fbp']],
    ['no members of Object.prototype', { cookies: ['__proto__', 'constructor', 'ok'] }, { ok: '1' }, ['ok']],
  ])('%s', async (_name, options, sent, expected) => {
    const site = await on({ modules: { cookie_restoration: options } });
    const id = await store(site, sent);
    expect((await restore(site, id)).names).toEqual(expected);
  });

  test('at most 50 cookies and 16 KiB per profile, the newest first', async () => {
    const site = await on({ modules: { cookie_restoration: { cookies: ['a*'] } } });
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`a${i}`, 'v']));
    expect((await restore(site, await store(site, many))).names).toHaveLength(50);
    const big = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`a${i}`, 'v'.repeat(4000)]));
    expect((await restore(site, await store(site, big))).names).toHaveLength(4);
  });

  test.each([
    ['50 names is used', Array.from({ length: 50 }, (_, i) => `a${i}`), 1],
    ['51 names is ignored', Array.from({ length: 51 }, (_, i) => `a${i}`), 0],
    ['a name of 127 characters is used', ['a0', 'a'.repeat(127)], 1],
    ['a name of 128 characters is ignored', ['a0', 'a'.repeat(128)], 0],
    ['an invalid name is ignored', ['a0', 'a b'], 0],
  ])('cookies by the site’s own list: a list with %s', async (_name, cookies, restored) => {
    const site = await on({ modules: { cookie_restoration: { cookies } } });
    const id = await store(site, { a0: '1' });
    expect((await restore(site, id)).cookies).toHaveLength(restored);
  });

  test('nothing with the flag off: no cookies are stored', async () => {
    const site = await stage.site({ features: { cookie_restoration: false } });
    const id = await store(site, { _ga: '1' });
    expect((await restore(site, id)).cookies).toEqual([]);
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toBeNull();
  });

  test('by Set-Cookie on a first-party host, and only there', async () => {
    const site = await on();
    const id = await store(site, { _ga: '1' });
    const custom = {
      'x-tagyard-hop-secret': HOP_SECRET,
      'x-forwarded-host': `m.${site.domains[0]?.domain}`,
      'x-forwarded-proto': 'https',
    };
    const { answer } = await restore(site, id, {}, custom);
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^_fpid=/),
      expect.stringMatching(
        `^_ga=1; Path=/; Max-Age=341(?:28000|2799\\d); Domain=${site.domains[0]?.cookieDomain}; Secure; SameSite=Lax$`,
      ),
    ]);
    expect([(await restore(site, id)).answer.headers['set-cookie']].flat()).toHaveLength(1);
  });
});

describe('the life of a cookie', () => {
  test('is not extended by restoring the cookie or by seeing it again', async () => {
    const site = await on();
    const id = await store(site, { _ga: '1' });
    await stage.forward(100 * 86_400_000);
    await restore(site, id, { cookies: { _ga: '1' } });
    const [cookie] = (await restore(site, id)).cookies;
    expect(cookie.maxAge).toBeLessThanOrEqual(34_128_000 - 100 * 86_400);
    expect(cookie.maxAge).toBeGreaterThan(34_128_000 - 100 * 86_400 - 60);
    await stage.forward(301 * 86_400_000);
    expect((await restore(site, id)).cookies).toEqual([]);
  });

  test('a newer value replaces an older one', async () => {
    const site = await on();
    const id = await store(site, { _ga: 'old', _fbp: 'kept' });
    expect((await restore(site, id, { cookies: { _ga: 'new' } })).names).toEqual(['_fbp']);
    const { cookies } = await restore(site, id);
    expect(
      Object.fromEntries(cookies.map(({ name, value }: Record<string, string>) => [name, value])),
    ).toEqual({
      _ga: 'new',
      _fbp: 'kept',
    });
  });
});

describe('the life of a profile', () => {
  const life = 34_128_000;
  const now = () => Date.now() / 1000;

  test('ends 395 days after its start: no bootstrap extends it', async () => {
    const site = await on();
    const id = await store(site, { _ga: '1' });
    const key = `${site.id}:${id}`;
    const ahead = async () => ((await stage.expiration('COOKIES', key)) ?? 0) - now();
    const first = await ahead();
    expect(first).toBeGreaterThan(life - 60);
    expect(first).toBeLessThanOrEqual(life + 1);
    // Only the edge's clock moves; the store's clock stays at the real time.
    await stage.forward(10 * 86_400_000);
    await restore(site, id, { cookies: { _ga: '2' } });
    expect(await ahead()).toBeLessThanOrEqual(life - 10 * 86_400 + 60);
  });
});

describe('simultaneous bootstraps of one profile', () => {
  test('may lose a write: the other is stored completely, and the next bootstrap adds the rest', async () => {
    const site = await on();
    const id = await store(site, { _gcl_au: 'old' });
    await Promise.all([
      restore(site, id, { cookies: { _ga: '1' } }),
      restore(site, id, { cookies: { _fbp: '2' } }),
    ]);
    const { names } = await restore(site, id);
    expect(names).toContain('_gcl_au');
    expect(names.some((name: string) => name === '_ga' || name === '_fbp')).toBe(true);
    expect((await restore(site, id, { cookies: { _ga: '1', _fbp: '2' } })).names).toEqual(['_gcl_au']);
    expect((await restore(site, id)).names).toEqual(['_fbp', '_ga', '_gcl_au']);
  });
});

describe('the profile that a cookie _fpid names', () => {
  test('an _fpid of another site restores nothing', async () => {
    const [mine, other] = [await on(), await on()];
    const id = await store(mine, { _ga: 'mine' });
    expect((await restore(other, id)).cookies).toEqual([]);
    expect((await restore(mine, id)).names).toEqual(['_ga']);
  });

  test('the cookie _fpid itself is never restored, even if the site lists it', async () => {
    const site = await on({ modules: { cookie_restoration: { cookies: ['_fpid', '_f*'] } } });
    const id = await store(site, { _fpid: 'e'.repeat(32), _fbp: '1' });
    expect((await restore(site, id)).names).toEqual(['_fbp']);
  });

  test('an invalid record counts as missing', async () => {
    const site = await on();
    const id = 'd'.repeat(32);
    await stage.put('COOKIES', `${site.id}:${id}`, '{"version":9}');
    expect((await restore(site, id)).answer.json).toMatchObject({ profile: { id }, restoreCookies: [] });
  });
});

describe('consent', () => {
  const both = { _ga: '1', _fbp: '2', _gcl_au: '3' };
  const denied = (...types: string[]) => ({
    consent: Object.fromEntries(types.map((type) => [type, 'denied'])),
  });

  test.each([
    ['Sec-GPC: 1', {}, { 'sec-gpc': '1' }],
    ['both denied', denied('ad_storage', 'analytics_storage'), {}],
    [
      'Sec-GPC: 1 despite a grant',
      { consent: { ad_storage: 'granted', analytics_storage: 'granted' } },
      { 'sec-gpc': '1' },
    ],
  ])('%s: no id, no cookie, nothing restored, what was stored is deleted', async (_name, body, headers) => {
    const site = await on();
    const id = await store(site, both);
    const { answer } = await restore(site, id, { ...body, cookies: both }, headers);
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ profile: null, restoreCookies: [] });
    expect(answer.headers['set-cookie']).toBeUndefined();
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toBeNull();
    expect((await restore(site, id)).cookies).toEqual([]);
  });

  test.each([
    ['ad_storage', ['_ga']],
    ['analytics_storage', ['_fbp', '_gcl_au']],
  ])(
    '%s denied: the other purpose’s cookies are kept, this one’s are deleted for good',
    async (type, expected) => {
      const site = await on();
      const id = await store(site, both);
      expect((await restore(site, id, denied(type))).names).toEqual(expected);
      expect((await restore(site, id, { ...denied(type), cookies: both })).names).toEqual([]);
      expect((await restore(site, id)).names).toEqual(expected);
    },
  );

  test('a denial deletes stored cookies with the flag off, too', async () => {
    const site = await on();
    const id = await store(site, both);
    await stage.put('EDGE_CONFIG', site.container, {
      version: 2,
      module: 'tagyard',
      features: {},
      modules: {},
      consent: 'opt_out',
    });
    await stage.forward(60_100);
    await restore(site, id, denied('ad_storage', 'analytics_storage'));
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toBeNull();
  });

  test('a site that requires consent: nothing before a grant, then the granted purposes', async () => {
    const site = await on({ consent: 'required' });
    const before = await stage.boot(site, { cookies: both });
    expect(before.json.profile).toBeNull();
    expect((await stage.seen()).writes).toEqual([]);
    const id = await store(site, both, { consent: { analytics_storage: 'granted' } });
    const granted = { consent: { analytics_storage: 'granted', ad_storage: 'granted' } };
    expect((await restore(site, id, granted)).names).toEqual(['_ga']);
  });

  test('a cookie of unknown purpose is stored only if neither purpose is denied', async () => {
    const site = await on({ modules: { cookie_restoration: { cookies: ['mine', '_ga'] } } });
    const id = await store(site, { mine: '1', _ga: '2' }, denied('ad_storage'));
    expect((await restore(site, id)).names).toEqual(['_ga']);
  });
});
