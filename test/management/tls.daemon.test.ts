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

test.each([
  ['without an authority', false, null, {}, 'files'],
  ['with an authority', true, null, {}, 'acme'],
  ['with an authority and DEFAULT_TLS=files', true, 'files', {}, 'files'],
  ['without an authority and DEFAULT_TLS=acme', false, 'acme', {}, 'acme'],
  ['with an authority, if the request names files', true, null, { tls: 'files' }, 'files'],
] as const)('a new container on a host %s', async (name, hasAuthority, defaultTls, extra, expected) => {
  await world.stop();
  world.provisioner.hasAuthority = hasAuthority;
  Object.assign(world.settings, { defaultTls });
  // Asked at once, so perhaps before the host's first report.
  await world.start();
  const { status, body } = await create(`${name.replace(/[\W_]+/g, '-').toLowerCase()}.example`, extra);
  expect({ status, tls: body.tls }).toEqual({ status: 202, tls: expected });
  expect(await mode(body.siteId)).toBe(expected === 'files' ? undefined : expected);
});

test('tls is changed by a client’s admin, and a clone has that of its original', async () => {
  const { body } = await create('changed.example', { tls: 'files' });
  const change = (as: string, tls: string) =>
    world.call('PATCH', `/server-containers/${body.id}`, { as, body: { tls } });
  expect(await change('viewer', 'acme')).toMatchObject({ status: 403 });
  expect(await change('admin', 'inside')).toMatchObject({ status: 400, body: { errors: [{ path: 'tls' }] } });
  expect(await change('admin', 'acme')).toMatchObject({ status: 200, body: { tls: 'acme' } });
  expect(await mode(body.siteId)).toBe('acme');
  world.provisioner.hasAuthority = false;
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
