import { mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';
import { REFUSED_REQUESTS, sendBytes } from '../support/refused-requests.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());

const BROWSER_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
};

const inject = async (request: {
  method?: 'GET' | 'POST';
  url: string;
  payload?: string | Buffer;
  headers?: object;
}) => {
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const answer = await world.management?.app.inject({
    method: 'GET',
    ...request,
    headers: { authorization, 'content-type': 'application/json', ...request.headers },
  });
  if (answer === undefined) throw new Error('the API is stopped');
  return answer;
};

describe('limits', () => {
  test.each<[string, object, (n: number) => { as: string; headers: Record<string, string> }]>([
    [
      'an address, whatever the subject',
      { perAddress: 3, perSubject: 99 },
      (n) => ({ as: `someone-${n}`, headers: { 'x-forwarded-for': '192.0.2.7' } }),
    ],
    [
      'a subject, wherever it comes from',
      { perAddress: 99, perSubject: 3 },
      (n) => ({ as: 'owner', headers: { 'x-forwarded-for': `192.0.2.${n}` } }),
    ],
  ])('stop %s, and no other caller', async (_who, limits, caller) => {
    await world.stop();
    Object.assign(world.settings.limits, limits);
    await world.start();
    const ask = (call: object) => world.call('GET', '/server-containers', call);
    const statuses: number[] = [];
    for (let n = 1; n <= 5; n += 1) statuses.push((await ask(caller(n))).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    const refused = await ask(caller(9));
    expect(refused.body.code).toBe('rate_limited');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect((await ask({ as: 'other', headers: { 'x-forwarded-for': '192.0.2.200' } })).status).toBe(200);
    expect((await world.call('GET', '/healthz')).status).toBe(200);
    await world.stop();
    Object.assign(world.settings.limits, { perAddress: 1e9, perSubject: 1e9 });
    await world.start();
  });
});

test('a request counts once for each 64 KiB of its body', async () => {
  await world.stop();
  Object.assign(world.settings.limits, { perSubject: 3 });
  await world.start();
  const send = (length: number) =>
    world.call('POST', '/tokens', { as: `heavy-${length}`, body: { name: 'x'.repeat(length) } });
  const statuses = [await send(100), await send(120_000), await send(120_000)].map(({ status }) => status);
  expect(statuses).toEqual([404, 404, 429]);
  await world.stop();
  Object.assign(world.settings.limits, { perSubject: 1e9 });
  await world.start();
});

test.each([
  ['nested deeply', `{"name":${'['.repeat(40)}${']'.repeat(40)}}`, 'nested deeper than 32 levels'],
  [
    'of very many unknown keys',
    `{${Array.from({ length: 9_000 }, (_, n) => `"${n}":0`)}}`,
    'more than 4000 values',
  ],
])('a body %s is refused before it is validated', async (_what, payload, detail) => {
  const answer = await inject({ method: 'POST', url: '/tokens', payload });
  expect([answer.statusCode, answer.json().errors]).toEqual([400, undefined]);
  expect(answer.json().detail).toContain(detail);
});

test('x-forwarded-for is trusted only from a trusted proxy', async () => {
  await world.stop();
  Object.assign(world.settings, { trustedProxies: [] });
  Object.assign(world.settings.limits, { perAddress: 3 });
  await world.start();
  const statuses: number[] = [];
  for (let n = 1; n <= 5; n += 1) {
    const headers = { 'x-forwarded-for': `192.0.2.${n}` };
    statuses.push((await world.call('GET', '/server-containers', { as: 'owner', headers })).status);
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
  expect(world.logs.filter((line) => line.includes('MANAGEMENT_TRUSTED_PROXIES'))).toHaveLength(1);
  await world.stop();
  Object.assign(world.settings, { trustedProxies: ['loopback'] });
  Object.assign(world.settings.limits, { perAddress: 1e9 });
  await world.start();
});

describe('/metrics', () => {
  const read = async (headers: Record<string, string>) => {
    const answer = await world.management?.app.inject({ url: '/metrics', headers });
    return [answer?.statusCode, answer?.body.includes('tagyard_ports_free')];
  };

  test('without a token, answers only direct requests from this machine', async () => {
    expect(await read({})).toEqual([200, true]);
    expect(await read({ 'x-forwarded-for': '192.0.2.1' })).toEqual([403, false]);
    expect(await read({ 'x-forwarded-for': '127.0.0.1' })).toEqual([403, false]);
    const answer = await world.management?.app.inject({ url: '/metrics', remoteAddress: '192.0.2.1' });
    expect([answer?.statusCode, answer?.json().code]).toEqual([403, 'forbidden']);
  });

  test('accepts its own token and no other', async () => {
    await world.stop();
    Object.assign(world.settings, { metricsToken: 'metrics-token-of-tests' });
    await world.start();
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    expect(await read({})).toEqual([401, false]);
    expect(await read(bearer(await world.issuer.token('root')))).toEqual([401, false]);
    expect(await read(bearer('metrics-token-of-tests'))).toEqual([200, true]);
    await world.stop();
    Object.assign(world.settings, { metricsToken: null });
    await world.start();
  });
});

test.each([
  ['PUT', '/server-containers', 'GET, HEAD, POST'],
  ['POST', '/server-containers/7c9e6679-7425-40de-944b-e07fc1f90ae7', 'DELETE, GET, HEAD, PATCH'],
  ['PUT', '/clients', 'GET, HEAD, POST'],
  ['DELETE', '/healthz', 'GET, HEAD'],
  ['OPTIONS', '/server-containers', 'GET, HEAD, POST'],
] as const)('%s %s is refused: the address has only %s', async (method, url, allow) => {
  const answer = await world.management?.app.inject({ method, url, payload: '{' });
  expect([answer?.statusCode, answer?.json().code]).toEqual([405, 'method_not_allowed']);
  expect(answer?.headers.allow).toBe(allow);
});

test.each([
  ['POST', '/server-containers'],
  ['POST', '/tokens'],
] as const)('%s %s without a body says what is missing', async (method, url) => {
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  for (const headers of [{ 'content-type': 'application/json' }, {}]) {
    const answer = await world.management?.app.inject({
      method,
      url,
      headers: { authorization, ...headers },
    });
    expect(answer?.statusCode).toBe(400);
    expect(answer?.json().detail).toBe('the body must be a JSON object; the request has no body');
  }
});

test('an empty JSON body is accepted if the route takes no body', async () => {
  const answer = await world.management?.app.inject({
    method: 'DELETE',
    url: '/server-containers/7c9e6679-7425-40de-944b-e07fc1f90ae7',
    headers: {
      authorization: `Bearer ${await world.issuer.token('owner')}`,
      'content-type': 'application/json',
    },
  });
  expect([answer?.statusCode, answer?.json().code]).toEqual([404, 'unknown_container']);
});

test.each<[string, Parameters<typeof inject>[0], number, string]>([
  ['a body that is too long', { payload: `{"name":"${'x'.repeat(200_000)}"}` }, 413, 'body_too_large'],
  ['a body that isn’t JSON', { payload: '{' }, 400, 'invalid_request'],
  [
    'a body of another type',
    { payload: '<a/>', headers: { 'content-type': 'text/xml' } },
    415,
    'unsupported_media_type',
  ],
  ['no body', {}, 400, 'invalid_request'],
  ['a body with the key __proto__', { payload: '{"__proto__":{"admin":true}}' }, 400, 'invalid_request'],
  ['a path with a zero byte', { method: 'GET', url: '/server-containers/%00' }, 400, 'invalid_request'],
  ['an id that is SQL', { method: 'GET', url: "/server-containers/'%20or%201=1" }, 400, 'invalid_request'],
  ['a path with broken escapes', { method: 'GET', url: '/server-containers/%zz' }, 400, 'invalid_request'],
  [
    'a cursor that is SQL',
    { method: 'GET', url: '/server-containers?after=1%20or%201' },
    400,
    'invalid_request',
  ],
  [
    'a domain with a zero byte',
    { method: 'GET', url: '/server-containers?domain=a%00.example' },
    400,
    'invalid_request',
  ],
] as never)('the API refuses %s, and reveals nothing internal', async (_what, request, status, code) => {
  const answer = await inject({ method: 'POST', ...request, url: request.url ?? '/server-containers' });
  expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  expect(answer.body).not.toMatch(/select |insert |node_modules|\.ts\b|at .*:\d+:\d+|SyntaxError/i);
});

test.each(REFUSED_REQUESTS)(
  'the API answers %s with a problem, an id, and headers that restrict browsers',
  async (...row) => {
    const [, bytes, status, name] = row;
    const code = name === 'malformed' ? 'invalid_request' : name;
    const url = await world.listen();
    const answer = await sendBytes(url, bytes);
    expect([answer.status, answer.headers['content-type']]).toEqual([
      status,
      'application/problem+json; charset=utf-8',
    ]);
    expect(answer.headers).toMatchObject({
      ...BROWSER_HEADERS,
      connection: 'close',
      'x-request-id': expect.stringMatching(/./),
    });
    expect(JSON.parse(answer.body)).toMatchObject({
      status,
      code,
      requestId: answer.headers['x-request-id'],
    });
  },
);

test('a request without a login whose body doesn’t end within a minute is answered with 408', async () => {
  const url = await world.listen();
  const server = world.management?.app.server;
  expect(server?.requestTimeout).toBe(60_000);
  Object.assign(server ?? {}, { headersTimeout: 200, requestTimeout: 200 });
  const head = 'POST /session/backchannel-logout HTTP/1.1\r\nhost: a\r\n';
  const fields = 'content-type: application/x-www-form-urlencoded\r\ncontent-length: 99';
  const answer = await sendBytes(url, `${head}${fields}\r\n\r\nlogout_token=`);
  Object.assign(server ?? {}, { headersTimeout: 60_000, requestTimeout: 60_000 });
  expect([answer.status, JSON.parse(answer.body).code]).toEqual([408, 'request_timeout']);
});

test('the router’s own refusals have the headers that restrict browsers', async () => {
  const answer = await inject({ url: '/server-containers/%zz' });
  expect([answer.statusCode, answer.json().code]).toEqual([400, 'invalid_request']);
  expect(answer.headers).toMatchObject(BROWSER_HEADERS);
  const long = await inject({ url: `/server-containers/${'x'.repeat(2_000)}` });
  expect([long.statusCode, long.json().code]).toEqual([414, 'uri_too_long']);
});

test('an internal error is described in the log, but not in the answer', async () => {
  const broken = await World.open();
  const id = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
  try {
    await broken.stop();
    await broken.start({ follow: false });
    await broken.owner.schema.dropTable('operations').execute();
    const answer = await broken.call('GET', `/server-containers/${id}`, {
      as: 'owner',
      headers: { 'x-request-id': 'req-7' },
    });
    expect(answer.body).toEqual({
      type: 'urn:tagyard:problem:internal',
      title: 'Something went wrong inside the management API',
      status: 500,
      code: 'internal',
      requestId: 'req-7',
    });
    const line = broken.logs.find((text) => text.includes('"level":50'));
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      reqId: 'req-7',
      err: { message: expect.stringContaining('operations') },
    });
  } finally {
    await broken.close();
  }
});

