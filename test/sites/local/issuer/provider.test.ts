import { createRemoteJWKSet, jwtVerify } from 'jose';
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  fetchUserInfo,
  refreshTokenGrant,
} from 'openid-client';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../../support/eventually.ts';
import { LOGIN_CLIENT_ID, LoginProvider } from '../../../support/login/provider.ts';
import { Visitor } from '../../../support/login/visitor.ts';

const CLIENT = 'http://127.0.0.1:9';
const CALLBACK = `${CLIENT}/session/callback`;
const AT_CLIENT = /^http:\/\/127\.0\.0\.1:9\//;
const VERIFIER = 'a'.repeat(43);

let provider: LoginProvider;
let config: Configuration;
let visitor: Visitor;
beforeAll(async () => {
  provider = await LoginProvider.start(CLIENT);
  // `discovery` refuses an issuer whose metadata names another one.
  const options = { execute: [allowInsecureRequests] };
  config = await discovery(new URL(provider.url), LOGIN_CLIENT_ID, 'login-s3cret', undefined, options);
});
afterAll(() => provider.stop());
beforeEach(() => {
  visitor = new Visitor();
});

async function authorization(parameters: Record<string, string> = {}): Promise<URL> {
  return buildAuthorizationUrl(config, {
    redirect_uri: CALLBACK,
    scope: 'openid profile email',
    state: 'state-1',
    nonce: 'nonce-1',
    code_challenge: await calculatePKCECodeChallenge(VERIFIER),
    code_challenge_method: 'S256',
    ...parameters,
  });
}

async function logIn(subject: string, parameters: Record<string, string> = {}) {
  const page = await visitor.visit(await authorization(parameters));
  const { url } = await visitor.submit(page, { account: subject }, AT_CLIENT);
  return url;
}

const grant = (url: URL, resource?: string) =>
  authorizationCodeGrant(
    config,
    url,
    { pkceCodeVerifier: VERIFIER, expectedState: 'state-1', expectedNonce: 'nonce-1' },
    resource === undefined ? {} : { resource },
  );

test('shows a button for each account, and loads and runs nothing', async () => {
  const { response, text } = await visitor.visit(await authorization());
  expect(response.status).toBe(200);
  expect([...text.matchAll(/<button name="account" value="([^"]+)"/g)].map(([, value]) => value)).toEqual([
    'owner',
    'viewer',
    'root',
  ]);
  expect(text).not.toMatch(/<script|https?:/);
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
});

test('logs a person in, with an ID token of the chosen account and userinfo', async () => {
  const tokens = await grant(await logIn('viewer'));
  const who = { sub: 'viewer', name: 'The viewer', email: 'viewer@tagyard.localhost' };
  expect(tokens.claims()).toMatchObject({ ...who, iss: provider.url, aud: LOGIN_CLIENT_ID });
  expect(await fetchUserInfo(config, tokens.access_token, 'viewer')).toEqual(who);
  const refreshed = await refreshTokenGrant(config, tokens.refresh_token ?? '');
  expect(refreshed.claims()).toMatchObject(who);
});

test('gives a token of the API to a client that names the API as its resource', async () => {
  const resource = 'urn:tagyard:management';
  const { access_token: token } = await grant(await logIn('owner', { resource }), resource);
  const keys = createRemoteJWKSet(new URL(`${provider.url}/jwks.json`));
  const { payload } = await jwtVerify(token, keys, { issuer: provider.url, audience: 'tagyard' });
  expect(payload.sub).toBe('owner');
});

test('knows who is logged in, until the logout', async () => {
  const first = await grant(await logIn('owner'));
  const again = await visitor.visit(await authorization(), AT_CLIENT);
  expect(again.url.searchParams.get('code')).toMatch(/./);
  const ending = buildEndSessionUrl(config, {
    id_token_hint: first.id_token ?? '',
    post_logout_redirect_uri: `${CLIENT}/`,
  });
  const page = await visitor.visit(ending);
  const { url } = await visitor.submit(page, { logout: 'yes' }, AT_CLIENT);
  expect(url.href).toBe(`${CLIENT}/`);
  expect((await visitor.visit(await authorization())).text).toContain('name="account"');
});

test.each<[string, Record<string, string>, string]>([
  ['no code challenge', { code_challenge: '', code_challenge_method: '' }, 'invalid_request'],
  ['a plain code challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
  ['a scope without openid', { scope: 'admin' }, 'invalid_request'],
])('refuses %s', async (_what, parameters, error) => {
  const url = await authorization(parameters);
  for (const [name, value] of Object.entries(parameters)) if (value === '') url.searchParams.delete(name);
  const visited = await visitor.visit(url, AT_CLIENT);
  expect(visited.url.searchParams.get('error') ?? visited.text).toContain(error);
});

test.each<[string, Record<string, string>]>([
  ['another client', { client_id: 'other' }],
  ['another redirect URI', { redirect_uri: 'http://evil.example/' }],
])('shows an error for %s, and redirects nowhere', async (_what, parameters) => {
  const { response, text } = await visitor.visit(await authorization(parameters));
  expect([response.status, text]).toEqual([400, expect.stringContaining('This login can’t continue')]);
});

test('answers a login that another browser began, and an unknown account, with a page', async () => {
  const page = await visitor.visit(await authorization());
  const foreign = await new Visitor().submit(page, { account: 'owner' });
  expect([foreign.response.status, foreign.text]).toEqual([400, expect.stringContaining('has ended')]);
  const unknown = await visitor.submit(page, { account: 'stranger' });
  expect([unknown.response.status, unknown.text]).toEqual([400, expect.stringContaining('name="account"')]);
});

test('keeps its tokens valid over a restart', async () => {
  const { id_token: token = '' } = await grant(await logIn('owner'));
  await provider.restart();
  const keys = createRemoteJWKSet(new URL(`${provider.url}/jwks.json`));
  // A connection from before the restart fails once.
  const verified = await eventually(() => jwtVerify(token, keys, { issuer: provider.url }));
  expect(verified.payload.sub).toBe('owner');
});
