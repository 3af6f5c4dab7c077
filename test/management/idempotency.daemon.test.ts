import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { unseal } from '../../management/http/sealed.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
let container: string;
let count = 0;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  client = await world.client();
  const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  container = made.body.id;
});
afterAll(() => world.close());

interface Kind {
  readonly as: string;
  readonly url: () => string;
  readonly body: () => object;
  /** Another body for the same address. */
  readonly other: () => object;
  readonly table: 'clients' | 'organisations' | 'invitations' | 'service_tokens' | 'webhooks';
}

const KINDS: Readonly<Record<string, Kind>> = {
  client: {
    as: 'root',
    url: () => '/clients',
    body: () => ({ name: 'Once', members: [{ subject: 'ada', role: 'owner' }] }),
    other: () => ({ name: 'Another' }),
    table: 'clients',
  },
  organisation: {
    as: 'root',
    url: () => '/organisations',
    body: () => ({ name: 'Agency' }),
    other: () => ({ name: 'Another' }),
    table: 'organisations',
  },
  invitation: {
    as: 'owner',
    url: () => `/clients/${client}/invitations`,
    body: () => ({ role: 'viewer' }),
    other: () => ({ role: 'editor' }),
    table: 'invitations',
  },
  token: {
    as: 'owner',
    url: () => '/tokens',
    body: () => ({ name: 'CI', client, scopes: ['viewer'] }),
    other: () => ({ name: 'CI', client, scopes: ['editor'] }),
    table: 'service_tokens',
  },
  webhook: {
    as: 'owner',
    url: () => '/webhooks',
    body: () => ({ clientId: client, url: 'https://hooks.acme.example/a' }),
    other: () => ({ clientId: client, url: 'https://hooks.acme.example/b' }),
    table: 'webhooks',
  },
};

const keyed = () => {
  count += 1;
  return { 'idempotency-key': `key-${count}-4f0c7b1e9d` };
};
const rows = async (table: Kind['table']) =>
  (await world.owner.selectFrom(table).select('id').execute()).length;
const post = ({ as, url }: Kind, body: object, headers: Record<string, string>) =>
  world.call('POST', url(), { as, body, headers });

describe.each(Object.entries(KINDS))('the creation of a %s', (_name, kind) => {
  test('is repeated with the same answer, and creates one thing', async () => {
    const before = await rows(kind.table);
    const headers = keyed();
    const first = await post(kind, kind.body(), headers);
    expect(first.status).toBe(201);
    const again = await post(kind, kind.body(), headers);
    expect(again.status).toBe(201);
    expect(again.body).toEqual(first.body);
    expect(again.headers.etag).toBe(first.headers.etag);
    expect(await rows(kind.table)).toBe(before + 1);
  });

  test('is refused for another body with the same key, and made with another key', async () => {
    const headers = keyed();
    await post(kind, kind.body(), headers);
    const before = await rows(kind.table);
    expect((await post(kind, kind.other(), headers)).body.code).toBe('idempotency_key_reused');
    expect((await post(kind, kind.other(), keyed())).status).toBe(201);
    expect(await rows(kind.table)).toBe(before + 1);
  });

  test('creates one thing if it is requested several times at once', async () => {
    const before = await rows(kind.table);
    const headers = keyed();
    const answers = await Promise.all([1, 2, 3].map(() => post(kind, kind.body(), headers)));
    const codes = answers.map(({ status, body }) => (status === 201 ? 201 : body.code));
    expect(codes).toContain(201);
    expect(codes.filter((code) => code !== 201 && code !== 'request_in_progress')).toEqual([]);
    expect(await rows(kind.table)).toBe(before + 1);
  });

  test('is continued after the process died before it stored the answer', async () => {
    const headers = keyed();
    const first = await post(kind, kind.body(), headers);
    const before = await rows(kind.table);
    const forget = (until: string) =>
      sql`update idempotency_keys set answer = null, running_until = now() + ${until}::interval
        where made = ${first.body.id}`.execute(world.owner);
    await forget('1 minute');
    expect((await post(kind, kind.body(), headers)).body.code).toBe('request_in_progress');
    await forget('-1 second');
    const again = await post(kind, kind.body(), headers);
    expect([again.status, again.body.id]).toEqual([201, first.body.id]);
    expect(await rows(kind.table)).toBe(before);
    expect((await post(kind, kind.body(), headers)).body).toEqual(again.body);
  });

  test('stores nothing if it is refused', async () => {
    const headers = keyed();
    expect(
      (await world.call('POST', kind.url(), { as: 'stranger', body: kind.body(), headers })).status,
    ).toBe(kind.as === 'root' ? 403 : 404);
    // A refusal stores nothing, so the same key works once the caller has the right.
    const { rows: kept } = await sql`select 1 from idempotency_keys where subject = 'stranger'`.execute(
      world.owner,
    );
    expect(kept).toEqual([]);
  });

  test('by another caller with the same key is separate, unless only root may create one', async () => {
    const headers = keyed();
    const first = await post(kind, kind.body(), headers);
    const as = kind.as === 'root' ? 'root' : 'admin';
    const other = await world.call('POST', kind.url(), { as, body: kind.body(), headers });
    expect(other.body.id === first.body.id).toBe(as === kind.as);
  });
});