test.each(['/server-containers', '/nowhere', '/healthz', '/openapi.json'])(
  'the answer of %s has the headers that restrict browsers',
  async (url) => {
    const { headers } = await inject({ url });
    expect(headers).toMatchObject(BROWSER_HEADERS);
  },
);

test('the pages may run only their own scripts', async () => {
  const { headers } = await inject({ url: '/docs/' });
  expect(headers['content-security-policy']).toMatch(/script-src 'self'(?! 'unsafe)/);
});

describe('the audit log', () => {
  const of = (requestId: string) =>
    world.owner.selectFrom('audit_log').selectAll().where('request_id', '=', requestId).execute();
  const call = (requestId: string, ...[method, url, options]: Parameters<World['call']>) =>
    world.call(method, url, { ...options, headers: { 'x-request-id': requestId } });

  test('has a row for each mutation, with actor, action, container and commit', async () => {
    const made = await call('audit-1', 'POST', '/server-containers', { as: 'owner', body: creation(client) });
    const { id, revision } = made.body;
    expect(await of('audit-1')).toMatchObject([
      {
        actor: 'owner',
        action: 'createContainer',
        container_id: id,
        client_id: client,
        status: 202,
        revision,
      },
    ]);
    const changed = await call('audit-2', 'PATCH', `/server-containers/${id}`, {
      as: 'admin',
      body: { name: 'New' },
    });
    expect(changed.body.revision).not.toBe(revision);
    expect(await of('audit-2')).toMatchObject([
      {
        actor: 'admin',
        action: 'changeContainer',
        container_id: id,
        status: 200,
        revision: changed.body.revision,
      },
    ]);
    await call('audit-3', 'PUT', `/clients/${client}/members/new`, { as: 'root', body: { role: 'admin' } });
    expect(await of('audit-3')).toMatchObject([
      { actor: 'root', action: 'putMember', client_id: client, status: 200 },
    ]);
  });

  const nobodys = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
  test.each<[number, string, Parameters<World['call']>, object]>([
    [400, 'invalid_request', ['POST', '/server-containers', { body: { name: 7 } }], { container_id: null }],
    [400, 'invalid_request', ['DELETE', '/server-containers/nonsense'], { container_id: null }],
    [403, 'forbidden', ['POST', '/clients', { body: { name: 'Mine' } }], { action: 'createClient' }],
    [404, 'unknown_container', ['PUT', `/server-containers/${nobodys}/config`], { container_id: nobodys }],
    [409, 'domain_in_use', ['POST', '/server-containers'], { action: 'createContainer', revision: null }],
    [413, 'body_too_large', ['POST', '/tokens', { body: { name: 'x'.repeat(200_000) } }], {}],
  ])('has a row for a refused mutation: %i %s', async (status, code, [method, url, options], row) => {
    const id = `audit-${method}-${code}`;
    // A POST without a body of its own repeats the creation of the test above, whose domain is in use.
    const body = method === 'POST' ? creation(client) : undefined;
    expect((await call(id, method, url, { as: 'owner', body, ...options })).status).toBe(status);
    expect(await of(id)).toMatchObject([{ actor: 'owner', status, code, ...row }]);
  });

  test('has no row for a read', async () => {
    await call('audit-7', 'GET', '/server-containers', { as: 'owner' });
    expect(await of('audit-7')).toEqual([]);
  });

  test('has its row before the mutation starts', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    world.provisioner.gate = promise;
    const { length } = world.provisioner.calls;
    const body = creation(client, 'held.example');
    const answer = call('audit-6', 'POST', '/server-containers', { as: 'owner', body });
    try {
      await eventually(() => expect(world.provisioner.calls.length).toBeGreaterThan(length));
      expect(await of('audit-6')).toMatchObject([{ actor: 'owner', status: null }]);
    } finally {
      resolve();
    }
    await answer;
    expect(await of('audit-6')).toMatchObject([{ status: 202 }]);
  });
});

test('the API is not ready while the sites repository is unreachable', async () => {
  const away = await mkdtemp(join(tmpdir(), 'tagyard-away-'));
  await rename(world.bare, join(away, 'sites.git'));
  await eventually(async () =>
    expect(await world.call('GET', '/readyz')).toMatchObject({
      status: 503,
      body: {
        ...{ service: 'management', status: 'not_ready', database: true },
        ...{ sitesRepo: false, sitesRepoSeconds: expect.any(Number) },
      },
    }),
  );
  await rename(join(away, 'sites.git'), world.bare);
  await rm(away, { recursive: true });
  await eventually(async () => expect((await world.call('GET', '/readyz')).status).toBe(200));
});

test('the API is not ready while the branch of the sites repository is gone', async () => {
  const revision = (await world.repo.head()) ?? '';
  await world.git(world.bare, 'update-ref', '-d', 'refs/heads/main');
  await eventually(async () =>
    expect(await world.call('GET', '/readyz')).toMatchObject({ status: 503, body: { sitesRepo: false } }),
  );
  await world.git(world.bare, 'update-ref', 'refs/heads/main', revision);
  await eventually(async () => expect((await world.call('GET', '/readyz')).status).toBe(200));
});

test('a slow sites repository delays no answer to whether the API is ready, which says how old it is', async () => {
  const own = await World.open({ logLevel: 'silent', remote: true });
  const answer = join(own.dir, 'answer');
  try {
    await eventually(async () => expect((await own.call('GET', '/readyz')).status).toBe(200));
    const script = `until [ -e ${answer} ]; do sleep 0.02; done\nexec git-upload-pack "$@"`;
    await writeFile(join(own.dir, 'upload-pack'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const mirror = join(own.dir, 'mirror', 'sites.git');
    await own.git(mirror, 'config', 'remote.origin.uploadpack', join(own.dir, 'upload-pack'));
    const statuses = new Set<number>();
    await eventually(async () => {
      const { status, body } = await own.call('GET', '/readyz');
      statuses.add(status);
      expect(body.sitesRepoSeconds).toBeGreaterThan(2);
    });
    expect([...statuses]).toEqual([200]);
  } finally {
    await writeFile(answer, '');
    await own.close();
  }
});

test('the API hides the address of the sites repository and git’s messages from callers', async () => {
  const body = creation(client, 'unwritten.example', { name: 'Unwritten' });
  // As if another process were writing the branch: a lock that a process has open isn't removed.
  const lock = join(world.bare, 'refs', 'heads', 'main.lock');
  const writer = await open(lock, 'w');
  const refused = await world.call('POST', '/server-containers', { as: 'owner', body });
  await writer.close();
  await rm(lock);
  expect(refused).toMatchObject({ status: 502, body: { code: 'provisioning_failed' } });
  expect(JSON.stringify(refused.body)).not.toMatch(/git|refs|\//i);

  const away = await mkdtemp(join(tmpdir(), 'tagyard-away-'));
  await rename(world.bare, join(away, 'sites.git'));
  const gone = await world.call('POST', '/server-containers', { as: 'owner', body });
  await rename(join(away, 'sites.git'), world.bare);
  await rm(away, { recursive: true });
  expect(gone).toMatchObject({ status: 503, body: { code: 'sites_repo_unavailable' } });
  expect(JSON.stringify(gone.body)).not.toContain(world.bare);
});

test('the metrics count requests by route, operations by status, and free ports', async () => {
  const { body } = await inject({ url: '/metrics' });
  expect(body).toMatch(
    /tagyard_management_request_seconds_count\{method="POST",route="\/server-containers",status="202"\} [1-9]/,
  );
  expect(body).toMatch(/tagyard_operations\{kind="provision",status="succeeded"\} [1-9]/);
  expect(body).toMatch(/^tagyard_ports_free 48$/m);
});

test('polled routes are logged at level debug, and the others at level info', async () => {
  const levelsOf = async (url: string) => {
    const headers = { 'x-request-id': `levels-${url.slice(1)}` };
    await inject({ url, headers });
    const lines = world.logs.map((line) => JSON.parse(line));
    return lines.filter(({ reqId }) => reqId === headers['x-request-id']).map(({ level }) => level);
  };
  const [debug, info] = [20, 30];
  for (const url of ['/healthz', '/readyz', '/metrics'])
    expect(await levelsOf(url), url).toEqual([debug, debug]);
  expect(await levelsOf('/server-containers')).toEqual([info, info]);
});
