import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { creation, World } from '../../support/management/world.ts';

let world: World;
let client: string;
let container: string;
beforeAll(async () => {
  world = await World.open({
    settings: {
      quotas: {
        containers: null,
        members: 100,
        tokens: 12,
        clientsPerOrganisation: 1_000,
        clientsPerPerson: 1_000,
      },
    },
  });
  client = await world.client();
  const body = creation(client);
  container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
});
afterAll(() => world.close());

const make = (as: string, extra: object = {}) =>
  world.call('POST', '/tokens', { as, body: { name: 'CI', client, scopes: ['editor'], ...extra } });
const read = (token: string) => world.call('GET', `/server-containers/${container}`, { token });
const list = async (as: string) => (await world.call('GET', '/tokens', { as })).body.items;

describe('a service token', () => {
  test('acts with its role where a JWT would, is shown once, and is stored as a digest', async () => {
    const { status, body } = await make('admin');
    expect(status).toBe(201);
    const { value, ...shown } = body;
    expect(value).toMatch(/^tgy_[\w-]{43}$/);
    expect(shown).toMatchObject({ client, organisation: null, scopes: ['editor'], lastUsedAt: null });
    expect(await list('owner')).toContainEqual(shown);
    const rows = await world.owner.selectFrom('service_tokens').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(value);
    expect((await read(value)).body.id).toBe(container);
    const at = `/server-containers/${container}`;
    expect((await world.call('PATCH', at, { token: value, body: { name: 'By CI' } })).body.name).toBe(
      'By CI',
    );
    expect((await world.call('DELETE', at, { token: value })).body.code).toBe('forbidden');
    expect((await world.call('GET', '/me', { token: value })).body).toMatchObject({
      subject: `token:${body.id}`,
      scopes: ['editor'],
      clients: [{ id: client, role: 'editor' }],
    });
    const [used] = (await list('owner')).filter(({ id }: { id: string }) => id === body.id);
    expect(used.lastUsedAt).toEqual(expect.any(String));
    const audit = await world.owner
      .selectFrom('audit_log')
      .select(['actor', 'action', 'status'])
      .where('actor', '=', `token:${body.id}`)
      .orderBy('seq')
      .execute();
    expect(audit).toEqual([
      { actor: `token:${body.id}`, action: 'changeContainer', status: 200 },
      { actor: `token:${body.id}`, action: 'removeContainer', status: 403 },
    ]);
    expect(world.logs.join('')).not.toContain(value);
  });

  test('records its use at most once a minute', async () => {
    const { id, value } = (await make('admin')).body;
    const lastUse = async () =>
      (await list('owner')).find((token: { id: string }) => token.id === id).lastUsedAt;
    await read(value);
    const first = await lastUse();
    await read(value);
    expect(await lastUse()).toBe(first);
    const before = new Date(Date.parse(first) - 61_000);
    await world.owner
      .updateTable('service_tokens')
      .set({ last_used_at: before })
      .where('id', '=', id)
      .execute();
    await read(value);
    expect(Date.parse(await lastUse())).toBeGreaterThanOrEqual(Date.parse(first));
  });

  test('is refused once it is revoked or has expired', async () => {
    const { id, value } = (await make('admin')).body;
    expect((await world.call('DELETE', `/tokens/${id}`, { as: 'viewer' })).body.code).toBe('forbidden');
    expect((await world.call('DELETE', `/tokens/${id}`, { as: 'stranger' })).body.code).toBe('unknown_token');
    expect((await world.call('DELETE', `/tokens/${id}`, { as: 'admin' })).status).toBe(204);
    expect([(await read(value)).status, (await read(value)).body.code]).toEqual([401, 'invalid_token']);
    const second = (await make('admin', { expiresAt: '2099-01-01T00:00:00Z' })).body;
    expect((await read(second.value)).status).toBe(200);
    await world.owner
      .updateTable('service_tokens')
      .set({ expires_at: new Date(0) } as never)
      .where('id', '=', second.id)
      .execute();
    expect((await read(second.value)).body.code).toBe('expired_token');
    expect((await make('admin', { expiresAt: '2020-01-01T00:00:00Z' })).status).toBe(400);
  });

  test('makes no token and no member with more than its own role', async () => {
    const { value } = (await make('owner', { scopes: ['admin'] })).body;
    const put = (role: string) =>
      world.call('PUT', `/clients/${client}/members/robot`, { token: value, body: { role } });
    expect([(await put('admin')).status, (await put('owner')).status]).toEqual([200, 403]);
    const editor = (await make('admin')).body.value;
    const body = { name: 'More', client, scopes: ['viewer'] };
    expect((await world.call('POST', '/tokens', { token: editor, body })).body.code).toBe('forbidden');
    expect((await world.call('POST', '/tokens', { token: value, body })).status).toBe(201);
    expect((await make('owner', { scopes: ['owner'] })).status).toBe(400);
  });

  test('is in no list of a client or organisation that the caller doesn’t manage', async () => {
    const code = async (as: string, query: string) =>
      (await world.call('GET', `/tokens?${query}`, { as })).body.code;
    expect([await code('admin', `client=${client}`), await code('root', `client=${client}`)]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await code('viewer', `client=${client}`)).toBe('forbidden');
    expect(await code('stranger', `client=${client}`)).toBe('unknown_client');
    expect(await code('stranger', `organisation=${client}`)).toBe('unknown_organisation');
  });

  test('ends with the token that made it', async () => {
    const first = (await make('owner', { scopes: ['admin'] })).body;
    const by = async (token: string) =>
      (await world.call('POST', '/tokens', { token, body: { name: 'More', client, scopes: ['admin'] } }))
        .body;
    const second = await by(first.value);
    const third = await by(second.value);
    const other = (await make('owner')).body;
    expect((await read(third.value)).status).toBe(200);
    expect((await world.call('DELETE', `/tokens/${first.id}`, { as: 'owner' })).status).toBe(204);
    expect((await read(second.value)).body.code).toBe('invalid_token');
    expect((await read(third.value)).body.code).toBe('invalid_token');
    expect((await read(other.value)).status).toBe(200);
    await world.call('DELETE', `/tokens/${other.id}`, { as: 'owner' });
  });

  test('of an organisation acts in all of its clients', async () => {
    const members = [{ subject: 'boss', role: 'owner' }];
    const organisation = (
      await world.call('POST', '/organisations', { as: 'root', body: { name: 'Agency', members } })
    ).body.id;
    const { value } = (await make('boss', { client: undefined, organisation, scopes: ['viewer'] })).body;
    expect((await read(value)).status).toBe(404);
    await world.call('PATCH', `/clients/${client}`, { as: 'root', body: { organisation } });
    expect((await read(value)).status).toBe(200);
    expect(
      (await list('boss')).some((token: { organisation: string }) => token.organisation === organisation),
    ).toBe(true);
    expect(await list('viewer')).toEqual([]);
  });

  test('is no member in lists or in git, and no person can act as a token', async () => {
    const { id } = (await make('admin')).body;
    const { body } = await world.call('GET', `/clients/${client}/members?limit=200`, { as: 'viewer' });
    expect(JSON.stringify(body)).not.toContain('token:');
    const head = (await world.repo.head()) ?? '';
    expect((await world.repo.readSite(head, `clients/${client}`))?.text).not.toContain('token:');
    const refused = await world.call('GET', '/me', { as: `token:${id}` });
    expect([refused.status, refused.body.code]).toEqual([401, 'invalid_token']);
    const put = await world.call('PUT', `/clients/${client}/members/token:${id}`, {
      as: 'owner',
      body: { role: 'viewer' },
    });
    expect(put.status).toBe(400);
  });

  test('is not made if there are already as many as the settings allow', async () => {
    for (let made = 0; made < 12; made += 1) await make('owner');
    expect((await make('owner')).body.code).toBe('limit_reached');
  });
});

