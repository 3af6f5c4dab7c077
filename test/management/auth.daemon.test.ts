import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { type JWK, type JWTPayload, UnsecuredJWT } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createAuthenticator } from '../../management/http/auth.ts';
import type { JwksOptions } from '../../management/http/jwks.ts';
import { eventually } from '../support/eventually.ts';
import { AUDIENCE, ISSUER, Issuer } from '../support/management/issuer.ts';
import { World } from '../support/management/world.ts';

let issuer: Issuer;
let other: Issuer;
beforeAll(async () => {
  issuer = await Issuer.start();
  other = await Issuer.start();
});
afterAll(async () => {
  await issuer.stop();
  await other.stop();
});

const now = () => Math.floor(Date.now() / 1000);
const good = (): JWTPayload => ({ sub: 'ada', iss: ISSUER, aud: AUDIENCE, exp: now() + 600 });

function authenticate(authorization: string | undefined) {
  const { jwksUrl } = issuer;
  return createAuthenticator({ jwksUrl, issuer: ISSUER, audience: AUDIENCE })(authorization);
}

/** Key confusion: the public key, which is no secret, used as the secret of an HMAC. */
function signedWithThePublicKey(): string {
  const pem = createPublicKey({ key: issuer.published[0] ?? {}, format: 'jwk' }).export({
    type: 'spki',
    format: 'pem',
  });
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'HS256', kid: 'key-1' })}.${part(good())}`;
  return `${signed}.${createHmac('sha256', pem).update(signed).digest('base64url')}`;
}

const weakKey = generateKeyPairSync('rsa', { modulusLength: 1024 });
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** A good token, except that jose refuses to sign with its key. */
function signedBy(key: KeyObject, header: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part(header)}.${part(good())}`;
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
}

