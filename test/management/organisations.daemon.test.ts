import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
let container: string;
let organisation: string;
const at = () => `/server-containers/${container}`;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
  const body = creation(client);
  container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
  const members = [
    { subject: 'boss', role: 'owner' },
    { subject: 'junior', role: 'editor' },
    { subject: 'viewer', role: 'admin' },
    { subject: 'guest', role: 'viewer' },
  ];
  const agency = { name: 'Agency', members };
  organisation = (await world.call('POST', '/organisations', { as: 'root', body: agency })).body.id;
});
afterAll(() => world.close());

const rename = async (as: string) =>
  (await world.call('PATCH', at(), { as, body: { name: `By ${as}` } })).status;
const rotate = async (as: string) =>
  (await world.call('POST', `${at()}/loader-token`, { as, body: {} })).status;
const listed = async (as: string) =>
  (await world.call('GET', '/server-containers', { as })).body.containers.length;

describe('an organisation’s member', () => {
  test('has no role in clients of others', async () => {
    expect([await rename('boss'), await listed('boss')]).toEqual([404, 0]);
  });

  test('has its role in all the organisation’s clients, or a stronger one that a client gives', async () => {
    await world.call('PATCH', `/clients/${client}`, { as: 'root', body: { organisation } });
    expect([await rename('boss'), await rotate('boss'), await listed('boss')]).toEqual([200, 200, 1]);
    expect([await rename('junior'), await rotate('junior'), await listed('junior')]).toEqual([200, 403, 1]);
    expect([await rename('guest'), await rotate('guest'), await listed('guest')]).toEqual([403, 403, 1]);
    expect([await rename('viewer'), await rotate('viewer'), await listed('viewer')]).toEqual([200, 200, 1]);
    expect([await rename('stranger'), await listed('stranger')]).toEqual([404, 0]);
  });
});

describe('an editor', () => {
  test('changes settings and options of domains, and adds or removes nothing', async () => {
    const as = 'junior';
    const webTagId = 'GTM-EDIT123';
    const add = (domain: string) => world.call('POST', `${at()}/domains`, { as, body: { domain, webTagId } });
    expect((await add('acme.example')).body.domains).toMatchObject([{ domain: 'acme.example', webTagId }]);
    expect((await add('other.example')).body.code).toBe('forbidden');
    const features = { cookie_restoration: true };
    expect((await world.call('PATCH', at(), { as, body: { features } })).status).toBe(200);
    expect((await world.call('DELETE', at(), { as })).body.code).toBe('forbidden');
    expect((await world.call('POST', `${at()}/verify`, { as })).body.code).toBe('forbidden');
    const body = creation(client, 'new.example');
    expect((await world.call('POST', '/server-containers', { as, body })).body.code).toBe('forbidden');
  });
});
