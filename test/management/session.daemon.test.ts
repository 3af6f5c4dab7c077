import getPort from 'get-port';
import { type CryptoKey, generateKeyPair, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { LoginSettings } from '../../management/context/context.ts';
import { eventually } from '../support/eventually.ts';
import { LOGIN_CLIENT_ID, LoginProvider, newSigningKey } from '../support/login/provider.ts';
import { type Visit, Visitor } from '../support/login/visitor.ts';
import { creation, World } from '../support/management/world.ts';
import { movableClock } from '../support/movable-clock.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The API's clock; the provider has the system's. */
let clock: ReturnType<typeof movableClock>;
let ahead = 0;
function advance(ms: number): void {
  ahead += ms;
  clock.advance(ms);
}
let provider: LoginProvider;
let world: World;
let url: string;
let host: string;
let login: LoginSettings;
let visitor: Visitor;

/** Starts the API at an address that is chosen first, because the provider must know where to return. */
async function open(settings: Partial<LoginSettings> = {}): Promise<void> {
  clock = movableClock();
  ahead = 0;
  host = `127.0.0.1:${await getPort({ host: '127.0.0.1' })}`;
  url = `http://${host}`;
  provider = await LoginProvider.start(url);
  login = {
    issuer: provider.url,
    clientId: LOGIN_CLIENT_ID,
    clientSecret: 'login-s3cret',
    subjectClaim: 'sub',
    publicUrl: url,
    hints: ['owner', 'viewer'].map((hint) => ({ hint, name: `The ${hint}`, description: hint })),
    idleSeconds: 1_800,
    absoluteSeconds: 8 * 3_600,
    ...settings,
  };
  world = await World.open({
    clock,
    settings: { login, dashboardOrigins: ['https://dashboard.example'] },
  });
  await world.management?.app.listen({ host: '127.0.0.1', port: Number(new URL(url).port) });
}
async function close(): Promise<void> {
  await world.close();
  await provider.stop();
}

/** Logs in as a person does: opens the address, and presses the account's button. */
async function logIn(subject: string, returnTo = '/session'): Promise<Visit> {
  const page = await visitor.visit(`${url}/session/login?returnTo=${encodeURIComponent(returnTo)}`);
  return await visitor.submit(page, { account: subject });
}

async function call(path: string, init: RequestInit = {}) {
  const response = await visitor.request(`${url}${path}`, init);
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) };
}

const own = { 'sec-fetch-site': 'same-origin' };

describe('with another claim as subject', () => {
  beforeAll(() => open({ subjectClaim: 'email' }));
  afterAll(close);

  test('a session’s subject is that claim, also after its identity was refreshed', async () => {
    visitor = new Visitor();
    await logIn('owner');
    const subject = 'owner@tagyard.localhost';
    expect((await call('/session')).body).toMatchObject({ subject });
    advance(16 * MINUTE);
    expect((await call('/session')).body).toMatchObject({ subject });
  });
});

