import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

const NAMES = ['Zürich Shop', 'acme Büro', 'Beta 100%', 'alpha', 'Gamma_x', 'Delta'];

let world: World;
let client: string;
let other: string;
const ids: string[] = [];
beforeAll(async () => {
  // No report of the host changes the health that a test sets.
  world = await World.open({ settings: { watchMs: 3_600_000 } });
  client = await world.client();
  for (const [index, name] of NAMES.entries()) {
    const body = creation(client, `list${index}.example`, { name });
    ids.push((await world.call('POST', '/server-containers', { as: 'owner', body })).body.id);
  }
  const made = await world.call('POST', '/clients', {
    as: 'root',
    body: { name: 'Other', members: [{ subject: 'elsewhere', role: 'owner' }] },
  });
  other = made.body.id;
  const foreign = creation(other, 'foreign.example', { name: 'Foreign Shop' });
  await world.call('POST', '/server-containers', { as: 'elsewhere', body: foreign });
  await eventually(async () => expect(await names('status=active&sort=createdAt')).toEqual(NAMES));
});
afterAll(() => world.close());

const get = (query: string, as = 'viewer') => world.call('GET', `/server-containers?${query}`, { as });
const names = async (query: string, as?: string) =>
  (await get(query, as)).body.containers.map(({ name }: { name: string }) => name);

test.each([
  ['ZÜRICH', ['Zürich Shop']],
  ['zurich', ['Zürich Shop']],
  ['BÜRO', ['acme Büro']],
  ['100%', ['Beta 100%']],
  ['a_x', ['Gamma_x']],
  ['%', ['Beta 100%']],
  ['\\', []],
  ['List3.Example', ['alpha']],
  ['list3-nowhere', []],
  ['delta.edge.example.net', ['Delta']],
  ['delta-preview', ['Delta']],
  ['shop', ['Zürich Shop']],
])('a search by %s finds %j', async (q, expected) => {
  expect(await names(`q=${encodeURIComponent(q)}`)).toEqual(expected);
  expect(await names(`view=summary&q=${encodeURIComponent(q)}`)).toEqual(expected);
});

test('a search finds a container by international names as people read them, and by their A-labels', async () => {
  const hosts = ['möbel-groß.example', '漢字.example', 'bücher.рф', 'faß-ñandú.example'];
  const [first = '', ...more] = hosts;
  const body = creation(other, first, { name: 'International' });
  const { body: made } = await world.call('POST', '/server-containers', { as: 'elsewhere', body });
  for (const domain of more) {
    const added = { domain, webTagId: 'GTM-ABC1234' };
    const { status } = await world.call('POST', `/server-containers/${made.id}/domains`, {
      as: 'elsewhere',
      body: added,
    });
    expect(status).toBe(200);
  }
  for (const q of [...hosts, 'MÖBEL', 'groß', 'mobel-', 'ñandú', '漢', 'xn--mbel-gro-xya6t']) {
    expect(await names(`q=${encodeURIComponent(q)}`, 'elsewhere'), q).toEqual(['International']);
  }
  expect(await names(`domain=${encodeURIComponent('Möbel-Groß.example')}`, 'elsewhere')).toEqual([
    'International',
  ]);
});

test('a search finds a container by a custom domain that was added, and not by one that was removed', async () => {
  const body = { domain: 'metrics.list4.example' };
  await world.call('POST', `/server-containers/${ids[4]}/custom-domains`, { as: 'owner', body });
  expect(await names('q=metrics.list4')).toEqual(['Gamma_x']);
  await world.call('DELETE', `/server-containers/${ids[4]}/custom-domains?domain=metrics.list4.example`, {
    as: 'owner',
  });
  expect(await names('q=metrics.list4')).toEqual([]);
});

