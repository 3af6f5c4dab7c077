import { afterAll, beforeAll, expect, test } from 'vitest';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  client = await world.client();
});
afterAll(() => world.close());

const SCRIPT = "gtag('policy', 'send_http', function () {\n  return false;\n});\n";
const call = (method: 'GET' | 'PUT' | 'DELETE', path: string, as: string, body?: object, ifMatch?: string) =>
  world.call(method, path, {
    as,
    ...(body === undefined ? {} : { body }),
    ...(ifMatch === undefined ? {} : { headers: { 'if-match': ifMatch } }),
  });
const file = (name: string) => world.git(world.bare, 'show', `main:${name}`);

test.each([
  ['the client’s', () => `/clients/${client}/policy`, 'admin', () => `clients/${client}.policy.js`],
  ['the instance’s', () => '/policy', 'root', () => 'policy.js'],
])('%s script is kept in git, with its history', async (_whose, at, as, name) => {
  const path = at();
  expect((await call('GET', path, as)).body.code).toBe('unknown_policy');
  expect((await call('DELETE', path, as)).body.code).toBe('unknown_policy');

  const plan = await call('PUT', `${path}?dryRun=1`, as, { script: SCRIPT });
  expect([plan.status, plan.body]).toEqual([
    200,
    { plan: { changes: [{ path: 'script', from: null, to: SCRIPT }] } },
  ]);
  expect((await call('GET', path, as)).status).toBe(404);

  const made = await call('PUT', path, as, { script: SCRIPT });
  expect([made.status, made.body]).toMatchObject([200, { script: SCRIPT, history: [{ author: as }] }]);
  expect(await file(name())).toBe(SCRIPT);
  const etag = String(made.headers.etag);
  const second = await call('PUT', path, as, { script: `${SCRIPT}// 2\n` }, etag);
  expect(second.body.history).toHaveLength(2);
  expect((await call('GET', path, as)).headers.etag).toBe(second.headers.etag);
  for (const query of ['', '?dryRun=1']) {
    expect((await call('PUT', path + query, as, { script: SCRIPT }, etag)).body.code).toBe(
      'precondition_failed',
    );
    expect((await call('DELETE', path + query, as, undefined, etag)).body.code).toBe('precondition_failed');
  }
  // The same script again makes no commit.
  const head = await world.repo.head();
  await call('PUT', path, as, { script: `${SCRIPT}// 2\n` });
  expect(await world.repo.head()).toBe(head);

  const dry = await call('DELETE', `${path}?dryRun=1`, as);
  expect(dry.body.plan.changes).toMatchObject([{ path: 'script', to: null }]);
  expect((await call('DELETE', path, as)).status).toBe(204);
  expect((await call('GET', path, as)).status).toBe(404);
});

test('an id in upper case names the same client, in git too', async () => {
  const path = `/clients/${client.toUpperCase()}`;
  expect((await call('PUT', `${path}/policy`, 'admin', { script: SCRIPT })).status).toBe(200);
  expect(await file(`clients/${client}.policy.js`)).toBe(SCRIPT);
  const put = await call('PUT', `${path}/members/late`, 'owner', { role: 'viewer' });
  expect([put.status, await file(`clients/${client}.yaml`)]).toEqual([
    200,
    expect.stringContaining('- late'),
  ]);
  expect((await call('DELETE', `${path}/policy`, 'admin')).status).toBe(204);
  const body = creation(client.toUpperCase(), 'upper.example');
  const made = await world.call('POST', '/server-containers', { as: 'owner', body });
  expect([made.status, made.body.client]).toEqual([202, client]);
});

test.each([
  ['a syntax error', "gtag('policy', 'all',\n  () => {\n);\n", 'line 3: '],
  ['a #! line', '#!/usr/bin/env node\ngtag();', 'line 1: must not begin with #!'],
  ['a control character', 'gtag();\n\u0000', 'line 2: must not contain control characters or surrogates'],
  ['more than 32 KiB', `// ${'ü'.repeat(20_000)}`, 'is larger than 32 KiB'],
])('a script with %s is refused, and no script is run', async (_what, script, message) => {
  for (const query of ['', '?dryRun=1']) {
    const answer = await call('PUT', `/clients/${client}/policy${query}`, 'owner', { script });
    expect([answer.status, answer.body.code]).toEqual([422, 'invalid_policy']);
    expect(answer.body.errors).toEqual([{ path: 'script', message: expect.stringContaining(message) }]);
  }
  const endless = await call('PUT', `/clients/${client}/policy?dryRun=1`, 'owner', { script: 'for (;;);' });
  expect(endless.status).toBe(200);
});

test('a client’s script is for its owners and admins and for operators, the instance’s for operators only', async () => {
  const put = async (path: string, as: string) => {
    const { status, body } = await call('PUT', `${path}?dryRun=1`, as, { script: SCRIPT });
    return [status, body.code];
  };
  const own = `/clients/${client}/policy`;
  expect(await put(own, 'root')).toEqual([200, undefined]);
  expect(await put(own, 'viewer')).toEqual([403, 'forbidden']);
  expect(await put(own, 'stranger')).toEqual([404, 'unknown_client']);
  expect(await put('/policy', 'owner')).toEqual([403, 'forbidden']);
});
