import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test } from 'vitest';
import { buildDaemon } from '../../../gitops/http/app.ts';
import type { DaemonDeps } from '../../../gitops/http/deps.ts';
import { acceptedSecrets } from '../../../gitops/http/secrets.ts';

test.each([
  ['both', 'new', 'old', ['new', 'old']],
  ['only the current one', 'new', undefined, ['new']],
  ['only the previous one', undefined, 'old', []],
  ['an empty current one', '', 'old', []],
  ['an empty previous one', 'new', '', ['new']],
])('with %s, the accepted secrets are $3', (_what, current, previous, expected) => {
  expect(acceptedSecrets(current, previous)).toEqual(expected);
});

describe('a request without the secret', () => {
  let app: FastifyInstance = fastify();
  afterEach(() => app.close());

  test.each([
    ['an unknown path', 'GET', '/nothing'],
    ['a known path', 'GET', '/sites'],
    ['another method of a known path', 'PUT', '/sites'],
    ['another method of /healthz', 'POST', '/healthz'],
    ['a path that can’t be decoded', 'GET', '/sites/%'],
    ['a malformed query', 'POST', '/prune?wait=never'],
    ['a path below /healthz', 'GET', '/healthz/x'],
  ] as const)('learns nothing of %s', async (_what, method, url) => {
    // The secret is checked before a route uses any part of the daemon, so no other part is given.
    app = buildDaemon({ secrets: ['right'] } as unknown as DaemonDeps);
    for (const headers of [{}, { 'x-secret': 'wrong' }]) {
      const answer = await app.inject({ method, url, headers });
      expect([answer.statusCode, answer.json().code]).toEqual([401, 'wrong_secret']);
    }
    const unset = buildDaemon({ secrets: [] } as unknown as DaemonDeps);
    expect((await unset.inject({ method, url })).json()).toMatchObject({ code: 'secret_not_configured' });
    await unset.close();
  });

  test.each([
    ['the status', 'GET', '/readyz', 'passes'],
    ['the sites', 'GET', '/sites', 'passes'],
    ['the metrics', 'GET', '/metrics', 'passes'],
    ['a site', 'GET', '/sites/acme', 'passes'],
    ['a plan', 'POST', '/plan', 'passes'],
    ['an application', 'POST', '/apply', 'read_only'],
    ['a manifest', 'POST', '/provision', 'read_only'],
    ['the texts of manifests', 'POST', '/diff', 'read_only'],
    ['an unknown path', 'GET', '/nothing', 'read_only'],
    ['another method of a known path', 'DELETE', '/sites', 'read_only'],
  ] as const)('reads with the read-only token and no more: %s', async (_what, method, url, expected) => {
    app = buildDaemon({ secrets: ['right'], readToken: 'token' } as unknown as DaemonDeps);
    for (const headers of [{ 'x-secret': 'token' }, { authorization: 'Bearer token' }]) {
      const { code } = (await app.inject({ method, url, headers })).json();
      // No part of the daemon is given, so what passes fails inside.
      expect(code).toMatch(expected === 'passes' ? /^(internal|malformed_request)$/ : expected);
    }
    const wrong = await app.inject({ method, url, headers: { authorization: 'Bearer tokens' } });
    expect(wrong.json()).toMatchObject({ code: 'wrong_secret' });
    const unset = buildDaemon({ secrets: [], readToken: 'token' } as unknown as DaemonDeps);
    const refused = await unset.inject({ method, url, headers: { 'x-secret': 'token' } });
    expect(refused.json()).toMatchObject({ code: 'secret_not_configured' });
    await unset.close();
  });

  test('may ask for /healthz', async () => {
    app = buildDaemon({ secrets: [] } as unknown as DaemonDeps);
    expect((await app.inject({ url: '/healthz?x=1' })).statusCode).toBe(200);
  });
});
