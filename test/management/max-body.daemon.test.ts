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
  const answer = await world.call('POST', '/server-containers', { as: 'owner', body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  return answer.body;
}

const change = (id: string, body: object, query = '') =>
  world.call('PATCH', `/server-containers/${id}${query}`, { as: 'admin', body });
const lineOf = async (site: string) => /^maxBodyMb: .*$/m.exec((await world.file(site)) ?? '')?.[0];

test('a limit of bodies is set at the creation, kept, copied to a clone, changed, cleared and set again', async () => {
  const { id, siteId, maxBodyMb } = await create('small.example', { maxBodyMb: 2 });
  expect([maxBodyMb, await lineOf(siteId)]).toEqual([2, 'maxBodyMb: 2']);
  expect((await change(id, { name: 'Small' })).body).toMatchObject({ name: 'Small', maxBodyMb: 2 });

  const pages = { domains: ['copy.example'], webTagIds: { 'copy.example': 'GTM-BBBB' } };
  const clone = { name: 'Copy', ...pages };
  const copy = await world.call('POST', `/server-containers/${id}/clone`, { as: 'owner', body: clone });
  expect(copy).toMatchObject({ status: 202, body: { maxBodyMb: 2 } });

  expect(await change(id, { maxBodyMb: 4 })).toMatchObject({ status: 200, body: { maxBodyMb: 4 } });
  expect(await lineOf(siteId)).toBe('maxBodyMb: 4');
  const { plan } = (await change(id, { maxBodyMb: null }, '?dryRun=1')).body;
  expect(plan.changes).toEqual([{ path: 'maxBodyMb', from: 4, to: null }]);
  expect(await change(id, { maxBodyMb: null })).toMatchObject({ status: 200, body: { maxBodyMb: null } });
  expect(await lineOf(siteId)).toBeUndefined();
  expect((await change(id, { maxBodyMb: 8 })).body).toMatchObject({ maxBodyMb: 8 });
});

test('a container without a limit of its own shows null, and its file doesn’t name the key', async () => {
  for (const [domain, extra] of [
    ['plain.example', {}],
    ['null.example', { maxBodyMb: null }],
  ] as const) {
    const { siteId, maxBodyMb } = await create(domain, extra);
    expect([maxBodyMb, await lineOf(siteId)]).toEqual([null, undefined]);
  }
});

test('a limit that the edge would not pass, and what isn’t a number of MiB, is refused', async () => {
  const { id } = await create('refused.example');
  for (const maxBodyMb of [0, 9, 1.5, '4']) {
    const answer = await change(id, { maxBodyMb });
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ path: 'maxBodyMb' }] },
    });
  }
});
