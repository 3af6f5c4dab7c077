import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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

test('a continued creation answers a new token and revokes the first', async () => {
  const kind = KINDS.token as Kind;
  const headers = keyed();
  const first = await post(kind, kind.body(), headers);
  await sql`update idempotency_keys set answer = null, running_until = now() - interval '1 second'
    where made = ${first.body.id}`.execute(world.owner);
  const again = await post(kind, kind.body(), headers);
  expect(again.body.value).not.toBe(first.body.value);
  expect((await world.call('GET', '/me', { token: again.body.value })).status).toBe(200);
  expect((await world.call('GET', '/me', { token: first.body.value })).status).toBe(401);
});

test('the database has no secret of an answer in clear text', async () => {
  const kind = KINDS.token as Kind;
  const headers = keyed();
  const { body } = await post(kind, kind.body(), headers);
  const kept = JSON.stringify(
    (await sql`select subject, key, answer from idempotency_keys`.execute(world.owner)).rows,
  );
  expect(kept).not.toContain(body.value);
  expect(kept).not.toContain(headers['idempotency-key']);
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
