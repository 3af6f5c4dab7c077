import { randomUUID } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { World } from '../../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());

const invite = (as: string, body: object, id = client) =>
  world.call('POST', `/clients/${id}/invitations`, { as, body });
const accept = (as: string, token: string) =>
  world.call('POST', '/invitations/accept', { as, body: { token } });
const roleOf = async (subject: string) =>
  (await world.call('GET', '/me', { as: subject })).body.clients[0]?.role ?? null;

test('an invitation gives its role once, to the first who accepts it by its token', async () => {
  const made = await invite('admin', { email: 'new@example.com', role: 'editor' });
  expect(made.status).toBe(201);
  const { token, ...shown } = made.body;
  const list = await world.call('GET', `/clients/${client}/invitations`, { as: 'admin' });
  expect(list.body.items).toEqual([shown]);
  const rows = await world.owner.selectFrom('invitations').selectAll().execute();
  expect(JSON.stringify(rows)).not.toContain(token);
  const answers = await Promise.all([accept('new', token), accept('other', token)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 404]);
  const winner = answers[0]?.status === 200 ? 'new' : 'other';
  expect([await roleOf(winner), (await accept(winner, token)).body.code]).toEqual([
    'editor',
    'unknown_invitation',
  ]);
});

test('a role can’t be weakened by an invitation', async () => {
  const { body } = await invite('owner', { role: 'viewer' });
  expect((await accept('admin', body.token)).body).toMatchObject({ client, role: 'admin' });
});

test('only owners invite owners, and only owners and admins invite', async () => {
  expect((await invite('admin', { role: 'owner' })).body.code).toBe('forbidden');
  expect((await invite('viewer', { role: 'viewer' })).body.code).toBe('forbidden');
  expect((await invite('stranger', { role: 'viewer' })).body.code).toBe('unknown_client');
  expect((await invite('owner', { role: 'owner' })).status).toBe(201);
});

test('a revoked invitation is refused, and so is one whose inviter is no longer a member', async () => {
  const revoked = (await invite('admin', { role: 'viewer' })).body;
  const at = `/clients/${client}/invitations/${revoked.id}`;
  expect((await world.call('DELETE', at, { as: 'viewer' })).body.code).toBe('forbidden');
  expect((await world.call('DELETE', `${at}?dryRun=1`, { as: 'owner' })).status).toBe(200);
  expect((await world.call('DELETE', at, { as: 'owner' })).status).toBe(204);
  for (const gone of [at, `${at}?dryRun=1`]) {
    expect((await world.call('DELETE', gone, { as: 'owner' })).body.code).toBe('unknown_invitation');
  }
  expect((await accept('late', revoked.token)).body.code).toBe('unknown_invitation');
  await world.call('PUT', `/clients/${client}/members/temp`, { as: 'owner', body: { role: 'admin' } });
  const { token } = (await invite('temp', { role: 'admin' })).body;
  await world.call('DELETE', `/clients/${client}/members/temp`, { as: 'owner' });
  expect((await accept('temp', token)).body.code).toBe('unknown_invitation');
});

test('an expired invitation is refused', async () => {
  expect((await invite('admin', { role: 'viewer', expiresAt: '2020-01-01T00:00:00Z' })).status).toBe(400);
  const { body } = await invite('admin', { role: 'viewer' });
  await world.owner
    .updateTable('invitations')
    .set({ expires_at: new Date(0) } as never)
    .where('id', '=', body.id)
    .execute();
  expect((await accept('late', body.token)).body.code).toBe('unknown_invitation');
});

test('an organisation invites too', async () => {
  const members = [{ subject: 'boss', role: 'owner' }];
  const organisation = (
    await world.call('POST', '/organisations', { as: 'root', body: { name: 'Agency', members } })
  ).body.id;
  const made = await world.call('POST', `/organisations/${organisation}/invitations`, {
    as: 'boss',
    body: { role: 'admin' },
  });
  expect((await accept('hand', made.body.token)).body).toEqual({ client: null, organisation, role: 'admin' });
  const listed = await world.call('GET', '/organisations', { as: 'hand' });
  expect(listed.body.items).toMatchObject([{ id: organisation, role: 'admin' }]);
});