const BY_NAME = ['acme Büro', 'alpha', 'Beta 100%', 'Delta', 'Gamma_x', 'Zürich Shop'];
test.each([
  ['name', BY_NAME],
  ['-name', BY_NAME.toReversed()],
  ['createdAt', NAMES],
  ['-createdAt', NAMES.toReversed()],
  ['status', NAMES],
  ['-status', NAMES.toReversed()],
])('the pages of a list sorted by %s have all containers in order', async (sort, expected) => {
  for (const view of ['summary', 'full']) {
    const seen: string[] = [];
    let next: string | null = null;
    do {
      const cursor: string = next === null ? '' : `&cursor=${next}`;
      const { body } = await get(`sort=${sort}&view=${view}&limit=2${cursor}`);
      seen.push(...body.containers.map(({ name }: { name: string }) => name));
      next = body.next;
    } while (next !== null);
    expect(seen).toEqual(expected);
  }
});

test('a list sorts by the last update, to the microsecond', async () => {
  await sql`update containers set updated_at = '2030-01-01 00:00:00.000001+00'::timestamptz
    + make_interval(secs => (6 - seq) * 0.000001) where client_id = ${client}`.execute(world.owner);
  const first = (await get('sort=updatedAt&view=summary&limit=3')).body;
  const second = (await get(`sort=updatedAt&view=summary&limit=3&cursor=${first.next}`)).body;
  const seen = [...first.containers, ...second.containers].map(({ name }) => name);
  expect([seen, second.next]).toEqual([NAMES.toReversed(), null]);
});

test('a list filters by several statuses, health and client', async () => {
  await sql`update containers set health = 'degraded', status = 'verified' where id = ${ids[3]}`.execute(
    world.owner,
  );
  expect(await names('status=verified')).toEqual(['alpha']);
  expect((await names('status=verified,active')).length).toBe(6);
  expect((await names('status=verified&status=active')).length).toBe(6);
  expect(await names('health=degraded')).toEqual(['alpha']);
  expect((await names(`client=${client}`)).length).toBe(6);
  expect((await get(`client=${other}`)).body.code).toBe('unknown_client');
  expect((await names(`client=${client}&clientId=${client}`)).length).toBe(6);
  expect((await get(`client=${client}&clientId=${other}`)).body).toMatchObject({
    status: 400,
    code: 'invalid_request',
    errors: [{ path: 'clientId', message: 'differs from `client`' }],
  });
  expect(await names('q=shop', 'elsewhere')).toEqual(['Foreign Shop']);
});

test('a list shows the traffic of the last day, and sorts by it page by page', async () => {
  const hour = sql`date_trunc('hour', now(), 'UTC')`;
  const counts = [
    [0, { n: 10, x: 1 }],
    [1, { n: 30 }],
    [2, { n: 20, x: 10 }],
  ] as const;
  await sql`update traffic_state set since = ${hour} - interval '12 hours', hours_from = null`.execute(
    world.owner,
  );
  await sql`update traffic_leases set collected_until = now()`.execute(world.owner);
  for (const [index, sums] of counts) {
    await sql`insert into traffic_hours values
      (${ids[index]}, ${hour} - interval '2 hours', false, ${JSON.stringify(sums)}::jsonb),
      (${ids[index]}, ${hour} - interval '1 hour', true, '{"n": 99}'),
      (${ids[index]}, ${hour} - interval '30 hours', false, '{"n": 500}')`.execute(world.owner);
    await sql`insert into traffic_minutes values
      (${ids[index]}, ${hour} - make_interval(hours => 2, mins => ${index}), false, '{"n": 1}')`.execute(
      world.owner,
    );
  }
  const pages = async (sort: string) => {
    const seen: string[] = [];
    let cursor = '';
    do {
      const { status, body } = await get(`view=summary&sort=${sort}&limit=2${cursor}`);
      expect(status).toBe(200);
      seen.push(...body.containers.map(({ name }: { name: string }) => name));
      cursor = body.next === null ? '' : `&cursor=${body.next}`;
    } while (cursor !== '');
    return seen;
  };
  const [first = '', second = '', third = ''] = NAMES;
  const rest = NAMES.slice(3);
  expect(await pages('-requests')).toEqual([second, third, first, ...rest.toReversed()]);
  expect(await pages('requests')).toEqual([...rest, first, third, second]);
  expect(await pages('-errors')).toEqual([third, first, ...rest.toReversed(), second]);
  expect(await pages('-lastVisit')).toEqual([first, second, third, ...rest.toReversed()]);
  expect(await pages('domain')).toEqual(NAMES);
  const { body } = await get('view=summary&q=zurich');
  const { traffic } = body.containers[0];
  expect(traffic).toMatchObject({ requests: 10, errors: 1, lastVisitAt: expect.any(String) });
  // Nothing is known of the time before the collection began.
  expect(traffic.hours).toEqual([...Array(11).fill(null), ...Array(10).fill(0), 10, 0, 0]);
  for (const sort of ['requests', 'lastVisit']) {
    const wrong = Buffer.from(JSON.stringify([sort, 'x', '1'])).toString('base64url');
    expect((await get(`sort=${sort}&cursor=${wrong}`)).status).toBe(400);
  }
  await sql`truncate traffic_hours, traffic_minutes`.execute(world.owner);
  await sql`update traffic_state set since = null`.execute(world.owner);
});