describe('a bearer token', () => {
  test('identifies the caller by subject, name and e-mail', async () => {
    const token = await issuer.token('ada', { name: 'Ada', email: 'ada@example.test' });
    expect(await authenticate(`Bearer ${token}`)).toEqual({
      subject: 'ada',
      name: 'Ada',
      email: 'ada@example.test',
    });
  });

  test('identifies the caller by another claim, and is refused without it', async () => {
    const { jwksUrl } = issuer;
    const options = { jwksUrl, issuer: ISSUER, audience: AUDIENCE, subjectClaim: 'oid' };
    const check = createAuthenticator(options);
    const oid = '2f6c7c1a-5d0e-4f0a-9a36-000000000001';
    // Entra's `sub` differs for each application.
    for (const sub of ['of-one-application', 'of-another']) {
      expect(await check(`Bearer ${await issuer.token(sub, { oid })}`)).toMatchObject({ subject: oid });
    }
    for (const claims of [{}, { oid: '' }, { oid: 7 }, { oid: `token:${oid}` }]) {
      await expect(check(`Bearer ${await issuer.token('ada', claims)}`)).rejects.toMatchObject({
        code: 'invalid_token',
      });
    }
  });

  test.each<[string, () => Promise<string>]>([
    ['just past its end, as clocks differ', () => issuer.token('ada', { exp: now() - 55 })],
    ['not quite begun, as clocks differ', () => issuer.token('ada', { nbf: now() + 55 })],
    ['for several audiences, this one among them', () => issuer.token('ada', { aud: ['x', AUDIENCE] })],
    ['without a kid, where the issuer has one key', () => issuer.token('ada', {}, { kid: undefined })],
    [
      'with a claim given twice: the last one counts (RFC 7519, 4)',
      () => issuer.sign(JSON.stringify(good()).replace('{', '{"sub":"root",')),
    ],
  ])('may be %s', async (_what, token) => {
    expect(await authenticate(`Bearer ${await token()}`)).toMatchObject({ subject: 'ada' });
  });

  test.each<[string, string, () => Promise<string | undefined> | string | undefined]>([
    ['no header', 'missing_token', () => undefined],
    ['another scheme', 'missing_token', () => 'Basic YTpi'],
    ['an empty token', 'missing_token', () => 'Bearer '],
    ['text that is no token', 'invalid_token', () => 'Bearer abc'],
    ['alg none', 'invalid_token', () => `Bearer ${new UnsecuredJWT(good()).encode()}`],
    ['HS256 with the public key', 'invalid_token', () => `Bearer ${signedWithThePublicKey()}`],
    [
      'an unknown kid',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', {}, { kid: 'key-2' })}`,
    ],
    [
      'a kid that is a path',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', {}, { kid: '../../etc/passwd' })}`,
    ],
    ['a key of another issuer', 'invalid_token', async () => `Bearer ${await other.token('ada')}`],
    ['a changed payload', 'invalid_token', async () => `Bearer ${tamper(await issuer.token('ada'))}`],
    [
      'a kid that is an address',
      'invalid_token',
      async () => `Bearer ${await other.token('ada', {}, { kid: other.jwksUrl })}`,
    ],
    [
      'a kid that is SQL',
      'invalid_token',
      async () => `Bearer ${await other.token('ada', {}, { kid: "' or 1=1 --" })}`,
    ],
    [
      'the address of other keys in its header',
      'invalid_token',
      async () => `Bearer ${await other.token('ada', {}, { jku: other.jwksUrl, x5u: other.jwksUrl })}`,
    ],
    [
      'its own key in its header',
      'invalid_token',
      async () => `Bearer ${await other.token('ada', {}, { jwk: other.published[0] })}`,
    ],
    [
      'another algorithm than its key’s',
      'invalid_token',
      async () => `Bearer ${rewriteHeader(await issuer.token('ada'), { alg: 'RS256' })}`,
    ],
    [
      'alg None',
      'invalid_token',
      async () => `Bearer ${rewriteHeader(await issuer.token('ada'), { alg: 'None' })}`,
    ],
    [
      'no signature',
      'invalid_token',
      async () => `Bearer ${(await issuer.token('ada')).replace(/[^.]+$/, '')}`,
    ],
    [
      'a signature of zeros',
      'invalid_token',
      async () => `Bearer ${(await issuer.token('ada')).replace(/[^.]+$/, 'A'.repeat(86))}`,
    ],
    [
      'a signature with something behind it',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada')}AAAA`,
    ],
    ['a fourth part', 'invalid_token', async () => `Bearer ${await issuer.token('ada')}.e30`],
    [
      'an extension that must be understood',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', {}, { crit: ['x-must'], 'x-must': 1 })}`,
    ],
    [
      'an unencoded payload',
      'invalid_token',
      async () => `Bearer ${rewriteHeader(await issuer.token('ada'), { b64: false, crit: ['b64'] })}`,
    ],
    ['a payload that isn’t JSON', 'invalid_token', async () => `Bearer ${await issuer.sign('not JSON')}`],
    ['a payload that is a list', 'invalid_token', async () => `Bearer ${await issuer.sign('[]')}`],
    [
      'an expiry in words',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', { exp: 'never' })}`,
    ],
    [
      'a subject that is a number',
      'invalid_token',
      async () => `Bearer ${await issuer.token('', { sub: 7 })}`,
    ],
    ['a subject that is empty', 'invalid_token', async () => `Bearer ${await issuer.token('')}`],
    ['no audience', 'invalid_token', async () => `Bearer ${await issuer.token('ada', { aud: undefined })}`],
    ['no issuer', 'invalid_token', async () => `Bearer ${await issuer.token('ada', { iss: undefined })}`],
    [
      'an issuer that only begins like ours',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', { iss: `${ISSUER}x` })}`,
    ],
    [
      'more text than any token has',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', { pad: 'x'.repeat(8_192) })}`,
    ],
    [
      'two tokens',
      'missing_token',
      async () => `Bearer ${await issuer.token('ada')} ${await issuer.token('ada')}`,
    ],
    [
      'an expiry in the past',
      'expired_token',
      async () => `Bearer ${await issuer.token('ada', { exp: now() - 65 })}`,
    ],
    ['no expiry', 'invalid_token', async () => `Bearer ${await issuer.token('ada', { exp: undefined })}`],
    [
      'a beginning in the future',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', { nbf: now() + 65 })}`,
    ],
    [
      'another audience',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', { aud: 'other' })}`,
    ],
    [
      'another issuer',
      'invalid_token',
      async () => `Bearer ${await issuer.token('ada', { iss: 'https://x/' })}`,
    ],
    ['no subject', 'invalid_token', async () => `Bearer ${await issuer.token('', { sub: undefined })}`],
  ])('is refused with %s', async (_what, code, header) => {
    await expect(authenticate(await header())).rejects.toMatchObject({ code });
  });

  test('is refused with auth_unavailable while the keys can’t be fetched', async () => {
    const gone = await Issuer.start();
    const token = await gone.token('ada');
    await gone.stop();
    const check = createAuthenticator({ jwksUrl: gone.jwksUrl, issuer: ISSUER, audience: AUDIENCE });
    await expect(check(`Bearer ${token}`)).rejects.toMatchObject({ code: 'auth_unavailable' });
  });
});

