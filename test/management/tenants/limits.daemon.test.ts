import { afterAll, beforeAll, expect, test } from 'vitest';
import { World } from '../../support/management/world.ts';

let world: World;
let organisation: string;
beforeAll(async () => {
  const quotas = {
    containers: null,
    members: 100,
    tokens: 10,
    clientsPerOrganisation: 2,
    clientsPerPerson: 2,
  };
  world = await World.open({ logLevel: 'silent', settings: { quotas } });
  const members = [{ subject: 'boss', role: 'owner' }];
  const made = await world.call('POST', '/organisations', { as: 'root', body: { name: 'Agency', members } });
  organisation = made.body.id;
});
afterAll(() => world.close());

const create = (as: string, body: object) =>
  world.call('POST', '/clients', { as, body: { name: 'Shop', ...body } });

test('the number of an organisation’s clients that aren’t archived is limited', async () => {
  const first = (await create('boss', { organisation })).body.id;
  expect((await create('boss', { organisation })).status).toBe(201);
  const third = await create('boss', { organisation });
  expect([third.status, third.body.code]).toEqual([409, 'limit_reached']);
  expect(third.body.detail).toBe(
    'an organisation has at most 2 clients; archive one, or ask the operator to raise CLIENTS_PER_ORGANISATION',
  );
  const dry = await world.call('POST', '/clients?dryRun=1', {
    as: 'boss',
    body: { name: 'Shop', organisation },
  });
  expect(dry.body.code).toBe('limit_reached');
  const outside = (await create('root', {})).body.id;
  const move = () => world.call('PATCH', `/clients/${outside}`, { as: 'root', body: { organisation } });
  expect((await move()).body.code).toBe('limit_reached');
  // A change that adds no client is not refused.
  expect((await world.call('PATCH', `/clients/${first}`, { as: 'boss', body: { name: 'One' } })).status).toBe(
    200,
  );
  expect((await world.call('POST', `/clients/${first}/archive`, { as: 'boss' })).status).toBe(200);
  expect((await move()).status).toBe(200);
  const back = await world.call('POST', `/clients/${first}/unarchive`, { as: 'boss' });
  expect(back.body.code).toBe('limit_reached');
});

test('the number of clients that a person is a member of is limited', async () => {
  const members = [{ subject: 'ada', role: 'owner' }];
  const ids = [];
  for (const _ of [1, 2]) ids.push((await create('root', { members })).body.id);
  const third = await create('root', { members });
  expect([third.status, third.body.code]).toEqual([409, 'limit_reached']);
  expect(third.body.detail).toMatch(/^ada is a member of 2 clients, .*organisation.*CLIENTS_PER_PERSON$/);
  const other = (await create('root', { members: [{ subject: 'eve', role: 'owner' }] })).body.id;
  const put = () =>
    world.call('PUT', `/clients/${other}/members/ada`, { as: 'eve', body: { role: 'viewer' } });
  expect((await put()).body.code).toBe('limit_reached');
  const invited = await world.call('POST', `/clients/${other}/invitations`, {
    as: 'eve',
    body: { role: 'viewer' },
  });
  const accept = () =>
    world.call('POST', '/invitations/accept', { as: 'ada', body: { token: invited.body.token } });
  expect((await accept()).body.code).toBe('limit_reached');
  // Another role in the same client doesn't count as another client.
  await world.call('PUT', `/clients/${ids[0]}/members/eve`, { as: 'ada', body: { role: 'owner' } });
  expect(
    (await world.call('PUT', `/clients/${ids[0]}/members/ada`, { as: 'ada', body: { role: 'admin' } }))
      .status,
  ).toBe(200);
  await world.call('DELETE', `/clients/${ids[0]}/members/ada`, { as: 'eve' });
  expect((await accept()).status).toBe(200);
});