test('a summary has what a list shows', async () => {
  const { body } = await get('view=summary&q=zurich');
  expect(body).toEqual({
    containers: [
      {
        id: ids[0],
        siteId: 'zuerich-shop',
        client,
        clientId: client,
        name: 'Zürich Shop',
        status: 'active',
        statusReason: null,
        suspended: false,
        serving: true,
        health: expect.stringMatching(/healthy|unknown/),
        state: {
          name: 'serving',
          since: expect.any(String),
          sentence: 'It is served.',
          remedy: null,
          detail: null,
          also: [],
        },
        domains: ['list0.example'],
        traffic: null,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
      },
    ],
    next: null,
  });
});

test.each([
  'status=nope',
  'state=nope',
  'sort=domains',
  'cursor=x&sort=name',
  'cursor=12&sort=name',
  'limit=201',
  'q=',
  'view=x',
])('a list refuses the query %s', async (query) => {
  const answer = await get(query);
  expect([answer.status, answer.body.code]).toEqual([400, 'invalid_request']);
});

test('a list refuses the cursor of another order, and takes one by the former name `after`', async () => {
  const { body } = await get('sort=name&limit=2');
  expect((await get(`sort=-name&cursor=${body.next}`)).status).toBe(400);
  const newest = (await get('limit=2')).body.next;
  expect(newest).toMatch(/^\d+$/);
  expect(await names(`limit=2&after=${newest}`)).toEqual(NAMES.toReversed().slice(2, 4));
});

test('the counts are those of what the caller may see', async () => {
  const counts = async (as: string, query = '') =>
    (await world.call('GET', `/server-containers/summary${query}`, { as })).body;
  expect(await counts('viewer')).toMatchObject({
    total: 6,
    status: { active: 5, verified: 1, removed: 0 },
    health: { degraded: 1 },
    suspended: 0,
  });
  expect(await counts('elsewhere')).toMatchObject({ total: 2 });
  expect(await counts('stranger')).toMatchObject({ total: 0, status: { active: 0 } });
  expect(await counts('viewer', `?client=${client}`)).toMatchObject({ total: 6 });
  expect(await counts('viewer', `?client=${other}`)).toMatchObject({ code: 'unknown_client' });
});

test('each count of a health is the length of its list, also with creations that failed', async () => {
  await sql`update containers set health = 'degraded', status = 'failed' where id = ${ids[4]}`.execute(
    world.owner,
  );
  const { body } = await world.call('GET', '/server-containers/summary', { as: 'viewer' });
  for (const [health, count] of Object.entries(body.health))
    expect([health, (await names(`health=${health}`)).length]).toEqual([health, count]);
  expect(body.health.degraded).toBeGreaterThan(0);
});
