import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startChromium } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { Keycloak, PASSWORD } from '../support/login/keycloak.ts';
import { KeycloakStage } from '../support/login/keycloak-stage.ts';
import { Visitor } from '../support/login/visitor.ts';

const SECOND = 1_000;
/** The realm's `accessTokenLifespan`, which its ID tokens have too. */
const LIFESPAN = 300 * SECOND;
const own = { 'sec-fetch-site': 'same-origin' };
const CALLBACK = /\/session\/callback/;

describeWith('keycloak', 'with Keycloak as the identity provider', () => {
  let keycloak: Keycloak;
  let stage: KeycloakStage;

  beforeAll(async () => {
    keycloak = await Keycloak.start();
    stage = await KeycloakStage.open(keycloak, 'agency');
  }, 180_000);
  afterAll(async () => {
    await stage?.close();
    await keycloak?.close();
  });

  const answerOf = async (address: URL | string, as = new Visitor(), accept = '*/*') => {
    const response = await as.request(address, { headers: { accept } });
    return { status: response.status, text: await response.text() };
  };
  const refused = { status: 400, text: expect.stringContaining('"invalid_login"') };

  describeWith('chromium', 'the console', () => {
    test('is opened by a login at Keycloak, and closed by its own logout, after which Keycloak asks again', async () => {
      const chromium = await startChromium();
      await using visitor = await chromium.newContext();
      const page = await visitor.newPage();
      await page.goto(`${stage.url}/console`);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByLabel('Username or email').fill('ada');
      await page.getByRole('textbox', { name: 'Password' }).fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign In' }).click();
      await page.waitForURL(`${stage.url}/console`);
      await page.getByText('Ada Agency').waitFor();
      await page.getByRole('button', { name: 'Log out' }).click();
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByLabel('Username or email').waitFor();
      await chromium.close();
    });
  });

  describe('a login', () => {
    test('asks for a code with PKCE, a state and a nonce, and opens a session of the account', async () => {
      const visitor = new Visitor();
      const page = await stage.begin(visitor);
      expect(Object.fromEntries(page.url.searchParams)).toMatchObject({
        response_type: 'code',
        code_challenge_method: 'S256',
        code_challenge: expect.stringMatching(/^[\w-]{43}$/),
        state: expect.stringMatching(/^[\w-]{43}$/),
        nonce: expect.stringMatching(/^[\w-]{43}$/),
      });
      const { text } = await visitor.submit(page, { username: 'ada', password: PASSWORD });
      expect(JSON.parse(text)).toMatchObject({
        subject: await stage.idOf('ada'),
        name: 'Ada Agency',
        email: 'ada@agency.example',
        isOperator: false,
      });
    });

    test('has the same subject as a token for the API, and no other token of the realm is accepted', async () => {
      const me = await stage.world.call('GET', '/me', { token: await stage.bearer() });
      expect(me.body).toMatchObject({ subject: await stage.idOf('ada'), name: 'Ada Agency' });
      // This token has the same signature but another audience.
      expect(await stage.call(await stage.bearer('newsletter'))).toEqual([401, 'invalid_token']);
    });

    test('is refused with the answer of another realm, even if the answer names this realm', async () => {
      await keycloak.realm('elsewhere', stage.url);
      const visitor = new Visitor();
      const asked = (await stage.begin(visitor)).url;
      asked.pathname = asked.pathname.replace('/agency/', '/elsewhere/');
      const elsewhere = new Visitor();
      const page = await elsewhere.visit(asked);
      const { url: back } = await elsewhere.submit(page, { username: 'ada', password: PASSWORD }, CALLBACK);
      expect(await answerOf(back, visitor)).toEqual(refused);
      back.searchParams.set('iss', `${keycloak.url}/realms/agency`);
      expect(await answerOf(back, visitor)).toEqual(refused);
      expect(await stage.call(await stage.bearer('dashboard', 'elsewhere'))).toEqual([401, 'invalid_token']);
    });

    test.each(['state', 'nonce', 'verifier'])('is refused with the %s of another login', async (name) => {
      const visitor = new Visitor();
      const { host } = new URL(stage.url);
      const attemptOf = () =>
        JSON.parse(Buffer.from(visitor.cookies(host).get('tagyard-login') ?? '', 'base64url').toString());
      await stage.begin(visitor);
      const other = attemptOf();
      const { url: back } = await stage.logIn(visitor, 'ada', CALLBACK);
      const mixed = { ...attemptOf(), [name]: other[name] };
      visitor.setCookie(host, 'tagyard-login', Buffer.from(JSON.stringify(mixed)).toString('base64url'));
      expect(await answerOf(back, visitor)).toEqual(refused);
      expect(visitor.cookies(host).has('tagyard-session')).toBe(false);
    });

    test('is refused when its answer is sent again, and Keycloak then ends the first login', async () => {
      const visitor = new Visitor();
      const { url: back } = await stage.logIn(visitor, 'ada', CALLBACK);
      const attempt = visitor.cookies(new URL(stage.url).host).get('tagyard-login') ?? '';
      expect((await answerOf(back, visitor)).status).toBe(303);
      const thief = new Visitor();
      thief.setCookie(new URL(stage.url).host, 'tagyard-login', attempt);
      expect(await answerOf(back, thief)).toEqual(refused);
      await stage.passRefreshTime();
      expect(await stage.subjectOf(visitor)).toBe('expired_session');
    });

    test('says in the browser what is wrong and what to do, and logs the cause', async () => {
      const { status, text } = await answerOf(
        `${stage.url}/session/callback?code=a&state=b`,
        new Visitor(),
        'text/html',
      );
      expect(status).toBe(400);
      expect(text).toMatch(/This login can’t be completed[\s\S]*href="\/session\/login\?returnTo=%2F"/);
      const [, request] = /Request ([\w-]+)/.exec(text) ?? [];
      const lines = stage.world.logs.map((line) => JSON.parse(line));
      expect(lines.filter(({ reqId }) => reqId === request)).toEqual([
        expect.objectContaining({
          msg: 'a login has failed',
          err: expect.objectContaining({
            message: expect.stringContaining('no cookie of a login that has begun'),
          }),
        }),
      ]);
    });

    test('fails with a wrong client secret; the answer says so, and the failure is logged', async () => {
      const set = (secret: string) => stage.setSecret(secret);
      await set('another-secret');
      const visitor = new Visitor();
      const { url: back } = await stage.logIn(visitor, 'ada', CALLBACK);
      const logged = stage.world.logs.length;
      const { status, text } = await answerOf(back, visitor);
      await set('login-s3cret');
      expect([status, text]).toEqual([503, expect.stringContaining('OIDC_CLIENT_SECRET')]);
      expect(stage.world.logs.slice(logged).join('\n')).toContain('a login has failed');
    });
  });

  describe('a session', () => {
    let ada: Visitor;
    let ben: Visitor;
    let subject: string;
    beforeAll(async () => {
      subject = await stage.idOf('ada');
    });
    const begin = async () => {
      await Promise.all([stage.endAll('ada'), stage.endAll('ben')]);
      [ada, ben] = [await stage.person('ada'), await stage.person('ben')];
    };

    test('ends by a logout at Tagyard, which also ends the login at Keycloak', async () => {
      await begin();
      const answer = await ada.request(`${stage.url}/session/logout`, { method: 'POST', headers: own });
      const { logoutUrl } = JSON.parse(await answer.text());
      expect(await stage.subjectOf(ada)).toBe('missing_token');
      const after = await ada.visit(logoutUrl, /\/$/);
      expect(after.url.href).toBe(`${stage.url}/`);
      expect((await stage.begin(ada)).text).toContain('kc-form-login');
      expect(await stage.subjectOf(ben)).toBe(await stage.idOf('ben'));
    });

    test('ends at Keycloak, too, by a logout with an ID token that has expired', async () => {
      await stage.setLifespan(1);
      const short = await stage.person('ada');
      await stage.setLifespan(LIFESPAN / SECOND);
      const answer = await short.request(`${stage.url}/session/logout`, { method: 'POST', headers: own });
      const { logoutUrl } = JSON.parse(await answer.text());
      const [, claims = ''] = (new URL(logoutUrl).searchParams.get('id_token_hint') ?? '').split('.');
      const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
      await eventually(() => expect(Date.now() / SECOND).toBeGreaterThan(exp + 1));
      expect((await short.visit(logoutUrl, /\/$/)).url.href).toBe(`${stage.url}/`);
      expect((await stage.begin(short)).text).toContain('kc-form-login');
    });

    test('ends by a logout at Keycloak, from its browser or by an administrator; no other session ends', async () => {
      await begin();
      const again = await stage.person('ada');
      const page = await ada.visit(`${keycloak.url}/realms/agency/protocol/openid-connect/logout`);
      await ada.submit(page, { confirmLogout: 'Logout' });
      await eventually(async () => expect(await stage.subjectOf(ada)).toBe('expired_session'));
      expect(await stage.subjectOf(again)).toBe(subject);
      await stage.endAll('ada');
      await eventually(async () => expect(await stage.subjectOf(again)).toBe('expired_session'));
      expect(await stage.subjectOf(ben)).toBe(await stage.idOf('ben'));
    });

    test('ends within 15 minutes if an administrator ends several and Keycloak announces only one of them', async () => {
      await begin();
      const all = [ada, await stage.person('ada'), await stage.person('ada')];
      await stage.endAll('ada');
      await stage.passRefreshTime();
      for (const one of all) expect(await stage.subjectOf(one)).toBe('expired_session');
      expect(await stage.subjectOf(ben)).toBe(await stage.idOf('ben'));
    });

    test('of a disabled account ends within 15 minutes, and the account can’t log in again', async () => {
      await begin();
      await stage.change('ada', { enabled: false });
      expect(await stage.subjectOf(ada)).toBe(subject);
      await stage.passRefreshTime();
      expect(await stage.subjectOf(ada)).toBe('expired_session');
      expect(await stage.subjectOf(ben)).toBe(await stage.idOf('ben'));
      expect((await stage.logIn(new Visitor())).text).toContain('Account is disabled');
      await stage.change('ada', { enabled: true });
    });

    test('has the name that the account has now, and each of its refresh tokens is used once', async () => {
      await begin();
      await stage.change('ada', { lastName: 'Lovelace' });
      for (let round = 0; round < 3; round += 1) {
        await stage.passRefreshTime();
        const both = await Promise.all([stage.subjectOf(ada), stage.subjectOf(ada)]);
        expect(both).toEqual([subject, subject]);
      }
      expect(await (await ada.request(`${stage.url}/session`)).json()).toMatchObject({
        name: 'Ada Lovelace',
      });
    });

    test('and calls of the API continue while Keycloak is away; a login says so, and succeeds afterwards', async () => {
      await begin();
      const token = await stage.bearer();
      expect(await stage.call(token)).toEqual([200, undefined]);
      const { url: back } = await stage.begin(ben, CALLBACK);
      await stage.passRefreshTime();
      await keycloak.whileAway(async () => {
        expect(await stage.subjectOf(ada)).toBe(subject);
        expect(await stage.call(token)).toEqual([200, undefined]);
        const { status, text } = await answerOf(back, ben, 'text/html');
        expect([status, text]).toEqual([
          503,
          expect.stringMatching(/You can’t log in now[\s\S]*Log in again/),
        ]);
        stage.clock.advance(6 * SECOND); // so that the last login no longer proves that Keycloak answers
        const response = await new Visitor().request(`${stage.url}/session/login`);
        expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
        stage.clock.advance(-6 * SECOND);
      });
      expect((await ben.request(back)).status).toBe(303);
    });

    test('and a login accept a new signing key at once, when the old one is gone', async () => {
      await begin();
      const before = await stage.bearer();
      expect(await stage.call(before)).toEqual([200, undefined]);
      // From now on the keys are cached: for a time, they are fetched again only if a token names another key.
      await stage.endAll('ada');
      await eventually(async () => expect(await stage.subjectOf(ada)).toBe('expired_session'));
      await stage.rotateKey();
      await stage.passRefreshTime();
      expect(await stage.subjectOf(ben)).toBe(await stage.idOf('ben'));
      await eventually(async () => {
        const later = await stage.person('ada');
        await stage.endAll('ada');
        expect(await stage.subjectOf(later)).toBe('expired_session');
      });
      await eventually(async () => expect(await stage.call(await stage.bearer())).toEqual([200, undefined]));
      expect(await stage.call(before)).toEqual([401, 'invalid_token']);
    });
  });

  describe('clocks that differ', () => {
    let moved = 0;
    const move = (ms: number) => {
      moved += ms;
      stage.clock.advance(ms);
    };
    afterEach(() => move(-moved));

    test.each([
      ['40 s behind', 200, -40 * SECOND],
      ['ten minutes behind, so that tokens are dated in the future', 200, -600 * SECOND],
      ['ahead, so that tokens expired 30 s ago', 200, LIFESPAN + 30 * SECOND],
      ['ahead, so that tokens expired 90 s ago', 400, LIFESPAN + 90 * SECOND],
    ])('a login while Tagyard’s clock is %s: status %s', async (_what, status, ms) => {
      move(ms);
      const { response, text } = await stage.logIn(new Visitor());
      expect(response.status).toBe(status);
      if (status !== 200) expect(text).toContain('to check its clock');
    });

    test.each([
      ['40 s behind', 'ends', -40 * SECOND],
      ['40 s ahead', 'ends', 40 * SECOND],
      ['ten minutes behind', 'ends at its refresh', -600 * SECOND],
    ])('a logout at Keycloak while Tagyard’s clock is %s: the session %s', async (_what, outcome, ms) => {
      await stage.endAll('ada');
      const ada = await stage.person('ada');
      const subject = await stage.idOf('ada');
      move(ms);
      await stage.endAll('ada');
      const expected = outcome === 'ends' ? 'expired_session' : subject;
      await eventually(async () => expect(await stage.subjectOf(ada)).toBe(expected));
      // If the logout message was refused, the refresh notices the logout.
      await stage.passRefreshTime();
      expect(await stage.subjectOf(ada)).toBe('expired_session');
    });
  });
});