test('callers list the invitations that they manage, page by page; an operator lists anyone’s', async () => {
  const members = [{ subject: 'mara', role: 'owner' }];
  const make = async (path: string) =>
    (await world.call('POST', path, { as: 'root', body: { name: 'Mara', members } })).body.id;
  const [own, organisation] = [await make('/clients'), await make('/organisations')];
  const at = [`/clients/${own}`, `/organisations/${organisation}`];
  const made: string[] = [];
  for (const path of [...at, ...at]) {
    const body = { role: 'viewer' };
    made.push((await world.call('POST', `${path}/invitations`, { as: 'mara', body })).body.id);
  }
  const list = async (as: string, query = '') =>
    (await world.call('GET', `/invitations?limit=3${query}`, { as })).body;
  const first = await list('mara');
  const rest = await list('mara', `&cursor=${first.next}`);
  const all = [...first.items, ...rest.items];
  expect([first.items.length, rest.next]).toEqual([3, null]);
  expect(all.map(({ id }) => id).sort()).toEqual(made.sort());
  expect(new Set(all.map((one) => [one.client, one.organisation].join()))).toEqual(
    new Set([`${own},`, `,${organisation}`]),
  );
  const ofClient = (await list('mara', `&client=${own}`)).items;
  expect(ofClient.map((one: { client: string }) => one.client)).toEqual([own, own]);
  expect((await list('stranger')).items).toEqual([]);
  await world.call('PUT', `/clients/${own}/members/vic`, { as: 'mara', body: { role: 'editor' } });
  expect((await list('vic')).items).toEqual([]);
  expect((await list('vic', `&client=${own}`)).code).toBe('forbidden');
  expect((await list('stranger', `&client=${own}`)).code).toBe('unknown_client');
  expect((await list('stranger', `&organisation=${organisation}`)).code).toBe('unknown_organisation');
  expect((await list('root', `&organisation=${organisation}`)).items.length).toBe(2);
});

test('a dry run is judged like the real acceptance, and consumes nothing', async () => {
  const { body } = await invite('admin', { role: 'editor' });
  const dry = (token: string) =>
    world.call('POST', '/invitations/accept?dryRun=1', { as: 'careful', body: { token } });
  const planned = await dry(body.token);
  expect(planned.status).toBe(200);
  expect(JSON.stringify(planned.body.plan.changes)).toContain('careful');
  expect(await roleOf('careful')).toBeNull();
  expect((await accept('careful', body.token)).body.role).toBe('editor');
  expect((await dry(body.token)).body.code).toBe('unknown_invitation');
});

test('after an outage of the repository, only the same person can accept again', async () => {
  const { token } = (await invite('admin', { role: 'editor' })).body;
  const away = `${world.bare}.away`;
  await rename(world.bare, away);
  const refused = await accept('early', token);
  await rename(away, world.bare);
  expect(refused.body.code).toBe('sites_repo_unavailable');
  expect((await accept('thief', token)).body.code).toBe('unknown_invitation');
  expect((await accept('early', token)).body.role).toBe('editor');
  expect((await accept('early', token)).body.code).toBe('unknown_invitation');
});

test('what a service token creates expires no later than the token', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const later = new Date(Date.now() + 7_200_000).toISOString();
  const body = { name: 'CI', client, scopes: ['admin'], expiresAt };
  const { id, value } = (await world.call('POST', '/tokens', { as: 'owner', body })).body;
  const make = (extra: object) =>
    world.call('POST', '/tokens', { token: value, body: { name: 'B', client, scopes: ['admin'], ...extra } });
  const statuses = [
    await make({ expiresAt: null }),
    await make({ expiresAt: later }),
    await make({ expiresAt }),
  ];
  expect(statuses.map(({ status }) => status)).toEqual([400, 400, 201]);
  const at = `/clients/${client}/invitations`;
  const call = (extra: object) =>
    world.call('POST', at, { token: value, body: { role: 'viewer', ...extra } });
  expect((await call({ expiresAt: later })).status).toBe(400);
  const made = await call({});
  expect(made.body.expiresAt).toBe(expiresAt);
  await world.owner
    .updateTable('service_tokens')
    .set({ expires_at: new Date(0) } as never)
    .where('id', '=', id)
    .execute();
  expect((await accept('late', made.body.token)).body.code).toBe('unknown_invitation');
});

test('at most 100 invitations are open', async () => {
  const other = await world.client('Full');
  const row = { client_id: other, organisation_id: null, email: null, role: 'viewer', created_by: 'owner' };
  const rows = Array.from({ length: 100 }, (_, at) => ({
    ...row,
    id: randomUUID(),
    hash: `full ${at}`,
    expires_at: new Date(Date.now() + 3_600_000),
  }));
  await world.owner.insertInto('invitations').values(rows).execute();
  expect((await invite('owner', { role: 'viewer' }, other)).body.code).toBe('limit_reached');
  await world.owner
    .updateTable('invitations')
    .set({ expires_at: new Date(0) } as never)
    .where('hash', '=', 'full 7')
    .execute();
  expect((await invite('owner', { role: 'viewer' }, other)).status).toBe(201);
});

test('invitations that expired 30 days ago are deleted', async () => {
  const { id } = (await invite('owner', { role: 'viewer' })).body;
  const recent = (await invite('owner', { role: 'viewer' })).body.id;
  const expire = (one: string, days: number) =>
    world.owner
      .updateTable('invitations')
      .set({ expires_at: new Date(Date.now() - days * 86_400_000) } as never)
      .where('id', '=', one)
      .execute();
  await expire(id, 31);
  await expire(recent, 29);
  await world.stop();
  await world.start();
  await eventually(async () => {
    const rows = await world.owner
      .selectFrom('invitations')
      .select('id')
      .where('id', 'in', [id, recent])
      .execute();
    expect(rows).toEqual([{ id: recent }]);
  });
});