describe('a session', () => {
  beforeAll(() => open());
  afterAll(close);
  beforeEach(() => {
    visitor = new Visitor();
  });

  test('acts as the same caller as a token with the same subject', async () => {
    const client = await world.client();
    const visit = await logIn('owner', '/session?from=login');
    expect([visit.response.status, visit.url.href]).toEqual([200, `${url}/session?from=login`]);
    const { body } = await call('/session');
    expect(body).toEqual({
      subject: 'owner',
      name: 'The owner',
      email: 'owner@tagyard.localhost',
      isOperator: false,
      csrfToken: expect.stringMatching(/^[\w-]{43}$/),
      endsAt: expect.any(String),
    });
    const made = await call('/server-containers', {
      method: 'POST',
      headers: { ...own, 'content-type': 'application/json' },
      body: JSON.stringify(creation(client, 'by-session.example')),
    });
    expect(made.status).toBe(202);
    const listed = await world.call('GET', '/server-containers', { as: 'owner' });
    const { body: seen } = await call('/server-containers');
    expect(seen.containers.map(({ id }: { id: string }) => id)).toEqual([made.body.id]);
    expect(listed.body.containers).toMatchObject([{ id: made.body.id }]);
    const audit = await world.owner
      .selectFrom('audit_log')
      .selectAll()
      .orderBy('seq', 'desc')
      .executeTakeFirst();
    expect(audit).toMatchObject({ actor: 'owner', action: 'createContainer' });
  });

  test('authorizes each change of a bulk request', async () => {
    const client = await world.client();
    await logIn('owner');
    const made = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, 'bulk.example'),
    });
    const { csrfToken } = (await call('/session')).body;
    for (const headers of [own, { 'x-csrf-token': csrfToken }]) {
      const bulk = await call('/bulk?dryRun=1', {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ items: [{ verb: 'change', id: made.body.id, body: { name: 'In bulk' } }] }),
      });
      expect(bulk.body).toMatchObject({ done: 1, refused: 0 });
    }
  });

  test('has the account that a page of this origin chose, even if another account is logged in at the provider', async () => {
    const choose = (hint: string, headers: Record<string, string>) =>
      visitor.visit(`${url}/session/login?returnTo=/session&hint=${hint}`, undefined, { headers });
    for (const hint of ['owner', 'viewer', 'owner']) {
      expect(JSON.parse((await choose(hint, own)).text)).toMatchObject({ subject: hint });
    }
    // A link from elsewhere can't choose the account, so it is the one that is logged in at the provider.
    expect(JSON.parse((await choose('viewer', { 'sec-fetch-site': 'none' })).text)).toMatchObject({
      subject: 'owner',
    });
    expect((await call('/session/logins')).body).toMatchObject({
      isPossible: true,
      hasSession: true,
      accounts: [{ hint: 'owner' }, { hint: 'viewer' }],
    });
  });

  test('shows that its subject is an operator', async () => {
    await logIn('root');
    expect((await call('/session')).body).toMatchObject({ subject: 'root', isOperator: true });
  });

  test('is in a cookie that no script can read, and of which the database has no copy', async () => {
    const page = await visitor.visit(`${url}/session/login`);
    const begun = visitor.cookies(host).get('tagyard-login');
    expect(begun).toMatch(/./);
    const back = await visitor.submit(page, { account: 'owner' }, /\/session\/callback/);
    const answered = await visitor.request(back.url);
    const [gone, set] = answered.headers.getSetCookie();
    expect(gone).toMatch(/^tagyard-login=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax$/);
    expect(set).toMatch(/^tagyard-session=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Lax$/);
    const id = visitor.cookies(host).get('tagyard-session') ?? '';
    const rows = JSON.stringify(await world.owner.selectFrom('sessions').selectAll().execute());
    expect(rows).not.toContain(id);
    expect(rows).not.toMatch(/eyJ[\w-]+\.eyJ/); // a token
    expect(world.logs.join('\n')).not.toContain(id);
  });

  test('has a new id after each login', async () => {
    visitor.setCookie(host, 'tagyard-session', 'a'.repeat(43));
    await logIn('owner');
    const first = visitor.cookies(host).get('tagyard-session');
    await logIn('owner');
    const second = visitor.cookies(host).get('tagyard-session') ?? '';
    expect(new Set(['a'.repeat(43), first, second]).size).toBe(3);
    visitor.setCookie(host, 'tagyard-session', first ?? '');
    expect((await call('/session')).body.code).toBe('expired_session');
  });

  test.each<[string, RequestInit, number]>([
    ['a change from this origin', { method: 'POST', headers: own }, 404],
    ['a change without a proof', { method: 'POST' }, 403],
    ['a change from another site', { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } }, 403],
    ['a change from another origin', { method: 'POST', headers: { 'sec-fetch-site': 'same-site' } }, 403],
    ['a change with a wrong token', { method: 'DELETE', headers: { 'x-csrf-token': 'x'.repeat(43) } }, 403],
    ['a read from another site', { headers: { 'sec-fetch-site': 'cross-site' } }, 403],
    ['a read of an address that a person typed', { headers: { 'sec-fetch-site': 'none' } }, 200],
  ])('answers %s with status %s', async (_what, init, status) => {
    await logIn('owner');
    const nowhere = '/server-containers/00000000-0000-4000-8000-000000000000';
    const path =
      init.method === undefined ? '/session' : `${nowhere}${init.method === 'POST' ? '/verify' : ''}`;
    const answered = await call(path, init);
    expect([answered.status, answered.body.code]).toEqual([
      status,
      { 200: undefined, 403: 'cross_site', 404: 'unknown_container' }[status],
    ]);
  });

  test('proves a change by its own token, which is of no use for another session', async () => {
    await logIn('owner');
    const { csrfToken } = (await call('/session')).body;
    const nowhere = '/server-containers/00000000-0000-4000-8000-000000000000';
    const change = () => call(nowhere, { method: 'DELETE', headers: { 'x-csrf-token': csrfToken } });
    expect((await change()).body.code).toBe('unknown_container');
    await logIn('owner');
    expect((await change()).body.code).toBe('cross_site');
  });

  test.each([
    ['a request without a cookie', {}, 'missing_token'],
    ['a made-up cookie', { cookie: `tagyard-session=${'x'.repeat(43)}` }, 'expired_session'],
    ['the API’s internal scheme', { authorization: `Session ${'x'.repeat(43)}` }, 'missing_token'],
  ])('isn’t opened by %s', async (_what, headers, code) => {
    const answered = await call('/session', { headers });
    expect([answered.status, answered.body.code]).toEqual([401, code]);
  });

  test('isn’t opened by the API’s internal scheme, even with a valid id', async () => {
    await logIn('owner');
    const id = visitor.cookies(host).get('tagyard-session');
    const answered = await new Visitor().request(`${url}/session`, {
      headers: { authorization: `Session ${id}` },
    });
    expect(answered.status).toBe(401);
  });

  test('follows events, until it ends', async () => {
    const client = await world.client();
    const body = creation(client, 'streamed.example');
    const { id } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
    await logIn('owner');
    const accept = { accept: 'text/event-stream' };
    const stream = await visitor.request(`${url}/server-containers/${id}/events`, { headers: accept });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '' as string;
    while (!text.includes('data: ')) text += (await reader?.read())?.value ?? '';
    await call('/session/logout', { method: 'POST', headers: own });
    await eventually(async () => expect((await reader?.read())?.done).toBe(true));
  });
});