test('a continued creation answers the same token', async () => {
  const kind = KINDS.token as Kind;
  const headers = keyed();
  const first = await post(kind, kind.body(), headers);
  await sql`update idempotency_keys set answer = null, running_until = now() - interval '1 second'
    where made = ${first.body.id}`.execute(world.owner);
  const again = await post(kind, kind.body(), headers);
  expect(again.body.value).toBe(first.body.value);
  expect((await world.call('GET', '/me', { token: again.body.value })).status).toBe(200);
});

test.each(['token', 'webhook', 'invitation'])('the stored answer about a %s has no secret', async (name) => {
  const kind = KINDS[name] as Kind;
  const headers = keyed();
  const { body } = await post(kind, kind.body(), headers);
  const { rows: kept } = await sql<{ answer: string }>`
    select subject, key, answer from idempotency_keys where made = ${body.id}`.execute(world.owner);
  expect(JSON.stringify(kept)).not.toContain(headers['idempotency-key']);
  const secret = headers['idempotency-key'];
  const stored = JSON.stringify(unseal({ secret, purpose: 'answers' }, kept[0]?.answer ?? ''));
  expect(stored).toContain(body.id);
  expect(stored).not.toMatch(/tgy_|tgi_|whsec_/);
  // Another caller's repetition, or one of another creation, derives another secret.
  const other = await post(kind, kind.body(), keyed());
  const secretIn = (answer: typeof body) => answer.value ?? answer.secret ?? answer.token;
  expect(secretIn(other.body)).not.toBe(secretIn(body));
});

test.each(Object.entries(KINDS))(
  'a repeated creation of a %s is refused once the caller has lost the role',
  async (name, kind) => {
    const headers = keyed();
    const of = await world.client('Left');
    const isOperators = kind.as === 'root';
    const url = kind.url().replace(client, of);
    const body = JSON.parse(JSON.stringify(kind.body()).replace(client, of));
    const create = () => world.call('POST', url, { as: isOperators ? 'root' : 'admin', body, headers });
    expect((await create()).status, name).toBe(201);
    if (isOperators) Object.assign(world.settings, { superAdmins: [] });
    else await world.call('DELETE', `/clients/${of}/members/admin`, { as: 'owner' });
    const again = await create();
    if (isOperators) Object.assign(world.settings, { superAdmins: ['root'] });
    expect([again.status, Object.keys(again.body).includes('id')]).toEqual([isOperators ? 403 : 404, false]);
  },
);

test('a repeated bulk request has no forwarder token, and no container that the caller can’t read', async () => {
  const of = await world.client('Bulk');
  const made = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(of, 'bulk.example', { name: 'Bulk' }),
  });
  const headers = keyed();
  const item = { verb: 'addDomain', id: made.body.id, body: { domain: 'bulk.example', sameOrigin: {} } };
  const send = () => world.call('POST', '/bulk', { as: 'admin', body: { items: [item] }, headers });
  const first = await send();
  expect(JSON.stringify(first.body)).toMatch(/ft_/);
  const again = await send();
  expect(again.body.items[0].answer).toMatchObject({ id: made.body.id, loaderToken: expect.any(String) });
  expect(JSON.stringify(again.body)).not.toMatch(/ft_/);
  await world.call('DELETE', `/clients/${of}/members/admin`, { as: 'owner' });
  expect((await send()).body).toMatchObject({ done: 1, items: [{ id: made.body.id, answer: null }] });
});

test('a repeated creation of a container is answered although the client’s limit is reached', async () => {
  const limited = { containers: 1 };
  const before = { ...world.settings.quotas };
  Object.assign(world.settings.quotas, limited);
  const of = await world.client('One');
  const create = (headers: Record<string, string>) =>
    world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(of, 'one.example', { name: 'One' }),
      headers,
    });
  const headers = keyed();
  const [first, again] = [await create(headers), await create(headers)];
  Object.assign(world.settings.quotas, before);
  expect([first.status, again.status, again.body.id]).toEqual([202, 202, first.body.id]);
});

test('a bulk request is done once', async () => {
  const headers = keyed();
  const items = [{ verb: 'change', id: container, body: { name: 'Bulk' } }];
  const first = await world.call('POST', '/bulk', { as: 'owner', body: { items }, headers });
  expect(first.body).toMatchObject({ done: 1, refused: 0 });
  await world.call('PATCH', `/server-containers/${container}`, { as: 'owner', body: { name: 'Later' } });
  const again = await world.call('POST', '/bulk', { as: 'owner', body: { items }, headers });
  expect(again.body).toEqual(first.body);
  const now = await world.call('GET', `/server-containers/${container}`, { as: 'owner' });
  expect(now.body.name).toBe('Later');
});

test('a dry run doesn’t use up its key', async () => {
  const headers = keyed();
  const kind = KINDS.client as Kind;
  const tried = await world.call('POST', '/clients?dryRun=1', { as: 'root', body: kind.body(), headers });
  expect(tried.body).toHaveProperty('plan');
  expect((await post(kind, kind.other(), headers)).status).toBe(201);
});

test('a key of a wrong form is refused', async () => {
  const kind = KINDS.client as Kind;
  const refused = await post(kind, kind.body(), { 'idempotency-key': 'a b' });
  expect([refused.status, refused.body.errors?.[0]?.path]).toEqual([400, 'idempotency-key']);
});
