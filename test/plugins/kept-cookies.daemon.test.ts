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

const DAY_MS = 86_400_000;
const on = (options: SiteOptions = {}) => stage.site({ features: { cookie_restoration: true }, ...options });
/** Headers of a request to a first-party host of the site. */
const own = (site: StagedSite, cookie?: string) => ({
  'x-tagyard-hop-secret': HOP_SECRET,
  'x-forwarded-host': `m.${site.domains[0]?.domain}`,
  'x-forwarded-proto': 'https',
  ...(cookie === undefined ? {} : { cookie }),
});
const names = (answer: {
  readonly json: { readonly restoreCookies: readonly { readonly name: string }[] };
}) => answer.json.restoreCookies.map(({ name }) => name);
/** Names of the cookies that an answer sets. */
const set = ({ headers }: { readonly headers: { readonly 'set-cookie'?: string | string[] | undefined } }) =>
  [headers['set-cookie'] ?? []].flat().map((line) => line.split('=')[0]);

describe('restoring', () => {
  test('gives back only what the request lacks, in the answer and by Set-Cookie', async () => {
    const site = await on();
    const { id } = (await stage.boot(site, { cookies: { _ga: '1', _fbp: '2', _fbc: '3' } })).json.profile;
    const sent = await stage.boot(site, { fpid: id, cookies: { _ga: 'new' } }, own(site, '_fbp=newer'));
    expect(names(sent)).toEqual(['_fbc']);
    expect(set(sent)).toEqual(['_fpid', '_fbc']);
    expect(
      names(await stage.boot(site, { fpid: id, cookies: { _ga: 'new', _fbp: '2', _fbc: '3' } })),
    ).toEqual([]);
  });

  test('does not count a cookie of the edge hostname as a cookie of the page', async () => {
    const site = await on();
    const { id } = (await stage.boot(site, { cookies: { _ga: '1' } })).json.profile;
    expect(names(await stage.boot(site, { fpid: id }, { cookie: '_ga=foreign' }))).toEqual(['_ga']);
  });
});

const FPID = 'FPID=FPID2.2.abc; Max-Age=63072000; Domain=DOMAIN; Path=/; Secure; HttpOnly; SameSite=Lax';
// Not HttpOnly: the page's scripts read it for links to other domains.
const FPLC = 'FPLC=xyz; Max-Age=72000; Domain=DOMAIN; Path=/; Secure; SameSite=Lax';

