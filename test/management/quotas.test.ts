import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
});
afterAll(() => world.close());
beforeEach(async () => {
  client = await world.client();
  world.provisioner.quotas = [];
});

let count = 0;
const create = (headers: Record<string, string> = {}) =>
  world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, `quota${++count}.example`),
    headers,
  });
const FULL = {
  state: 'quota_reached' as const,
  message: '1000 of 1000 Workers routes of the zone; a new site needs 1',
  fix: 'Set EDGE_ROUTE_MODE=wildcard.',
};

test('a creation without room is refused before anything is claimed or committed', async () => {
  world.provisioner.quotas = [{ state: 'quota_near', message: '', fix: '' }, FULL];
  const before = await world.repo.head();
  expect(await create()).toMatchObject({
    status: 409,
    body: { code: 'quota_reached', detail: `${FULL.message}. ${FULL.fix}` },
  });
  expect(await world.repo.head()).toBe(before);
  const listed = await world.call('GET', `/server-containers?clientId=${client}`, { as: 'owner' });
  expect(listed.body.containers).toEqual([]);
  // The refused domain is free, and the same request succeeds when there is room.
  world.provisioner.quotas = [];
  count -= 1;
  expect((await create()).status).toBe(202);
});

test.each([
  ['is only near', [{ ...FULL, state: 'quota_near' as const }]],
  ['is unknown to an older provisioner', null],
])('a creation is accepted while a quota %s', async (_what, quotas) => {
  world.provisioner.quotas = quotas;
  expect((await create()).status).toBe(202);
});

test('a repeated creation gets its first answer although the last room is taken since', async () => {
  const headers = { 'idempotency-key': 'quota-key' };
  const first = await create(headers);
  expect(first.status).toBe(202);
  world.provisioner.quotas = [FULL];
  count -= 1;
  const again = await create(headers);
  expect(again).toMatchObject({ status: 202, body: { id: first.body.id } });
});

test('a domain is added to a site although the zone is full, but not to one that waits for room itself', async () => {
  const { body } = await create();
  const at = `/server-containers/${body.id}`;
  await eventually(async () =>
    expect((await world.call('GET', at, { as: 'owner' })).body.status).toBe('active'),
  );
  world.provisioner.quotas = [FULL];
  const add = (domain: string) =>
    world.call('POST', `${at}/domains`, { as: 'owner', body: { domain, webTagId: 'GTM-ABC1234' } });
  expect((await add('second-of-quota.example')).status).toBe(200);
  const site = world.provisioner.sites.get(body.siteId);
  world.provisioner.sites.set(body.siteId, { reason: 'QuotaReached', message: 'dns: no more records' });
  expect(await add('third-of-quota.example')).toMatchObject({
    status: 409,
    body: { code: 'quota_reached', detail: 'dns: no more records' },
  });
  const custom = { as: 'owner', body: { domain: `m.quota${count}.example` } };
  expect((await world.call('POST', `${at}/custom-domains`, custom)).status).toBe(409);
  if (site !== undefined) world.provisioner.sites.set(body.siteId, site);
  expect((await add('third-of-quota.example')).status).toBe(200);
});
