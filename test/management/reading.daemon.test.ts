import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { listen as listenTo } from '../support/management/listen.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
const ids: string[] = [];
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
  for (let index = 0; index < 4; index += 1) {
    const body = creation(client, `read${index}.example`);
    ids.unshift((await world.call('POST', '/server-containers', { as: 'owner', body })).body.id);
  }
  await eventually(async () => expect(await list('status=active')).toEqual(ids));
});
afterAll(() => world.close());

const at = () => `/server-containers/${ids[0]}`;
const list = async (query: string, as = 'viewer') => {
  const { body } = await world.call('GET', `/server-containers?${query}`, { as });
  return body.containers.map(({ id }: { id: string }) => id);
};

test.each<[string, () => string, () => unknown[]]>([
  ['a status', () => 'status=active', () => ids],
  ['a status that none has', () => 'status=failed', () => []],
  ['a client', () => `clientId=${client}`, () => ids],
  ['a domain', () => 'domain=read1.example', () => [ids[2]]],
  ['several at once', () => `clientId=${client}&status=active&domain=READ3.example`, () => [ids[0]]],
])('a list filters by %s', async (_what, query, expected) => {
  expect(await list(query())).toEqual(expected());
});

test('a list is paged by a cursor that new containers don’t shift', async () => {
  const first = (await world.call('GET', '/server-containers?limit=2', { as: 'viewer' })).body;
  const body = creation(client, 'late.example');
  const late = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
  expect(await list(`limit=2&after=${first.next}`)).toEqual(ids.slice(2));
  ids.unshift(late);
});

test('a read is answered with 304 while the container is unchanged, and with the container otherwise', async () => {
  const { headers } = await eventually(async () => {
    const answer = await world.call('GET', at(), { as: 'viewer' });
    expect(answer.body).toMatchObject({ status: 'active', health: 'healthy' });
    return answer;
  });
  const etag = String(headers.etag);
  const ask = async (tag: string) => (await raw('GET', at(), { 'if-none-match': tag })).statusCode;
  expect([await ask(etag), await ask(`"x", ${etag}`), await ask('"other"')]).toEqual([304, 304, 200]);
  expect([await ask(`W/${etag}`), await ask('*')]).toEqual([304, 304]);
});

test.each<['POST' | 'PATCH' | 'DELETE', string, object?]>([
  ['PATCH', '', { name: 'Other' }],
  ['DELETE', ''],
  ['POST', '/domains', { domain: 'more.example', webTagId: 'GTM-AAAA' }],
  ['DELETE', '/domains?domain=read3.example'],
  ['POST', '/custom-domains', { domain: 'm.read3.example' }],
  ['DELETE', '/custom-domains?domain=m.read3.example'],
  ['POST', '/loader-token', {}],
  ['POST', '/domains/read3.example/forwarder-token', {}],
  ['POST', '/verify'],
])('%s %s is refused if there is a newer version than that of If-Match', async (method, path, body) => {
  const before = await world.file('acme-shop');
  const { status, body: problem } = await world.call(method, `${at()}${path}`, {
    as: 'owner',
    body,
    headers: { 'if-match': '"0123456789abcdef.0123456789abcdef"' },
  });
  expect([status, problem.code]).toEqual([412, 'precondition_failed']);
  expect(await world.file('acme-shop')).toBe(before);
});

test('the answer to a change has the ETag for the next change', async () => {
  const change = (name: string, ifMatch: string) =>
    world.call('PATCH', at(), { as: 'owner', body: { name }, headers: { 'if-match': ifMatch } });
  const first = await change('First', '*');
  const second = await change('Second', String(first.headers.etag));
  expect([second.status, (await change('Third', String(first.headers.etag))).status]).toEqual([200, 412]);
});

const raw = async (method: 'GET' | 'PATCH', url: string, headers: Record<string, string>) => {
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const answer = await world.management?.app.inject({ method, url, headers: { authorization, ...headers } });
  if (answer === undefined) throw new Error('the API is stopped');
  return answer;
};

test('of two changes of the same version, one is accepted, and the other one is refused with 412', async () => {
  const read = await world.call('GET', at(), { as: 'owner' });
  const headers = { 'if-match': String(read.headers.etag) };
  const change = (name: string, extra: Record<string, string> = headers) =>
    world.call('PATCH', at(), { as: 'owner', body: { name }, headers: extra });
  const answers = await Promise.all([change('One'), change('Two')]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 412]);
  expect((await change('Three')).body.code).toBe('precondition_failed');
  expect((await change('Four', { 'if-match': '*' })).status).toBe(200);
  expect((await change('Five', {})).status).toBe(200);
});

/** Reads the event stream of a container over HTTP. */
const listen = (authorization: string, headers: Record<string, string> = {}) =>
  listenTo(`${world.management?.app.listeningOrigin}${at()}/events`, { authorization, ...headers });

test('a stream has new events, and resumes after the last event that was received', async () => {
  await world.management?.app.listen({ host: '127.0.0.1', port: 0 });
  const authorization = `Bearer ${await world.issuer.token('viewer')}`;
  const open = (headers?: Record<string, string>) => listen(authorization, headers);
  const first = await open();
  await eventually(() => expect(first.kinds().length).toBeGreaterThan(2));
  const before = first.kinds().length;
  await world.call('PATCH', at(), {
    as: 'owner',
    body: { name: 'Streamed' },
    headers: { 'x-request-id': 'sse-1' },
  });
  await eventually(() => expect(first.kinds().slice(before)).toEqual(['changed']));
  expect(first.text()).toContain('"requestId":"sse-1"');
  first.stop.abort();
  await first.reading;

  await world.call('PATCH', at(), { as: 'owner', body: { name: 'Meanwhile' } });
  const second = await open({ 'last-event-id': first.lastId() });
  await eventually(() => expect(second.kinds()).toEqual(['changed']));
  // Open streams don't delay a stop of the API.
  await world.stop();
  await second.reading;
  await world.start();
});