describe('what an admin leaves behind', () => {
  let own: string;
  let organisation: string;
  beforeEach(async () => {
    const members = [
      { subject: 'ann', role: 'owner' },
      { subject: 'lea', role: 'admin' },
    ];
    const made = async (path: string, extra: object) =>
      (await world.call('POST', path, { as: 'root', body: { name: 'Left', members, ...extra } })).body.id;
    organisation = await made('/organisations', {});
    own = await made('/clients', {});
  });

  const token = (as: string, extra: object = {}) =>
    world.call('POST', '/tokens', { as, body: { name: 'CI', client: own, scopes: ['admin'], ...extra } });
  const status = async (value: string, url = `/clients/${own}`) =>
    (await world.call('GET', url, { token: value })).status;
  const member = (subject: string, of = `/clients/${own}`) => `${of}/members/${subject}`;
  const makeAll = async () => {
    const first = (await token('lea')).body;
    const second = (
      await world.call('POST', '/tokens', {
        token: first.value,
        body: { name: 'made by CI', client: own, scopes: ['admin'] },
      })
    ).body;
    const webhook = { client: own, url: 'http://127.0.0.1:9/' };
    const hook = (await world.call('POST', '/webhooks', { as: 'lea', body: webhook })).body;
    const bySecond = (await world.call('POST', '/webhooks', { token: second.value, body: webhook })).body;
    const link = (await world.call('POST', `/clients/${own}/handover-links`, { as: 'lea', body: {} })).body;
    const invitation = (
      await world.call('POST', `/clients/${own}/invitations`, { as: 'lea', body: { role: 'admin' } })
    ).body;
    return { first, second, hook, bySecond, link, invitation };
  };

  test('ends with the removal, and a dry run of it names all', async () => {
    const { first, second, hook, bySecond, link, invitation } = await makeAll();
    const kept = (await token('ann')).body;
    const planned = await world.call('DELETE', `${member('lea')}?dryRun=1`, { as: 'ann' });
    const paths = planned.body.plan.changes.map(({ path }: { path: string }) => path).sort();
    expect(paths).toEqual(
      [
        `handoverLinks[${link.id}]`,
        `invitations[${invitation.id}]`,
        'members[lea]',
        `tokens[${first.id}]`,
        `tokens[${second.id}]`,
        `webhooks[${bySecond.id}]`,
        `webhooks[${hook.id}]`,
      ].sort(),
    );
    expect(await status(first.value)).toBe(200);
    expect((await world.call('DELETE', member('lea'), { as: 'ann' })).status).toBe(204);
    expect([await status(first.value), await status(second.value), await status(kept.value)]).toEqual([
      401, 401, 200,
    ]);
    expect((await world.management?.app.inject({ url: `/handover/${link.secret}` }))?.statusCode).toBe(404);
    const { body } = await world.call('GET', `/webhooks?client=${own}`, { as: 'ann' });
    const off = expect.objectContaining({ enabled: false, notice: expect.anything() });
    expect(body.items).toEqual([off, off]);
    const accept = { as: 'lea', body: { token: invitation.token } };
    expect((await world.call('POST', '/invitations/accept', accept)).status).toBe(404);
    // Who switches it on again answers for it from then on.
    const on = { as: 'ann', body: { enabled: true } };
    expect((await world.call('PATCH', `/webhooks/${hook.id}`, on)).body.enabled).toBe(true);
    await world.call('PUT', member('someone'), { as: 'ann', body: { role: 'viewer' } });
    const again = await world.call('GET', `/webhooks/${hook.id}`, { as: 'ann' });
    expect([again.body.enabled, again.body.notice]).toEqual([true, null]);
  });

  test('ends with a weaker role, too', async () => {
    const { first } = await makeAll();
    await world.call('PUT', member('lea'), { as: 'ann', body: { role: 'editor' } });
    expect(await status(first.value)).toBe(401);
  });

  test('ends with a removal in git', async () => {
    const { first } = await makeAll();
    const clone = await world.clone();
    const file = join(clone, 'clients', `${own}.yaml`);
    await writeFile(file, (await readFile(file, 'utf8')).replace(/\n +admin:\n +- lea/, ''));
    await world.git(clone, 'commit', '--quiet', '-am', 'Lea leaves');
    await world.git(clone, 'push', '--quiet');
    await eventually(async () => expect(await status(first.value)).toBe(401));
  });

  test('ends with the role in the organisation, in its clients, and if a client leaves the organisation', async () => {
    const move = (to: string | null) =>
      world.call('PATCH', `/clients/${own}`, { as: 'root', body: { organisation: to } });
    await world.call('DELETE', member('lea'), { as: 'ann' });
    await move(organisation);
    const inClient = (await token('lea')).body;
    const inOrganisation = (
      await world.call('POST', '/tokens', { as: 'lea', body: { name: 'x', organisation, scopes: ['admin'] } })
    ).body;
    await move(null);
    expect([await status(inClient.value), await status(inOrganisation.value, '/me')]).toEqual([401, 200]);
    await move(organisation);
    const again = (await token('lea')).body;
    const at = member('lea', `/organisations/${organisation}`);
    expect((await world.call('DELETE', at, { as: 'ann' })).status).toBe(204);
    expect([await status(again.value), await status(inOrganisation.value, '/me')]).toEqual([401, 401]);
  });

  test('stays while the maker has the role in another way, or is an operator', async () => {
    const byOperator = (await token('root')).body;
    await world.call('PATCH', `/clients/${own}`, { as: 'root', body: { organisation } });
    const { first } = await makeAll();
    await world.call('DELETE', member('lea'), { as: 'ann' });
    expect([await status(first.value), await status(byOperator.value)]).toEqual([200, 200]);
  });
});

test('without a given expiry, a token expires in 90 days; null is for ever', async () => {
  const id = await world.client('Expiring');
  const days = async (extra: object) => {
    const { body } = await make('admin', { client: id, ...extra });
    return body.expiresAt && Math.round((Date.parse(body.expiresAt) - Date.now()) / 86_400_000);
  };
  expect([await days({}), await days({ expiresAt: null })]).toEqual([90, null]);
});
