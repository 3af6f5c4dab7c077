import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
let container: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
  const body = creation(client);
  container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
});
afterAll(() => world.close());

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
const at = () => `/server-containers/${container}`;

/** Endpoints of containers, each with a valid body that changes nothing when it is refused. */
const ENDPOINTS: [string, Method, () => string, () => unknown, 'read' | 'act'][] = [
  ['create', 'POST', () => '/server-containers', () => creation(client, 'other.example'), 'act'],
  ['list', 'GET', () => `/server-containers?clientId=${client}`, () => undefined, 'read'],
  ['read', 'GET', at, () => undefined, 'read'],
  ['events', 'GET', () => `${at()}/events`, () => undefined, 'read'],
  ['change', 'PATCH', at, () => ({ name: 'Other' }), 'act'],
  [
    'add a domain',
    'POST',
    () => `${at()}/domains`,
    () => ({ domain: 'x.example', webTagId: 'GTM-AAAA' }),
    'act',
  ],
  ['remove a domain', 'DELETE', () => `${at()}/domains?domain=acme.example`, () => undefined, 'act'],
  ['add a host', 'POST', () => `${at()}/custom-domains`, () => ({ domain: 'm.acme.example' }), 'act'],
  ['remove a host', 'DELETE', () => `${at()}/custom-domains?domain=m.acme.example`, () => undefined, 'act'],
  ['rotate', 'POST', () => `${at()}/loader-token`, () => ({}), 'act'],
  ['rotate a forwarder', 'POST', () => `${at()}/domains/acme.example/forwarder-token`, () => ({}), 'act'],
  ['remove', 'DELETE', at, () => undefined, 'act'],
];

describe.each(ENDPOINTS)('%s', (_name, method, url, body, purpose) => {
  test('answers 404 to callers who are not members, including operators', async () => {
    for (const as of ['stranger', 'root']) {
      const answer = await world.call(method, url(), { as, body: body() });
      expect([answer.status, answer.body.code]).toEqual([404, expect.stringMatching(/^unknown_/)]);
    }
  });

  test(purpose === 'act' ? 'is forbidden to viewers' : 'is open to viewers', async () => {
    const answer = await world.call(method, url(), { as: 'viewer', body: body() });
    expect(answer.status).toBe(purpose === 'act' ? 403 : 200);
  });
});

test.each(['owner', 'admin'])('an %s may act', async (as) => {
  const answer = await world.call('PATCH', at(), { as, body: { name: `By ${as}` } });
  expect([answer.status, answer.body.name]).toEqual([200, `By ${as}`]);
});

test('a container that never existed is answered like one of a foreign client', async () => {
  const answer = await world.call('GET', '/server-containers/7c9e6679-7425-40de-944b-e07fc1f90ae7', {
    as: 'owner',
  });
  expect([answer.status, answer.body.code]).toEqual([404, 'unknown_container']);
});

test('a list has no containers of clients that the caller is not a member of', async () => {
  const { body } = await world.call('GET', '/server-containers', { as: 'stranger' });
  expect(body).toEqual({ containers: [], next: null });
});