describe('the issuer’s keys', () => {
  const check = (keys: Issuer, jwks: JwksOptions) => {
    const authenticate = createAuthenticator({
      jwksUrl: keys.jwksUrl,
      issuer: ISSUER,
      audience: AUDIENCE,
      jwks,
    });
    return async (kid: string) => {
      const token = await keys.token('ada', {}, { kid });
      return await authenticate(`Bearer ${token}`).then(
        ({ subject }) => subject,
        ({ code }) => code,
      );
    };
  };
  let keys: Issuer;
  beforeEach(async () => {
    keys = await Issuer.start();
  });
  afterEach(() => keys.stop());

  test('are fetched once for many tokens', async () => {
    const asks = check(keys, {});
    expect(await Promise.all(Array(20).fill('key-1').map(asks))).toEqual(Array(20).fill('ada'));
    expect(keys.fetches).toBe(1);
  });

  test('rotate: a new key is accepted at once, a withdrawn one until the keys are fetched again', async () => {
    const asks = check(keys, { cooldownMs: 0 });
    expect(await asks('key-1')).toBe('ada');
    await keys.publish('key-2');
    expect([await asks('key-2'), await asks('key-1')]).toEqual(['ada', 'ada']);
    keys.withdraw('key-1');
    expect([await asks('key-3'), await asks('key-1')]).toEqual(['invalid_token', 'invalid_token']);
    const strict = check(keys, { maxAgeMs: 0 });
    keys.withdraw('key-2');
    await keys.publish('key-4');
    expect([await strict('key-4'), await strict('key-2')]).toEqual(['ada', 'invalid_token']);
  });

  test('are checked again for a token that was verified before', async () => {
    const { jwksUrl } = keys;
    const jwks = { cooldownMs: 0 };
    const authenticate = createAuthenticator({ jwksUrl, issuer: ISSUER, audience: AUDIENCE, jwks });
    const asks = (token: string) =>
      authenticate(`Bearer ${token}`).then(
        ({ subject }) => subject,
        ({ code }) => code,
      );
    const token = await keys.token('ada');
    expect([await asks(token), await asks(token)]).toEqual(['ada', 'ada']);
    const changed = `${token.slice(0, -4)}${token.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
    expect(await asks(changed)).toBe('invalid_token');
    await keys.publish('key-2');
    expect(await asks(await keys.token('eve', {}, { kid: 'key-2' })), 'the keys were fetched anew').toBe(
      'eve',
    );
    expect(await asks(token)).toBe('ada');
    keys.withdraw('key-1');
    expect(await asks(await keys.token('eve', {}, { kid: 'key-3' }))).toBe('invalid_token');
    expect(await asks(token), 'its key was withdrawn').toBe('invalid_token');
  });

  test('don’t keep a verified token valid after it has expired', async () => {
    const { jwksUrl } = keys;
    const authenticate = createAuthenticator({ jwksUrl, issuer: ISSUER, audience: AUDIENCE });
    const token = `Bearer ${await keys.token('ada', { exp: now() + 30, nbf: now() - 30 })}`;
    const at = async (seconds: number) => {
      vi.setSystemTime(start + seconds * 1_000);
      return await authenticate(token).then(
        ({ subject }) => subject,
        ({ code }) => code,
      );
    };
    const start = Date.now();
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      expect([await at(0), await at(80)]).toEqual(['ada', 'ada']);
      expect([await at(100), await at(0)]).toEqual(['expired_token', 'ada']);
      expect([await at(-100), await at(0)], 'a clock that was set back').toEqual(['invalid_token', 'ada']);
    } finally {
      vi.useRealTimers();
    }
  });

  test('aren’t fetched for every token with an unknown key id', async () => {
    const asks = check(keys, {});
    for (let index = 0; index < 10; index += 1) expect(await asks(`made-up-${index}`)).toBe('invalid_token');
    expect(keys.fetches).toBe(1);
  });

  test.each([500, 200])(
    'outlive an issuer that answers %i and no keys, but only for a limited time',
    async (status) => {
      const asks = check(keys, { maxAgeMs: 0, pauseMs: 0 });
      expect(await asks('key-1')).toBe('ada');
      keys.down = status;
      expect(await asks('key-1')).toBe('ada');
      expect(await asks('key-9'), 'it may be a new one').toBe('auth_unavailable');
      keys.down = null;
      expect([await asks('key-1'), await asks('key-9')]).toEqual(['ada', 'invalid_token']);
      const brief = check(keys, { maxAgeMs: 0, pauseMs: 0, staleMs: -1 });
      expect(await brief('key-1')).toBe('ada');
      keys.down = status;
      expect(await brief('key-1')).toBe('auth_unavailable');
    },
  );

  test.each<[string, string, () => unknown]>([
    ['is too weak', 'RS256', () => weakKey.publicKey.export({ format: 'jwk' })],
    ['has no modulus', 'RS256', () => ({ kty: 'RSA', e: 'AQAB' })],
    ['is no point of its curve', 'ES256', () => ({ kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA' })],
    ['is a private key', 'ES256', () => privateKey.export({ format: 'jwk' })],
    ['has an unknown type', 'ES256', () => ({ kty: 'XYZ' })],
    ['has an unknown curve', 'EdDSA', () => ({ kty: 'OKP', crv: 'Ed1', x: 'AAAA' })],
    ['has members of wrong types', 'ES256', () => ({ kty: 7, crv: [], x5c: 'x' })],
  ])('work beside one that %s: only its own tokens are refused', async (_what, alg, jwk) => {
    keys.published.unshift({ ...(jwk() as JWK), kid: 'bad', alg });
    const notices: string[] = [];
    const asks = check(keys, { cooldownMs: 0, onNotice: (message) => notices.push(message) });
    const { jwksUrl } = keys;
    const authenticate = createAuthenticator({ jwksUrl, issuer: ISSUER, audience: AUDIENCE });
    const refused = await authenticate(`Bearer ${signedBy(weakKey.privateKey, { kid: 'bad', alg })}`).catch(
      ({ code }) => code,
    );
    expect([refused, await asks('key-1')]).toEqual(['invalid_token', 'ada']);
    await keys.publish('key-2');
    expect([await asks('key-2'), await asks('key-1')]).toEqual(['ada', 'ada']);
    expect(notices, 'it is reported once, whatever is fetched').toEqual([expect.stringContaining('"bad"')]);
  });

  test('work beside an entry that is no key, and a broken key with a good one’s id', async () => {
    keys.published.unshift(null as never, { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA', kid: 'key-1' });
    expect(await check(keys, {})('key-1')).toBe('ada');
  });

  test('aren’t requested by every request while the issuer is unreachable', async () => {
    const asks = check(keys, {});
    keys.down = 503;
    for (let index = 0; index < 10; index += 1) expect(await asks('key-1')).toBe('auth_unavailable');
    expect(keys.fetches).toBe(1);
  });
});

test('a token is required on every route except the public ones', async () => {
  const world = await World.open();
  try {
    for (const path of ['/healthz', '/readyz', '/openapi.json']) {
      // The API is ready once it has read the sites repository.
      await eventually(async () => expect((await world.call('GET', path)).status, path).toBe(200));
    }
    const { body: document } = await world.call('GET', '/openapi.json');
    for (const [path, methods] of Object.entries<Record<string, unknown>>(document.paths)) {
      for (const method of Object.keys(methods)) {
        const answer = await world.call(
          method.toUpperCase() as 'GET', // OpenAPI's method names in lower case
          path.replace('{id}', '7c9e6679-7425-40de-944b-e07fc1f90ae7').replace('{subject}', 'x'),
        );
        expect([answer.status, answer.body.code], `${method} ${path}`).toEqual([401, 'missing_token']);
        expect(answer.headers['www-authenticate']).toBe('Bearer');
      }
    }
  } finally {
    await world.close();
  }
});

function rewriteHeader(token: string, change: object): string {
  const [header = '', ...rest] = token.split('.');
  const parameters = { ...JSON.parse(Buffer.from(header, 'base64url').toString()), ...change };
  return [Buffer.from(JSON.stringify(parameters)).toString('base64url'), ...rest].join('.');
}

function tamper(token: string): string {
  const [header, , signature] = token.split('.');
  const payload = Buffer.from(JSON.stringify({ ...good(), sub: 'root' })).toString('base64url');
  return `${header}.${payload}.${signature}`;
}
