import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { HOP_SECRET, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
let site: StagedSite;
beforeAll(async () => {
  stage = await startStage();
  site = await stage.site();
});
beforeEach(async () => {
  await stage.seen();
});
afterAll(() => stage.close());

const ID = /^[0-9a-f]{32}$/;
const known = 'a'.repeat(32);
const viaCustomDomain = (host: string) => ({
  'x-tagyard-hop-secret': HOP_SECRET,
  'x-forwarded-host': host,
  'x-forwarded-proto': 'https',
});
/** Cookies of the edge hostname. No page of the site sees them. */
const foreignCookie = (id: string) => ({ cookie: `other=1; _fpid=${id}` });
/** Cookies of a first-party host. */
const cookie = (id: string) => ({ ...viaCustomDomain('m.site1-0.example'), ...foreignCookie(id) });

describe('POST /boot', () => {
  test('answers exactly the members that the page needs', async () => {
    const answer = await stage.boot(site);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
    const [domain] = site.domains;
    expect(answer.json).toEqual({
      container: {
        id: site.container,
        token: domain?.token,
        webTagId: domain?.webTagId,
        scriptUrl: `http://${site.host}/c/${domain?.token}.js`,
      },
      site: { id: site.id, domain: domain?.domain },
      features: {},
      profile: { id: expect.stringMatching(ID), isNew: true },
      session: {
        id: expect.stringMatching(ID),
        isNew: true,
        expiresAt: expect.stringMatching(/Z$/),
        token: expect.stringMatching(/^[0-9a-f]{32}\.[0-9a-f]{8}\.[01]\.[0-9a-f]{32}$/),
      },
      restoreCookies: [],
    });
    const life = Date.parse(answer.json.session.expiresAt) - Date.now();
    expect(life).toBeGreaterThan(29 * 60_000);
    expect(life).toBeLessThanOrEqual(30 * 60_000);
  });

  test.each([
    ['an unknown loader', { loader: 'lt_unknown000000000' }, 'unknown_loader'],
    ['a malformed loader', { loader: '../../ROUTES' }, 'unknown_loader'],
    ['a page on a foreign domain', { url: 'https://elsewhere.example/' }, 'unknown_site'],
    ['a page on a host with the same ending', { url: 'https://evilsite1-0.example/' }, 'unknown_site'],
  ])('%s: 404', async (_name, body, code) => {
    expect(await stage.boot(site, body)).toMatchObject({ status: 404, json: { code } });
  });

  test('no registry document of the container: 404', async () => {
    const lost = await stage.site();
    await stage.remove('SITE_REGISTRY', lost.container);
    expect(await stage.boot(lost)).toMatchObject({ status: 404, json: { code: 'unknown_container' } });
  });
});

describe('_fpid', () => {
  test.each([
    ['read from the cookie', {}, cookie(known), known, false],
    ['read from the body if there is no cookie', { fpid: known }, {}, known, false],
    ['read from the cookie rather than the body', { fpid: 'b'.repeat(32) }, cookie(known), known, false],
    ['read from the body if the cookie is malformed', { fpid: known }, cookie('<script>'), known, false],
    ['new if neither is well-formed', { fpid: 'ZZZ' }, cookie(known.toUpperCase()), null, true],
    ['new if it is too long', { fpid: `${known}a` }, {}, null, true],
    ['new if only the edge hostname has a cookie', {}, foreignCookie(known), null, true],
    [
      'read from the body, although the edge hostname has another id',
      { fpid: known },
      foreignCookie('b'.repeat(32)),
      known,
      false,
    ],
    [
      'new if only a foreign host has a cookie',
      {},
      { ...viaCustomDomain('elsewhere.example'), ...foreignCookie(known) },
      null,
      true,
    ],
    [
      'read from a second cookie if the first one is malformed',
      {},
      cookie(`x; _fpid=${known}`),
      known,
      false,
    ],
    ['read from the first of two cookies', {}, cookie(`${known}; _fpid=${'b'.repeat(32)}`), known, false],
  ])('is %s', async (_name, body, headers, expected, isNew) => {
    const { json, text } = await stage.boot(site, body, headers);
    expect(json.profile).toEqual({ id: expected ?? expect.stringMatching(ID), isNew });
    expect(text).not.toMatch(/ZZZ|AAAA/);
    expect(text).not.toContain('script>');
  });

  test('is 128 bits, and different for each visitor', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => stage.boot(site)));
    expect(new Set(answers.map(({ json }) => json.profile.id)).size).toBe(20);
  });

  test.each([
    ['on the edge hostname: host-only', {}, ''],
    [
      'on a custom domain: for the registrable domain',
      viaCustomDomain('m.site1-0.example'),
      '; Domain=site1-0.example',
    ],
    [
      'for a host outside the site’s domains, stated by our proxy in x-forwarded-host: host-only',
      viaCustomDomain('elsewhere.example'),
      '',
    ],
    ['without the hop secret: host-only', { 'x-forwarded-host': 'm.site1-0.example' }, ''],
  ])('is set %s', async (_name, headers, domain) => {
    const answer = await stage.boot(site, {}, headers);
    expect(answer.headers['set-cookie']).toEqual([
      `_fpid=${answer.json.profile.id}; Path=/; Max-Age=34128000${domain}; Secure; SameSite=Lax`,
    ]);
  });
});

describe('domains', () => {
  const two = { domains: [{}, { domain: 'shop.site.co.uk', cookieDomain: 'site.co.uk' }] };

  test('multi_domain off: only the primary domain boots, passes CORS and has a container token', async () => {
    const single = await stage.site({ ...two, features: { multi_domain: false } });
    const url = 'https://shop.site.co.uk/';
    expect((await stage.boot(single)).status).toBe(200);
    expect((await stage.boot(single, { url })).json.code).toBe('unknown_site');
    expect((await stage.boot(single, { url }, { origin: 'https://shop.site.co.uk' })).status).toBe(403);
    expect((await stage.send(single.host, `/c/${single.domains[1]?.token}.js`)).json.code).toBe(
      'unknown_container',
    );
  });

  test('multi_domain on: each with its own web tag, token, cookie domain and CORS', async () => {
    const both = await stage.site({ ...two, features: { multi_domain: true } });
    const second = await stage.boot(
      both,
      { url: 'https://www.shop.site.co.uk/' },
      { origin: 'https://www.shop.site.co.uk', ...viaCustomDomain('m.site.co.uk') },
    );
    expect(second.json).toMatchObject({
      container: { token: both.domains[1]?.token, webTagId: both.domains[1]?.webTagId },
      site: { domain: 'shop.site.co.uk' },
    });
    expect(second.headers['access-control-allow-origin']).toBe('https://www.shop.site.co.uk');
    expect(second.headers['set-cookie']?.[0]).toContain('; Domain=site.co.uk;');
  });

  test('a domain that is inactive in the registry is off, whatever the flag', async () => {
    const inert = await stage.site({ domains: [{}, { active: false }], features: { multi_domain: true } });
    expect((await stage.boot(inert, { url: `https://${inert.domains[1]?.domain}/` })).json.code).toBe(
      'unknown_site',
    );
  });

  test('the longest match wins', async () => {
    const nested = await stage.site({
      domains: [{ domain: 'acme.example' }, { domain: 'shop.acme.example' }],
      features: { multi_domain: true },
    });
    const at = async (url: string) => (await stage.boot(nested, { url })).json.site.domain;
    expect(await at('https://a.shop.acme.example/')).toBe('shop.acme.example');
    expect(await at('https://a.acme.example/')).toBe('acme.example');
  });
});