describe('a login', () => {
  beforeAll(() => open());
  afterAll(close);
  beforeEach(() => {
    visitor = new Visitor();
  });

  const back = async () => {
    const page = await visitor.visit(`${url}/session/login`);
    return (await visitor.submit(page, { account: 'owner' }, /\/session\/callback/)).url;
  };
  const answerOf = async (address: URL, as = visitor) => {
    const response = await as.request(address);
    const { code } = JSON.parse(await response.text());
    return { status: response.status, code };
  };
  const refused = { status: 400, code: 'invalid_login' };

  test('is refused in another browser', async () => {
    expect(await answerOf(await back(), new Visitor())).toEqual(refused);
  });

  test.each([
    ['state', 'forged'],
    ['state', ''],
    ['code', 'forged'],
    ['iss', 'https://other.example'],
  ])('is refused with another %s (%j)', async (name, value) => {
    const address = await back();
    if (value === '') address.searchParams.delete(name);
    else address.searchParams.set(name, value);
    expect(await answerOf(address)).toEqual(refused);
    expect(visitor.cookies(host).has('tagyard-session')).toBe(false);
  });

  test('is refused when its code is sent again, also with the cookie of the attempt', async () => {
    const address = await back();
    const attempt = visitor.cookies(host).get('tagyard-login') ?? '';
    expect((await visitor.request(address)).status).toBe(303);
    expect(await answerOf(address)).toEqual(refused);
    visitor.setCookie(host, 'tagyard-login', attempt);
    expect(await answerOf(address)).toEqual(refused);
  });

  test('is refused when the person doesn’t log in', async () => {
    const address = new URL(`${url}/session/callback?error=access_denied`);
    const begun = await visitor.request(`${url}/session/login`);
    const asked = new URL(begun.headers.get('location') ?? '');
    address.searchParams.set('state', asked.searchParams.get('state') ?? '');
    address.searchParams.set('iss', provider.url);
    expect(await answerOf(address)).toEqual(refused);
  });

  test.each(['//evil.example/', 'https://evil.example/', '/\\evil.example', 'evil', '/a\nb'])(
    'leads back to a path of this origin only, not to %j',
    async (returnTo) => {
      const { status, body } = await call(`/session/login?returnTo=${encodeURIComponent(returnTo)}`);
      expect([status, body.code]).toEqual([400, 'invalid_request']);
    },
  );

  test('asks for PKCE with S256, a state and a nonce', async () => {
    const { headers } = await visitor.request(`${url}/session/login`);
    const asked = new URL(headers.get('location') ?? '').searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: 'code',
      client_id: LOGIN_CLIENT_ID,
      redirect_uri: `${url}/session/callback`,
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
  });

  test('succeeds again soon after the provider has begun to sign with a new key', async () => {
    await logIn('owner');
    await provider.restart(await newSigningKey('key-2'));
    visitor = new Visitor();
    await eventually(async () => expect((await logIn('viewer')).response.status).toBe(200));
  });
});