describe('the ids that the tag server sets', () => {
  /** Sends a hit whose answer sets these cookies. */
  async function hit(
    site: StagedSite,
    lines: readonly string[],
    cookie: string,
    headers = {},
  ): Promise<void> {
    const { domain = '' } = site.domains[0] ?? {};
    stage.upstream.reply = () => ({
      status: 204,
      headers: { 'set-cookie': lines.map((line) => line.replace('DOMAIN', domain)) },
    });
    const answer = await stage.send(site.host, '/g/collect', {
      headers: { ...own(site, cookie), ...headers },
    });
    expect(answer.headers['set-cookie']).toHaveLength(lines.length);
  }
  const kept = async (site: StagedSite, id: string) => {
    const record = Object(await stage.get('COOKIES', `${site.id}:${id}`));
    return (record.cookies ?? []).map(({ name }: { name: string }) => name).toSorted();
  };
  const id = 'd'.repeat(32);

  test('are kept with their attributes, and restored by Set-Cookie only, with their remaining life', async () => {
    const site = await on();
    const { domain } = site.domains[0] ?? {};
    await hit(site, [FPID, FPLC], `_fpid=${id}`);
    await expect.poll(() => kept(site, id)).toEqual(['FPID', 'FPLC']);
    const answer = await stage.boot(site, {}, own(site, `_fpid=${id}`));
    expect(answer.json.restoreCookies).toEqual([]);
    expect([answer.headers['set-cookie']].flat().toSorted()).toEqual([
      expect.stringMatching(
        `^FPID=FPID2\\.2\\.abc; Max-Age=341\\d{5}; Domain=${domain}; Path=/; Secure; HttpOnly; SameSite=Lax$`,
      ),
      expect.stringMatching(
        `^FPLC=xyz; Max-Age=7[12]\\d{3}; Domain=${domain}; Path=/; Secure; SameSite=Lax$`,
      ),
    ]);
    const present = await stage.boot(site, {}, own(site, `_fpid=${id}; FPID=other; FPLC=other`));
    expect(present.headers['set-cookie']).toBeUndefined();
    // On the edge hostname the answer can set no cookie of the page.
    expect(set(await stage.boot(site, { fpid: id }))).toEqual(['_fpid']);
  });

  test('cost no read or write where the browser has them already', async () => {
    const site = await on();
    await stage.seen();
    await hit(site, [FPID], `_fpid=${id}; FPID=FPID2.2.abc`);
    await hit(site, [FPLC], `_fpid=${id}`);
    await expect.poll(() => kept(site, id)).toEqual(['FPLC']);
    const { reads, writes } = await stage.seen();
    const ofStore = [...reads.filter((key) => key.startsWith('COOKIES')), ...writes];
    expect(ofStore).toEqual([`COOKIES/${site.id}:${id}`, `COOKIES/${site.id}:${id}`]);
  });

  test('are no longer kept once it deletes them', async () => {
    const site = await on();
    await hit(site, [FPID, FPLC], `_fpid=${id}`);
    await expect.poll(() => kept(site, id)).toEqual(['FPID', 'FPLC']);
    await hit(site, ['FPID=; Max-Age=0; Domain=DOMAIN; Path=/; HttpOnly'], `_fpid=${id}; FPID=FPID2.2.abc`);
    await expect.poll(() => kept(site, id)).toEqual(['FPLC']);
  });

  test.each([
    ['the last line', ['FPLC=abc; Domain=DOMAIN; Path=/', FPLC]],
    ['the last line that deletes nothing', [FPLC, 'FPLC=; Max-Age=0; Path=/']],
  ])('are kept and restored as in %s, if several lines set one name', async (_which, lines) => {
    const site = await on();
    await hit(site, lines, `_fpid=${id}`);
    await expect.poll(() => kept(site, id)).toEqual(['FPLC']);
    const { headers } = await stage.boot(site, {}, own(site, `_fpid=${id}`));
    expect(headers['set-cookie']).toEqual([expect.stringMatching(/^FPLC=xyz; /)]);
  });

  test('that an earlier version stored twice are restored once, and stored once from then on', async () => {
    const site = await on();
    const times = { setAt: Date.now() - 1000, expiresAt: Date.now() + DAY_MS };
    const cookies = ['abc', 'xyz'].map((value) => ({ name: 'FPLC', value, attributes: 'Path=/', ...times }));
    await stage.put('COOKIES', `${site.id}:${id}`, { version: 1, session: null, cookies });
    const { headers } = await stage.boot(site, {}, own(site, `_fpid=${id}`));
    expect(headers['set-cookie']).toEqual([expect.stringMatching(/^FPLC=xyz; /)]);
    expect(await kept(site, id)).toEqual(['FPLC']);
  });

  test.each<[string, SiteOptions, readonly string[], string, Record<string, string>]>([
    ['with the flag off', { features: {} }, [FPID], `_fpid=${id}`, {}],
    ['without an id', {}, [FPID], 'other=1', {}],
    ['with a malformed id', {}, [FPID], '_fpid=x', {}],
    ['with Sec-GPC', {}, [FPID], `_fpid=${id}`, { 'sec-gpc': '1' }],
    ['of a bot', {}, [FPID], `_fpid=${id}`, { 'user-agent': 'Twitterbot/1.0' }],
    ['where a grant is needed and none is known', { consent: 'required' }, [FPID], `_fpid=${id}`, {}],
    ['under another name', {}, ['basket=1; Path=/; HttpOnly'], `_fpid=${id}`, {}],
    ['FPID that scripts see', {}, ['FPID=abc; Path=/'], `_fpid=${id}`, {}],
    ['FPLC with Sec-GPC', {}, [FPLC], `_fpid=${id}`, { 'sec-gpc': '1' }],
    [
      'on the edge hostname',
      {},
      ['FPID=abc; Path=/; HttpOnly'],
      `_fpid=${id}`,
      { 'x-tagyard-hop-secret': 'x' },
    ],
  ])('%s are not kept', async (_name, options, lines, cookie, headers) => {
    const site = await on({ features: { cookie_restoration: true }, ...options });
    await hit(site, lines, cookie, headers);
    // The store is used in the background, in the order of the requests: the write for `witness` is the last one.
    const witness = await on();
    await hit(witness, [FPID], `_fpid=${id}`);
    await expect.poll(() => kept(witness, id)).toEqual(['FPID']);
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toBeNull();
  });

  test('are deleted by Set-Cookie after a denial; the page also deletes those that scripts see', async () => {
    const site = await on();
    const { domain } = site.domains[0] ?? {};
    await hit(site, [FPID, FPLC], `_fpid=${id}`);
    await expect.poll(() => kept(site, id)).toEqual(['FPID', 'FPLC']);
    const consent = { analytics_storage: 'denied', ad_storage: 'denied' };
    const answer = await stage.boot(site, { fpid: id, consent }, own(site));
    expect(answer.json.deleteCookies).toEqual(['FPLC']);
    expect([answer.headers['set-cookie']].flat().toSorted()).toEqual([
      `FPID=; Max-Age=0; Domain=${domain}; Path=/; Secure; HttpOnly; SameSite=Lax`,
      `FPLC=; Max-Age=0; Domain=${domain}; Path=/; Secure; SameSite=Lax`,
    ]);
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toBeNull();
  });

  test('are deleted by a denial of their purpose', async () => {
    const site = await on();
    await hit(site, [FPID], `_fpid=${id}`);
    await expect.poll(() => kept(site, id)).toEqual(['FPID']);
    const consent = { analytics_storage: 'denied' };
    expect(set(await stage.boot(site, { consent }, own(site, `_fpid=${id}`)))).toEqual([]);
    expect(await stage.get('COOKIES', `${site.id}:${id}`)).toBeNull();
  });
});

