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

  test('may ask for /healthz', async () => {
    app = buildDaemon({ secrets: [] } as unknown as DaemonDeps);
    expect((await app.inject({ url: '/healthz?x=1' })).statusCode).toBe(200);
  });
});