describe('a session’s end', () => {
  beforeAll(() => open());
  afterAll(close);
  afterEach(() => advance(-ahead));
  beforeEach(() => {
    visitor = new Visitor();
  });

  const code = async () => (await call('/session')).body.code;

  test('comes when the session isn’t used for some time', async () => {
    await logIn('owner');
    advance(29 * MINUTE);
    expect(await code()).toBeUndefined();
    advance(29 * MINUTE);
    expect(await code()).toBeUndefined();
    advance(31 * MINUTE);
    expect(await code()).toBe('expired_session');
    expect(await world.owner.selectFrom('sessions').select('subject').execute()).toEqual([]);
  });

  test('comes after the maximum duration, although the session is used', async () => {
    await logIn('owner');
    for (let passed = 0; passed < 8 * HOUR - 20 * MINUTE; passed += 20 * MINUTE) {
      advance(20 * MINUTE);
      expect(await code()).toBeUndefined();
    }
    advance(20 * MINUTE);
    expect(await code()).toBe('expired_session');
  });

  test('comes by a logout here, which also leads to a logout at the provider', async () => {
    await logIn('owner');
    const kept = visitor.cookies(host).get('tagyard-session') ?? '';
    const refused = await call('/session/logout', { method: 'POST' });
    expect(refused.body.code).toBe('cross_site');
    const { status, body } = await call('/session/logout', { method: 'POST', headers: own });
    expect([status, body.logoutUrl]).toEqual([200, expect.stringContaining(provider.url)]);
    expect(visitor.cookies(host).has('tagyard-session')).toBe(false);
    visitor.setCookie(host, 'tagyard-session', kept);
    expect(await code()).toBe('expired_session');
    const page = await visitor.visit(body.logoutUrl);
    const left = await visitor.submit(page, { logout: 'yes' }, /\/$/);
    expect(left.url.href).toBe(`${url}/`);
    expect((await visitor.visit(`${url}/session/login`)).text).toContain('name="account"');
  });

  test('comes by a logout at the provider', async () => {
    await logIn('owner');
    const other = new Visitor();
    const mine = visitor;
    visitor = other;
    await logIn('owner');
    visitor = mine;
    const page = await visitor.visit(`${provider.url}/session/end`);
    await visitor.submit(page, { logout: 'yes' });
    await eventually(async () => expect(await code()).toBe('expired_session'));
    visitor = other;
    expect(await code()).toBeUndefined();
  });

  test('comes when the provider no longer knows the login', async () => {
    await logIn('owner');
    await provider.restart();
    // Within this time the identity isn't refreshed.
    advance(10 * MINUTE);
    expect(await code()).toBeUndefined();
    advance(6 * MINUTE);
    await eventually(async () => expect(await code()).toBe('expired_session'));
  });

  test('doesn’t come while the provider is away', async () => {
    await logIn('owner');
    await provider.stop();
    advance(20 * MINUTE);
    expect(await code()).toBeUndefined();
    await provider.restart();
  });
});

test('while the provider is away, a login says when to try again', async () => {
  await open();
  visitor = new Visitor();
  await provider.stop();
  const { status, headers, body } = await call('/session/login');
  expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'login_unavailable', '5']);
  await provider.restart();
  await logIn('owner');
  const page = await visitor.visit(`${url}/session/login`, /\/session\/callback/);
  await provider.stop();
  const answered = await visitor.request(page.url);
  expect([answered.status, answered.headers.get('retry-after')]).toEqual([503, '5']);
  // The provider's metadata is known from before, but the browser must not be sent to a provider that is away.
  advance(6_000);
  const opened = await visitor.request(`${url}/session/login?returnTo=/console`, {
    headers: { accept: 'text/html,*/*;q=0.8' },
  });
  const said = await opened.text();
  expect([opened.status, opened.headers.get('content-type')]).toEqual([503, 'text/html; charset=utf-8']);
  expect(opened.headers.get('content-security-policy')).not.toContain('unsafe');
  expect(said).toMatch(/You can’t log in now[\s\S]*href="\/session\/login\?returnTo=%2Fconsole"/);
  expect(said).toContain(opened.headers.get('x-request-id'));
  await close();
});

