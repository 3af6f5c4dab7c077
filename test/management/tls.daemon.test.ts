import { afterAll, beforeAll, expect, test } from 'vitest';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());

async function create(domain: string, extra: object = {}) {
  const body = creation(client, domain, extra);
  return await world.call('POST', '/server-containers', { as: 'admin', body });
}

const mode = async (siteId: string) => /^tls:\n {2}mode: (.*)$/m.exec((await world.file(siteId)) ?? '')?.[1];

test('tls is changed by a client’s admin, and a clone has that of its original', async () => {
  const { body } = await create('changed.example', { tls: 'files' });
  const change = (as: string, tls: string) =>
    world.call('PATCH', `/server-containers/${body.id}`, { as, body: { tls } });
  expect(await change('viewer', 'acme')).toMatchObject({ status: 403 });
  expect(await change('admin', 'inside')).toMatchObject({ status: 400, body: { errors: [{ path: 'tls' }] } });
  expect(await change('admin', 'acme')).toMatchObject({ status: 200, body: { tls: 'acme' } });
  expect(await mode(body.siteId)).toBe('acme');
  const copy = { name: 'Copy', domains: ['copy.example'], webTagIds: { 'copy.example': 'GTM-ABC1234' } };
  const clone = await world.call('POST', `/server-containers/${body.id}/clone`, { as: 'admin', body: copy });
  expect(clone).toMatchObject({ status: 202, body: { tls: 'acme' } });
});

test('a client’s admin can revert a change of tls', async () => {
  const { body } = await create('reverted.example', { tls: 'files' });
  const url = `/server-containers/${body.id}`;
  const { body: changed } = await world.call('PATCH', url, { as: 'admin', body: { tls: 'acme' } });
  const revert = { commit: changed.revision };
  expect(await world.call('POST', `${url}/revert`, { as: 'admin', body: revert })).toMatchObject({
    status: 200,
    body: { tls: 'files' },
  });
});