describe('many streams', () => {
  beforeEach(async () => {
    await world.management?.app.listen({ host: '127.0.0.1', port: 0 });
  });
  afterEach(async () => {
    await world.stop();
    await world.start();
  });

  test('cost no query while nothing happens, and one query for all streams when an event occurs', async () => {
    await eventually(async () => {
      const { body } = await world.call('GET', at(), { as: 'viewer' });
      expect(body.health).toBe('healthy');
    });
    const authorization = `Bearer ${await world.issuer.token('viewer')}`;
    const streams = await Promise.all(Array.from({ length: 20 }, () => listen(authorization)));
    await eventually(() => {
      for (const stream of streams) expect(stream.kinds().length).toBeGreaterThan(2);
    });
    const before = streams.map((stream) => stream.kinds().length);
    const asked = vi.spyOn(world.db.getExecutor(), 'executeQuery');
    const queries = () =>
      asked.mock.calls
        .map(([query]) => query.sql)
        .filter((text) => /container_events|client_memberships/.test(text));
    // Meanwhile the background work of the process runs many times.
    const polls = world.provisioner.polls;
    await eventually(() => expect(world.provisioner.polls).toBeGreaterThan(polls + 10));
    expect(queries()).toEqual([]);
    await sql`insert into container_events (container_id, kind, status) values (${ids[0]}, 'changed', 'active')`.execute(
      world.owner,
    );
    await eventually(() => {
      streams.forEach((stream, index) => {
        expect(stream.kinds().slice(before[index])).toEqual(['changed']);
      });
    });
    expect(queries().filter((text) => text.startsWith('select'))).toHaveLength(1);
    asked.mockRestore();
    for (const stream of streams) stream.stop.abort();
  });

  test('are limited for each subject', async () => {
    const { limits } = world.settings;
    Object.assign(limits, { streamsPerSubject: 2 });
    const authorization = `Bearer ${await world.issuer.token('viewer')}`;
    const [first] = [await listen(authorization), await listen(authorization)];
    const headers = { accept: 'text/event-stream' };
    const refused = await world.call('GET', `${at()}/events`, { as: 'viewer', headers });
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_streams']);
    const other = await listen(`Bearer ${await world.issuer.token('owner')}`);
    first?.stop.abort();
    await first?.reading;
    const third = await eventually(() => listen(authorization));
    Object.assign(limits, { streamsPerSubject: 1e9 });
    for (const stream of [other, third]) stream.stop.abort();
  });
});

describe('a stream ends by itself', () => {
  beforeEach(async () => {
    await world.management?.app.listen({ host: '127.0.0.1', port: 0 });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await world.stop();
    await world.start();
  });

  test.each<[string, () => Promise<unknown>]>([
    [
      'when the token that opened it has expired',
      async () => {
        vi.useFakeTimers({ toFake: ['Date'] });
        // Ten minutes until the token expires, and one minute of clock tolerance.
        vi.setSystemTime(Date.now() + 11 * 60_000);
      },
    ],
    [
      'when the membership behind it is taken away',
      () => world.call('DELETE', `/clients/${client}/members/listener`, { as: 'root' }),
    ],
  ])('%s, and only then', async (_when, end) => {
    await world.call('PUT', `/clients/${client}/members/listener`, { as: 'root', body: { role: 'viewer' } });
    const stream = await listen(`Bearer ${await world.issuer.token('listener')}`);
    const other = await listen(`Bearer ${await world.issuer.token('viewer', { exp: 4_000_000_000 })}`);
    await eventually(() => expect(stream.kinds().length).toBeGreaterThan(2));
    await end();
    // This test doesn't abort `stream.stop`, so the reading finishes only if the API ends the stream.
    await stream.reading;
    const before = other.kinds().length;
    const token = await world.issuer.token('owner', { exp: 4_000_000_000 });
    await world.call('PATCH', at(), { token, body: { name: `Ended ${_when}`.slice(0, 40) } });
    await eventually(() => expect(other.kinds().slice(before)).toContain('changed'));
  });
});

test('the request id is passed on to log, commit, provisioner, operation and event', async () => {
  const headers = { 'x-request-id': 'trace-1' };
  const body = creation(client, 'trace.example');
  const made = await world.call('POST', '/server-containers', { as: 'owner', body, headers });
  expect(made.headers['x-request-id']).toBe('trace-1');
  expect(world.logs.some((line) => JSON.parse(line).reqId === 'trace-1')).toBe(true);
  const [commit] = await world.repo.history(made.body.siteId, 1);
  expect(commit?.trailers['Request-Id']).toBe('trace-1');
  expect(world.provisioner.calls).toContainEqual(
    expect.objectContaining({ path: '/provision', requestId: 'trace-1' }),
  );
  const operation = await world.owner
    .selectFrom('operations')
    .select('request_id')
    .where('id', '=', made.body.operation.id)
    .executeTakeFirst();
  expect(operation?.request_id).toBe('trace-1');
  const events = await world.call('GET', `/server-containers/${made.body.id}/events`, { as: 'owner' });
  expect(events.body.events[0]).toMatchObject({ status: 'provisioning', requestId: 'trace-1' });
});
