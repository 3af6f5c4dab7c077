import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open({ settings: { superAdmins: ['root', 'owner-and-operator'] } });
});
afterAll(() => world.close());
beforeEach(async () => {
  client = await world.client();
  await reports([]);
});

/** Resolves when management knows these quotas: when it has read a report that was made after this call. */
async function reports(quotas: World['provisioner']['quotas']): Promise<void> {
  world.provisioner.quotas = quotas;
  await isReported();
}
async function isReported(): Promise<void> {
  const before = world.provisioner.polls;
  await eventually(async () => expect(world.provisioner.polls).toBeGreaterThan(before + 2));
}

let count = 0;
const create = (headers: Record<string, string> = {}, as = 'owner') =>
  world.call('POST', '/server-containers', {
    as,
    body: creation(client, `quota${++count}.example`),
    headers,
  });
const FULL = {
  state: 'quota_reached' as const,
  message: '1000 of 1000 Workers routes of the zone; a new site needs 1',
  fix: 'Set EDGE_ROUTE_MODE=wildcard.',
};
const NEUTRAL = 'there is no room for the site at the moment; only the operator can make room';
const addMember = (subject: string) =>
  world.call('PUT', `/clients/${client}/members/${subject}`, { as: 'root', body: { role: 'owner' } });

test('a creation without room is refused before anything is claimed or committed', async () => {
  await reports([{ state: 'quota_near', message: '', fix: '' }, FULL]);
  const before = await world.repo.head();
  const refused = await create();
  expect(refused).toMatchObject({ status: 409, body: { code: 'quota_reached', detail: NEUTRAL } });
  expect(await world.repo.head()).toBe(before);
  const listed = await world.call('GET', `/server-containers?clientId=${client}`, { as: 'owner' });
  expect(listed.body.containers).toEqual([]);
  // The refused domain is free, and the same request succeeds when there is room.
  await reports([]);
  count -= 1;
  expect((await create()).status).toBe(202);
});

test('the figures and the remedy are for operators, and in the log', async () => {
  await reports([FULL]);
  const full = `${FULL.message}. ${FULL.fix}`;
  const refused = await create({ 'x-request-id': 'full-zone' });
  expect(JSON.stringify(refused.body)).not.toMatch(/1000|EDGE_ROUTE_MODE/);
  const logged = world.logs.filter((line) => line.includes('full-zone') && line.includes(full));
  expect(logged).toHaveLength(1);
  await addMember('owner-and-operator');
  expect(await create({}, 'owner-and-operator')).toMatchObject({ status: 409, body: { detail: full } });
});

test.each([
  ['is only near', [{ ...FULL, state: 'quota_near' as const }]],
  ['is unknown to an older provisioner', null],
])('a creation is accepted while a quota %s', async (_what, quotas) => {
  await reports(quotas);
  expect((await create()).status).toBe(202);
});

test('a repeated creation gets its first answer although the last place has been taken since', async () => {
  const headers = { 'idempotency-key': 'quota-key' };
  const first = await create(headers);
  expect(first.status).toBe(202);
  await reports([FULL]);
  count -= 1;
  const again = await create(headers);
  expect(again).toMatchObject({ status: 202, body: { id: first.body.id } });
});

test('a domain is added to a site although the zone is full, unless the site itself waits for room', async () => {
  const { body } = await create();
  const at = `/server-containers/${body.id}`;
  const shows = (expected: object) =>
    eventually(async () =>
      expect((await world.call('GET', at, { as: 'owner' })).body).toMatchObject(expected),
    );
  await shows({ status: 'active' });
  await reports([FULL]);
  const add = (domain: string) =>
    world.call('POST', `${at}/domains`, { as: 'owner', body: { domain, webTagId: 'GTM-ABC1234' } });
  expect((await add('second-of-quota.example')).status).toBe(200);
  const site = world.provisioner.sites.get(body.siteId);
  const message = 'dns: 200 of 200 records; set DNS_RECORD_MODE=wildcard';
  world.provisioner.sites.set(body.siteId, { reason: 'QuotaReached', message });
  await isReported();
  expect(await add('third-of-quota.example')).toMatchObject({
    status: 409,
    body: { code: 'quota_reached', detail: NEUTRAL },
  });
  const custom = { as: 'owner', body: { domain: `m.quota${count}.example` } };
  expect((await world.call('POST', `${at}/custom-domains`, custom)).status).toBe(409);
  // The container itself doesn't say how the zone is set up, either.
  await shows({ health: 'degraded', statusReason: 'host_trouble', statusDetail: NEUTRAL });
  if (site !== undefined) world.provisioner.sites.set(body.siteId, site);
  await isReported();
  expect((await add('third-of-quota.example')).status).toBe(200);
});
