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
  site = await stage.site();
});
beforeEach(async () => {
  await stage.seen();
});
afterAll(() => stage.close());

const DAY_MS = 86_400_000;
const known = 'a'.repeat(32);
const viaCustomDomain = ({ id }: StagedSite) => ({
  'x-tagyard-hop-secret': HOP_SECRET,
  'x-forwarded-host': `m.${id}-0.example`,
  'x-forwarded-proto': 'https',
});
const cookie = (of: StagedSite, text: string) => ({ ...viaCustomDomain(of), cookie: text });
const restoring = (options: SiteOptions = {}) =>
  stage.site({ features: { cookie_restoration: true }, ...options });
/** Keys of the cookie store that were read and written since the last call. */
async function operations() {
  const { reads, writes } = await stage.seen();
  return { reads: reads.filter((key) => key.startsWith('COOKIES')), writes };
}

describe('the session', () => {
  test('is known again without the store, until it is idle for 30 minutes', async () => {
    const first = (await stage.boot(site)).json;
    const again = async (id: string) =>
      (await stage.boot(site, { fpid: first.profile.id, session: { id } })).json;
    let { token } = first.session;
    for (let view = 0; view < 3; view += 1) {
      await stage.forward(30 * 60_000 - 20_000); // real time passes, too
      const { session } = await again(token);
      expect(session).toMatchObject({ id: first.session.id, isNew: false });
      expect(session.token).not.toBe(token);
      token = session.token;
    }
    await stage.forward(30 * 60_000 + 2000);
    const { session } = await again(token);
    expect(session.isNew).toBe(true);
    expect(session.id).not.toBe(first.session.id);
    expect(await operations()).toMatchObject({ writes: [] });
  });

  test('is known by its id alone for 30 minutes from its start', async () => {
    const first = (await stage.boot(site)).json;
    const again = async () =>
      (await stage.boot(site, { fpid: first.profile.id, session: { id: first.session.id } })).json.session;
    await stage.forward(30 * 60_000 - 20_000); // real time passes, too
    expect(await again()).toMatchObject({ id: first.session.id, isNew: false });
    await stage.forward(22_000);
    expect((await again()).isNew).toBe(true);
  });

  test('stays the same for hours on all hosts of the domain, and no record is written for it', async () => {
    const own = await restoring();
    const cookies = { _fbp: '1' };
    const first = (await stage.boot(own, { cookies })).json;
    await stage.seen();
    let { token } = first.session;
    for (const host of ['blog', 'www', 'shop.blog', 'blog']) {
      await stage.forward(29 * 60_000);
      const url = `https://${host}.${own.domains[0]?.domain}/`;
      const body = { url, fpid: first.profile.id, session: { id: token }, cookies };
      const { session } = (await stage.boot(own, body)).json;
      expect(session).toMatchObject({ id: first.session.id, isNew: false });
      token = session.token;
    }
    expect((await operations()).writes).toEqual([]);
  });

  test('is known without its token for 30 minutes from the record’s last write, and causes no write', async () => {
    const own = await restoring();
    const first = (await stage.boot(own, { cookies: { _fbp: '1' } })).json;
    const withoutToken = async (cookies: object) =>
      (await stage.boot(own, { fpid: first.profile.id, cookies })).json.session;
    await stage.forward(29 * 60_000);
    expect(await withoutToken({ _fbp: '1' })).toMatchObject({ id: first.session.id, isNew: false });
    // A changed cookie is written, and the session with it.
    expect(await withoutToken({ _fbp: '2' })).toMatchObject({ id: first.session.id, isNew: false });
    await stage.forward(29 * 60_000);
    expect(await withoutToken({ _fbp: '2' })).toMatchObject({ id: first.session.id, isNew: false });
    await stage.seen();
    await stage.forward(2 * 60_000);
    expect((await withoutToken({ _fbp: '2' })).isNew).toBe(true);
    expect((await operations()).writes).toEqual([]);
  });

  test('is known to every isolate with the same secret', async () => {
    const first = (await stage.boot(site)).json;
    await stage.restart();
    const { session } = (
      await stage.boot(site, { fpid: first.profile.id, session: { id: first.session.token } })
    ).json;
    expect(session).toMatchObject({ id: first.session.id, isNew: false });
  });

  test('of an earlier version is continued by the profile’s record, also if the request names no session', async () => {
    const own = await restoring();
    const at = Date.now() + 86_400_000 * 300;
    const session = { id: 'b'.repeat(32), lastSeenAt: at };
    const kept = { name: '_ga', value: '1', setAt: at, expiresAt: at + DAY_MS };
    await stage.put('COOKIES', `${own.id}:${known}`, { version: 1, session, cookies: [kept] });
    for (const named of [session.id, undefined]) {
      const body = { fpid: known, ...(named && { session: { id: named } }) };
      expect((await stage.boot(own, body)).json.session).toMatchObject({ id: session.id, isNew: false });
    }
  });

  test.each<[string, (first: { id: string; token: string }) => string | undefined]>([
    ['an unknown id', () => 'c'.repeat(32)],
    ['a malformed one', () => '"><script>'],
    ['none', () => undefined],
    ['a changed time', ({ token }) => token.replace(/\.[0-9a-f]{8}\./, '.7fffffff.')],
    ['a changed id', ({ token }) => `${'0'.repeat(32)}${token.slice(32)}`],
    ['a changed signature', ({ token }) => token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')],
    ['an id with another start', ({ id }) => `00000000${id.slice(8)}`],
  ])('is new if the caller names %s', async (_name, naming) => {
    const first = (await stage.boot(site)).json;
    const id = naming(first.session);
    const body = { fpid: first.profile.id, ...(id !== undefined && { session: { id } }) };
    const { session } = (await stage.boot(site, body)).json;
    expect(session).toMatchObject({ id: expect.stringMatching(/^[0-9a-f]{32}$/), isNew: true });
  });

  test('of another profile or of another site is not continued', async () => {
    const first = (await stage.boot(site)).json;
    for (const id of [first.session.token, first.session.id]) {
      const session = { id };
      expect((await stage.boot(site, { session, fpid: known })).json.session.isNew).toBe(true);
      const other = await stage.site();
      expect((await stage.boot(other, { session, fpid: first.profile.id })).json.session.isNew).toBe(true);
    }
  });
});

describe('the id', () => {
  test('is set once, and its life is not extended by later bootstraps', async () => {
    const { headers, json } = await stage.boot(site, {}, viaCustomDomain(site));
    const { id } = json.profile;
    expect(headers['set-cookie']).toEqual([
      `_fpid=${id}; Path=/; Max-Age=34128000; Domain=${site.id}-0.example; Secure; SameSite=Lax`,
    ]);
    const later = await stage.boot(site, {}, cookie(site, `_fpid=${id}`));
    expect(later.json.profile).toEqual({ id, isNew: false });
    expect(later.headers['set-cookie']).toBeUndefined();
  });

  test.each([
    ['a malformed one', '<script>'],
    ['a foreign one', 'A'.repeat(32)],
  ])('replaces %s once, not at each view', async (_name, value) => {
    const first = await stage.boot(site, {}, cookie(site, `_fpid=${value}`));
    const { id } = first.json.profile;
    expect(first.headers['set-cookie']).toHaveLength(1);
    // Browsers send the older cookie first.
    const second = await stage.boot(site, {}, cookie(site, `_fpid=${value}; _fpid=${id}`));
    expect(second.json.profile).toEqual({ id, isNew: false });
    expect(second.headers['set-cookie']).toBeUndefined();
  });

  test('of another site is replaced once on the edge hostname', async () => {
    const planted = { cookie: `_fpid=${'e'.repeat(32)}` };
    const first = await stage.boot(site, {}, planted);
    const { id } = first.json.profile;
    expect(id).not.toBe('e'.repeat(32));
    const second = await stage.boot(site, { fpid: id }, { cookie: `_fpid=${id}` });
    expect(second.headers['set-cookie']).toBeUndefined();
  });

  test.each([
    ['13 months by default', {}, 395],
    ['the site’s own number of days', { custom_loader: { identityDays: 30 } }, 30],
  ])('ends after %s, with all that is kept', async (_name, modules, days) => {
    const own = await restoring({ modules });
    const { json, headers } = await stage.boot(own, { cookies: { _ga: '1' } });
    expect(headers['set-cookie']).toEqual([expect.stringContaining(`Max-Age=${days * 86_400};`)]);
    const { id } = json.profile;
    const key = `${own.id}:${id}`;
    const first = await stage.expiration('COOKIES', key);
    await stage.forward((days - 1) * DAY_MS);
    const near = (await stage.boot(own, { fpid: id })).json;
    expect(near).toMatchObject({ profile: { id }, restoreCookies: [{ name: '_ga' }] });
    expect(near.restoreCookies[0].maxAge).toBeLessThanOrEqual(86_400);
    await stage.boot(own, { fpid: id, cookies: { _ga: '2' } });
    await stage.forward(DAY_MS);
    const over = (await stage.boot(own, { fpid: id, cookies: { _ga: '2' } })).json;
    expect(over.profile.isNew).toBe(true);
    expect(over.profile.id).not.toBe(id);
    expect(over.session.isNew).toBe(true);
    expect(await stage.get('COOKIES', key)).toBeNull();
    expect(first).toBeDefined();
  });
});

describe('the cookie store', () => {
  const key = (of: StagedSite, id: string) => `COOKIES/${of.id}:${id}`;

  test.each([
    ['with nothing to keep', true, {}],
    ['without a plugin that keeps something', false, { _ga: '1' }],
  ])('isn’t used for a new visitor %s', async (_name, isOn, cookies) => {
    const own = isOn ? await restoring() : await stage.site();
    await stage.boot(own);
    await stage.seen();
    await stage.boot(own, { cookies });
    expect(await operations()).toEqual({ reads: [], writes: [] });
  });

  test('gets one write for a new visitor with something to keep, then one read per view, and one write per change', async () => {
    const own = await restoring();
    const { id } = (await stage.boot(own, { cookies: { _ga: '1' } })).json.profile;
    expect(await operations()).toEqual({ reads: [], writes: [key(own, id)] });
    await stage.boot(own, { fpid: id, cookies: { _ga: '1' } });
    expect(await operations()).toEqual({ reads: [key(own, id)], writes: [] });
    await stage.boot(own, { fpid: id, cookies: { _ga: '2' } });
    expect(await operations()).toEqual({ reads: [key(own, id)], writes: [key(own, id)] });
  });

  test('is written only once in half an hour for a cookie that counts hits', async () => {
    const own = await restoring();
    const { id } = (await stage.boot(own, { cookies: { _ga_X: 'GS1.1.1' } })).json.profile;
    await stage.boot(own, { fpid: id, cookies: { _ga_X: 'GS1.1.2' } });
    expect((await operations()).writes).toHaveLength(1);
    await stage.forward(31 * 60_000);
    await stage.boot(own, { fpid: id, cookies: { _ga_X: 'GS1.1.3' } });
    expect(await stage.get('COOKIES', `${own.id}:${id}`)).toMatchObject({ cookies: [{ value: 'GS1.1.3' }] });
  });

  test('isn’t used by later views of a session if no plugin keeps something', async () => {
    const own = await stage.site();
    const first = (await stage.boot(own)).json;
    const view = (id: string) => stage.boot(own, { fpid: first.profile.id, session: { id } });
    const second = (await view(first.session.token)).json;
    await stage.seen();
    await view(second.session.token);
    await view(second.session.token);
    expect(await operations()).toEqual({ reads: [], writes: [] });
  });

  test('isn’t read, written or cleared for a bot, which gets no id and no cookie', async () => {
    const own = await restoring();
    const { id } = (await stage.boot(own, { cookies: { _ga: '1' } })).json.profile;
    await stage.seen();
    const bot = { 'user-agent': 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)' };
    for (const body of [
      {},
      { fpid: id, cookies: { _ga: '2' } },
      { fpid: id, consent: { ad_storage: 'denied', analytics_storage: 'denied' } },
    ]) {
      const answer = await stage.boot(own, body, { ...cookie(own, `_fpid=${id}`), ...bot });
      expect(answer).toMatchObject({ status: 200, json: { profile: null, restoreCookies: [] } });
      expect(answer.headers['set-cookie']).toBeUndefined();
    }
    expect(await operations()).toEqual({ reads: [], writes: [] });
    expect(await stage.get('COOKIES', `${own.id}:${id}`)).not.toBeNull();
  });

  test('deletes a profile’s record at the next bootstrap if the flag is switched off', async () => {
    const own = await restoring();
    const first = (await stage.boot(own, { cookies: { _ga: '1' } })).json;
    const { id } = first.profile;
    const document = { version: 2, module: 'tagyard', features: {}, modules: {}, consent: 'opt_out' };
    await stage.put('EDGE_CONFIG', own.container, document);
    await stage.forward(60_100);
    const next = (await stage.boot(own, { fpid: id, session: { id: first.session.token } })).json;
    expect(next).toMatchObject({ profile: { id, isNew: false }, restoreCookies: [] });
    expect(next.session).toMatchObject({ id: first.session.id, isNew: false });
    expect(await stage.get('COOKIES', `${own.id}:${id}`)).toBeNull();
  });
});
