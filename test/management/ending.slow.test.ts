import { afterAll, beforeAll, expect, test } from 'vitest';
import { creation, World } from '../support/management/world.ts';

const DAY_MS = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);
const date = (time: Date) => time.toISOString().slice(0, 10);

let world: World;
let client: string;
let id: string;
let site: string;

beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  client = await world.client();
  const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  ({ id, siteId: site } = made.body);
  await world.call('GET', `/operations/${made.body.operation.id}?wait=30`, { as: 'owner' });
});
afterAll(() => world.close());

const ending = async (as = 'viewer', query = '') => (await world.call('GET', `/ending${query}`, { as })).body;
const act = async (path: string, body: object) => {
  const url = `/server-containers/${id}${path}`;
  expect((await world.call('POST', url, { as: 'owner', body })).status).toBe(200);
};
const certificate = (key: string, notAfter: Date, notBefore?: Date) => ({
  target: 'certificate' as const,
  key,
  state: 'live' as const,
  reason: '',
  issuer: 'Test CA',
  ...(notBefore === undefined ? {} : { notBefore: notBefore.toISOString() }),
  notAfter: notAfter.toISOString(),
  addresses: null,
  nextCheck: null,
});

test('the list is empty while nothing ends', async () => {
  expect(await ending()).toEqual({
    asOf: expect.any(String),
    hostAnswers: true,
    items: [],
    next: null,
  });
});

test('what ends is listed, the soonest first, and only to those who may read the container', async () => {
  await act('/loader-tokens/rotate', { graceUntil: date(inDays(9)) });
  await act('/domains', { domain: 'acme.example', sameOrigin: { path: '/m3trics1' } });
  await act('/domains/acme.example/forwarder-token', { graceUntil: inDays(4).toISOString() });
  const known = world.provisioner.sites.get(site);
  if (known === undefined) throw new Error('the provisioner has no site');
  const resources = [
    certificate('soon.example', inDays(3)),
    certificate('late.example', inDays(60)),
    certificate('short.example', inDays(2), inDays(-4)),
    certificate('short-late.example', inDays(1), inDays(-5)),
  ];
  world.provisioner.sites.set(site, { ...known, resources });
  world.provisioner.sites.set('foreign', { ...known, resources });
  await world.owner
    .insertInto('domain_proofs')
    .values({ client_id: client, domain: 'acme.example', status: 'proven', absent_since: inDays(-8) })
    .onConflict((known) =>
      known.columns(['client_id', 'domain']).doUpdateSet({ status: 'proven', absent_since: inDays(-8) }),
    )
    .execute();
  const { items } = await ending();
  const container = { containerId: id, name: 'Acme Shop' };
  expect(items).toMatchObject([
    { kind: 'certificate', subject: 'short-late.example', ...container },
    { kind: 'certificate', subject: 'soon.example', ...container },
    { kind: 'forwarder_token', subject: 'acme.example', ...container },
    { kind: 'proof', subject: 'acme.example', ...container },
    { kind: 'loader_token', subject: null, ...container },
  ]);
  expect(date(new Date(items[3].at))).toBe(date(inDays(6)));
  expect((await ending('viewer', '?days=5')).items).toHaveLength(3);
  expect((await ending('viewer', '?days=61')).items).toHaveLength(6);
  expect((await ending('stranger', '?days=61')).items).toEqual([]);
});

test('the list has what management itself knows while the provisioner is away', async () => {
  await world.provisioner.stop();
  const body = await ending();
  expect(body.hostAnswers).toBe(false);
  expect(body.items.map(({ kind }: { kind: string }) => kind)).toEqual([
    'forwarder_token',
    'proof',
    'loader_token',
  ]);
});