describe('the master cookie', () => {
  const options = { modules: { cookie_restoration: { masterCookie: 'shop_id' } } };
  const RANDOM = '9f86d081884c7d659a2feaa0c55ad015';
  const boot = (site: StagedSite, body: object, value: string) =>
    stage.boot(site, body, own(site, `shop_id=${value}`));
  const keys = async (site: StagedSite) =>
    (await stage.seen()).writes.map((key) => key.slice(`COOKIES/${site.id}:`.length));

  test('is the key of what is kept, as a hash for this site: a browser that has lost its id gets its cookies back', async () => {
    const [site, other] = [await on(options), await on(options)];
    await boot(site, { cookies: { _ga: '1' } }, RANDOM);
    await boot(other, { cookies: { _ga: 'other' } }, RANDOM);
    const [key = '', another = ''] = (await stage.seen()).writes;
    expect(key).toMatch(new RegExp(`^COOKIES/${site.id}:master:[0-9a-f]{64}$`));
    expect(another.split(':')[2]).not.toBe(key.split(':')[2]);
    // A browser that has not stored anything itself under the key gets the cookies only after a day.
    expect(names(await boot(site, {}, RANDOM))).toEqual([]);
    await stage.forward(DAY_MS);
    expect(names(await boot(site, {}, RANDOM))).toEqual(['_ga']);
    expect(names(await boot(site, {}, RANDOM.replace('9', '8')))).toEqual([]);
  });

  test('gives the same browser its cookies back at once', async () => {
    const site = await on(options);
    const { id } = (await boot(site, { cookies: { _ga: '1' } }, RANDOM)).json.profile;
    expect(names(await boot(site, { fpid: id }, RANDOM))).toEqual(['_ga']);
  });

  test('is sent by the page, and neither stored nor restored itself', async () => {
    const site = await on({
      modules: { cookie_restoration: { masterCookie: 'shop_id', cookies: ['*shop', '_ga', 'shop_id'] } },
    });
    const invalid = await stage.send(site.host, `/l/${site.loader}.js`);
    expect(invalid.text).toContain('"cookies":[]');
    const valid = await on({
      modules: { cookie_restoration: { masterCookie: 'shop_id', cookies: ['shop_*', '_ga'] } },
    });
    const { text } = await stage.send(valid.host, `/l/${valid.loader}.js`);
    expect(text).toContain('"cookies":["shop_*","_ga","shop_id"]');
    // What a withdrawal sends, so that the record is found.
    expect(text).toContain('"keys":["shop_id"]');
    const { id } = (await stage.boot(valid, { cookies: { shop_id: RANDOM, _ga: '1' } })).json.profile;
    expect(await keys(valid)).toEqual([expect.stringMatching(/^master:/)]);
    expect(names(await stage.boot(valid, { fpid: id, cookies: { shop_id: RANDOM } }))).toEqual(['_ga']);
  });

  test.each([
    ['a short one', '9f86d081884c7d659a2feaa0c55ad01'],
    ['a number', '12345678901234567890123456789012345'],
    ['a pattern', 'abcabcabcabcabcabcabcabcabcabcabcabc'],
    ['a value of a tag', 'GA1.1.1234567890.1700000000'],
    ['a UUID of a time', '018f4e2a-7b1c-7c3d-9e4f-1a2b3c4d5e6f'],
    ['a very long one', `${RANDOM}x`.repeat(40)],
    ['an empty one', ''],
  ])('%s is not used as a key', async (_name, value) => {
    const site = await on(options);
    const { id } = (await boot(site, { cookies: { _ga: '1' } }, value)).json.profile;
    expect(await keys(site)).toEqual([id]);
  });

  test.each([
    ['hex digits', RANDOM],
    ['base64url', 'mK3vQ9_xT2-aLr8ZpW5nYc'],
    ['a random UUID', '5f0c3f0e-2d3b-4c53-9a37-0b6f5d2c1e4a'],
    ['a value with a signature', `s%3A${RANDOM}.sig`],
  ])('with 128 bits, %s can be the key', async (_name, value) => {
    const site = await on(options);
    await boot(site, { cookies: { _ga: '1' } }, value);
    expect(await keys(site)).toEqual([expect.stringMatching(/^master:/)]);
  });

  test('that too many browsers send is refused for good, and each is known by its own id again', async () => {
    const site = await on(options);
    for (let browser = 0; browser < 11; browser += 1) {
      const answer = await boot(site, { cookies: { _ga: `of-${browser}` } }, RANDOM);
      expect(names(answer)).toEqual([]);
    }
    const { events, writes } = await stage.seen();
    expect(events).toEqual([
      { event: 'master_cookie_shared', fields: { plugin: 'cookie_restoration', site: site.id } },
    ]);
    const record = await stage.get('COOKIES', writes[0]?.slice('COOKIES/'.length) ?? '');
    expect(record).toMatchObject({ cookies: [], isShared: true });
    await stage.forward(40 * DAY_MS);
    const { id } = (await boot(site, { cookies: { _ga: 'mine' } }, RANDOM)).json.profile;
    await boot(site, { fpid: id, cookies: { _ga: 'mine' } }, RANDOM);
    expect(names(await boot(site, { fpid: id }, RANDOM))).toEqual(['_ga']);
    expect(await keys(site)).toEqual([id]);
  });

  test.each([
    ['the flag switched off', {}, {}],
    [
      'a denial',
      { cookie_restoration: true },
      { consent: { analytics_storage: 'denied', ad_storage: 'denied' } },
    ],
  ])('%s deletes what was kept under the key', async (_name, features, body) => {
    const site = await on(options);
    const { id } = (await boot(site, { cookies: { _ga: '1' } }, RANDOM)).json.profile;
    const [key = ''] = await keys(site);
    expect(await stage.get('COOKIES', `${site.id}:${key}`)).not.toBeNull();
    await stage.put('EDGE_CONFIG', site.container, {
      version: 2,
      module: 'tagyard',
      features,
      modules: options.modules,
      consent: 'opt_out',
    });
    await stage.forward(60_100);
    await boot(site, { fpid: id, ...body }, RANDOM);
    expect(await stage.get('COOKIES', `${site.id}:${key}`)).toBeNull();
  });
});