test.each([
  ['55 s behind', 55_000, 200],
  ['55 s ahead', -55_000, 200],
  ['so far behind that its tokens have expired', HOUR + 2 * MINUTE, 400],
])('with a provider whose clock is %s, a login ends with status $2', async (_what, ms, status) => {
  await open();
  visitor = new Visitor();
  advance(ms);
  expect((await logIn('owner')).response.status).toBe(status);
  await close();
});

describe('a logout token', () => {
  beforeAll(() => open());
  afterAll(close);
  beforeEach(() => {
    visitor = new Visitor();
  });
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };

  async function send(claims: Record<string, unknown>, key?: CryptoKey) {
    const now = Math.floor(Date.now() / 1000);
    const payload = {
      iss: provider.url,
      aud: LOGIN_CLIENT_ID,
      sub: 'owner',
      jti: '1',
      iat: now,
      exp: now + 60,
    };
    const token = await new SignJWT({ ...payload, events, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: 'key-1', typ: 'logout+jwt' })
      .sign(key ?? (await provider.key()));
    return await call('/session/backchannel-logout', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ logout_token: token }).toString(),
    });
  }

  test('of a subject ends all of its sessions, and no other', async () => {
    await logIn('owner');
    const owner = visitor;
    visitor = new Visitor();
    await logIn('viewer');
    expect((await send({})).status).toBe(200);
    expect((await call('/session')).status).toBe(200);
    visitor = owner;
    expect((await call('/session')).body.code).toBe('expired_session');
  });

  test.each<[string, Record<string, unknown>]>([
    ['without the event', { events: {} }],
    ['with a nonce, like an ID token', { nonce: 'n' }],
    ['of another issuer', { iss: 'https://other.example' }],
    ['for another client', { aud: 'other' }],
    ['with neither a subject nor a session of the provider', { sub: undefined }],
    ['that is old', { iat: 1_000 }],
  ])('%s ends nothing', async (_what, claims) => {
    await logIn('owner');
    const { status, body } = await send(claims);
    expect([status, body.code]).toEqual([400, 'invalid_request']);
    expect((await call('/session')).status).toBe(200);
  });

  test('that another key has signed ends nothing', async () => {
    await logIn('owner');
    const { privateKey } = await generateKeyPair('ES256');
    expect((await send({}, privateKey)).body.code).toBe('invalid_request');
    expect((await call('/session')).status).toBe(200);
  });
});

test('without a client id the API has no login', async () => {
  const plain = await World.open();
  for (const path of ['/session/login', '/session/callback']) {
    expect((await plain.call('GET', path)).body.code).toBe('no_login');
  }
  expect((await plain.call('GET', '/session', { as: 'owner' })).body.code).toBe('no_login');
  await plain.close();
});

describe('a dashboard of another origin', () => {
  beforeAll(() => open());
  afterAll(close);
  afterEach(() => {
    visitor = new Visitor();
  });

  const from = (origin: string) => ({ headers: { origin } });

  test('may call the API with a token, and reads etags', async () => {
    const token = await world.issuer.token('owner');
    const origin = 'https://dashboard.example';
    const answered = await fetch(`${url}/server-containers`, {
      headers: { origin, authorization: `Bearer ${token}` },
    });
    expect([answered.status, Object.fromEntries(answered.headers)]).toEqual([
      200,
      expect.objectContaining({
        'access-control-allow-origin': origin,
        'access-control-expose-headers': expect.stringContaining('etag'),
        vary: expect.stringMatching(/origin/i),
      }),
    ]);
    expect(answered.headers.has('access-control-allow-credentials')).toBe(false);
    const problem = await fetch(`${url}/server-containers`, from(origin));
    expect([problem.status, problem.headers.get('access-control-allow-origin')]).toEqual([401, origin]);
  });

  test('gets its preflight requests allowed, unlike any other origin', async () => {
    const preflight = (origin: string) =>
      fetch(`${url}/server-containers`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      });
    const allowed = await preflight('https://dashboard.example');
    expect([allowed.status, allowed.headers.get('access-control-allow-methods')]).toEqual([
      204,
      expect.stringContaining('PATCH'),
    ]);
    expect(allowed.headers.get('access-control-allow-headers')).toContain('if-match');
    expect(allowed.headers.get('access-control-allow-headers')).not.toContain('csrf');
    for (const origin of ['https://other.example', 'https://dashboard.example.evil.example', 'null']) {
      expect((await preflight(origin)).headers.has('access-control-allow-origin')).toBe(false);
    }
  });
});