describe('clients', () => {
  test.each([
    ['owner', 200],
    ['viewer', 403],
    ['stranger', 404],
  ])('can’t be created by %s, who gets %i for a change of members', async (as, status) => {
    const made = await world.call('POST', '/clients', { as, body: { name: 'Mine' } });
    const put = await world.call('PUT', `/clients/${client}/members/${as}`, { as, body: { role: 'owner' } });
    expect([made.status, put.status]).toEqual([403, status]);
  });

  test('get members from an operator, and the role of each applies', async () => {
    const put = (role: string) =>
      world.call('PUT', `/clients/${client}/members/late%20comer`, { as: 'root', body: { role } });
    expect((await put('viewer')).body).toEqual({ subject: 'late comer', role: 'viewer' });
    const change = () => world.call('PATCH', at(), { as: 'late comer', body: { name: 'Late' } });
    expect((await change()).status).toBe(403);
    await put('admin');
    expect((await change()).status).toBe(200);
  });

  test('lose members by an operator’s request, and those lose all access at once', async () => {
    const member = `/clients/${client}/members/leaver`;
    await world.call('PUT', member, { as: 'root', body: { role: 'admin' } });
    const read = async () => (await world.call('GET', at(), { as: 'leaver' })).status;
    const remove = async (as: string) => {
      const { status, body } = await world.call('DELETE', member, { as });
      return [status, body?.code ?? body];
    };
    expect(await read()).toBe(200);
    expect(await remove('viewer')).toEqual([403, 'forbidden']);
    expect(await remove('root')).toEqual([204, null]);
    expect(await read()).toBe(404);
    expect(await remove('root')).toEqual([404, 'unknown_member']);
    const audit = await world.owner
      .selectFrom('audit_log')
      .selectAll()
      .where('action', '=', 'removeMember')
      .orderBy('seq')
      .execute();
    expect(audit).toMatchObject([
      { actor: 'viewer', client_id: client, status: 403 },
      { actor: 'root', client_id: client, status: 204, code: null },
      { actor: 'root', client_id: client, status: 404, code: 'unknown_member' },
    ]);
  });

  test('keep at least one owner', async () => {
    const members = ['first', 'second'].map((subject) => ({ subject, role: 'owner' }));
    const { body } = await world.call('POST', '/clients', { as: 'root', body: { name: 'Two', members } });
    const at = (subject: string) => `/clients/${body.id}/members/${subject}`;
    const remove = (subject: string) => world.call('DELETE', at(subject), { as: 'root' });
    const put = (subject: string, role: string) =>
      world.call('PUT', at(subject), { as: 'root', body: { role } });
    const both = await Promise.all([remove('first'), put('second', 'viewer')]);
    expect(both.map(({ status }) => status).sort()).toEqual([expect.any(Number), 409]);
    const [first] = both;
    const last = first?.status === 409 ? 'first' : 'second';
    expect((await remove(last)).body.code).toBe('last_owner');
    expect((await put(last, 'admin')).body.code).toBe('last_owner');
    expect((await put(last, 'owner')).status).toBe(200);
    await put('third', 'owner');
    expect((await remove(last)).status).toBe(204);
  });

  test.each([
    ['a role with a typo', { subject: 'typo', role: 'onwer' }, 'members.0.role'],
    ['a subject with spaces around it', { subject: ' typo', role: 'owner' }, 'members.0.subject'],
  ])('refuse %s', async (_what, member, path) => {
    const body = { name: 'Typo', members: [member] };
    const made = await world.call('POST', '/clients', { as: 'root', body });
    expect([made.status, made.body.errors?.[0]?.path]).toEqual([400, path]);
    const at = `/clients/${client}/members/${encodeURIComponent(member.subject)}`;
    const put = await world.call('PUT', at, { as: 'root', body: { role: member.role } });
    expect(put.status).toBe(400);
  });

  test('refuse a member that is listed twice', async () => {
    const members = ['owner', 'viewer'].map((role) => ({ subject: 'ada', role }));
    const made = await world.call('POST', '/clients', { as: 'root', body: { name: 'Twice', members } });
    expect([made.status, made.body.errors?.[0]?.path]).toEqual([400, 'members.1.subject']);
  });

  test('accept a subject of the longest length that a token may have', async () => {
    const subject = 'ü'.repeat(255);
    const member = `/clients/${client}/members/${encodeURIComponent(subject)}`;
    const put = await world.call('PUT', member, { as: 'root', body: { role: 'viewer' } });
    expect([put.status, put.body]).toEqual([200, { subject, role: 'viewer' }]);
    expect((await world.call('DELETE', member, { as: 'root' })).status).toBe(204);
  });

  test('refuse a subject that the database can’t store', async () => {
    for (const method of ['PUT', 'DELETE'] as const) {
      const body = method === 'PUT' ? { role: 'viewer' } : undefined;
      const answer = await world.call(method, `/clients/${client}/members/a%00b`, { as: 'root', body });
      expect([answer.status, answer.body.errors?.[0].path]).toEqual([400, 'subject']);
    }
  });

  test.each<['PUT' | 'DELETE', unknown]>([
    ['PUT', { role: 'owner' }],
    ['DELETE', undefined],
  ])('must exist for a %s of a member', async (method, body) => {
    const unknownClient = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
    const answer = await world.call(method, `/clients/${unknownClient}/members/x`, { as: 'root', body });
    expect([answer.status, answer.body.code]).toEqual([404, 'unknown_client']);
  });
});

test('a change that waited until its caller had lost the role is refused', async () => {
  const member = `/clients/${client}/members/late`;
  await world.call('PUT', member, { as: 'owner', body: { role: 'editor' } });
  const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const commit = world.repo.commit.bind(world.repo);
  world.repo.commit = async (edit) => {
    if (edit.trailers?.Actor === 'late') {
      reached.resolve();
      await held.promise;
    }
    return await commit(edit);
  };
  const late = world.call('PATCH', at(), { as: 'late', body: { name: 'Too late' } });
  await reached.promise;
  const taken = await world.call('DELETE', member, { as: 'owner' });
  held.resolve();
  expect([taken.status, (await late).body.code]).toEqual([204, 'unknown_container']);
  expect((await world.call('GET', at(), { as: 'owner' })).body.name).not.toBe('Too late');
});
