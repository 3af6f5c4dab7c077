import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RouteAccess } from '../../management/access/routes.ts';
import { eventually } from '../support/eventually.ts';
import { RouteCalls } from '../support/management/route-calls.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let calls: RouteCalls;
let routes: readonly RouteAccess[];
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  routes = world.management?.routes ?? [];
  calls = await RouteCalls.open(world);
  const script = "data => { allow('send_http'); }";
  await world.call('PUT', '/policy', { as: 'root', body: { script } });
  await world.call('PUT', `/clients/${await clientId()}/policy`, { as: 'root', body: { script } });
});
afterAll(() => world.close());

const clientId = async (): Promise<string> =>
  (await world.call('GET', `/server-containers/${calls.container}`, { as: 'owner' })).body.clientId;

/** The caller with the most rights: an owner, or the operator for what only operators may do. */
const callerOf = ({ access }: RouteAccess) => (access === 'operate' ? 'root' : 'owner');
const named = ({ method, url }: RouteAccess) => `${method} ${url}`;

/** The addresses whose GET answers an ETag. */
async function tagged(): Promise<string[]> {
  const found = [];
  for (const route of routes.filter(({ method, url }) => method === 'GET' && !url.includes('/live'))) {
    const { headers } = await calls.call(route, callerOf(route));
    if (headers.etag !== undefined) found.push(route.url);
  }
  return found;
}

test('mutations at or below the address of an object with an ETag answer 412 to a stale tag', async () => {
  const addresses = await tagged();
  expect(addresses.sort()).toEqual([
    '/clients/:id',
    '/clients/:id/policy',
    '/organisations/:id',
    '/policy',
    '/server-containers/:id',
    '/webhooks/:id',
  ]);
  const mutations = routes.filter(
    ({ method, url }) =>
      method !== 'GET' && addresses.some((address) => url === address || url.startsWith(`${address}/`)),
  );
  expect(mutations.length).toBeGreaterThan(50);
  const document = (await world.call('GET', '/openapi.json')).body;
  const wrong: string[] = [];
  for (const route of mutations) {
    const head = await world.repo.head();
    const stale = await calls.call(route, callerOf(route), { 'if-match': '"stale.stale"' });
    const { parameters = [], responses } = document.paths[route.url.replace(/:(\w+)/g, '{$1}')][
      route.method.toLowerCase()
    ] as { parameters?: { name: string }[]; responses: object };
    const isDeclared = parameters.some(({ name }) => name === 'if-match') && '412' in responses;
    const isUnchanged = (await world.repo.head()) === head;
    if (stale.body?.code !== 'precondition_failed' || !isDeclared || !isUnchanged) {
      wrong.push(`${named(route)}: ${stale.status} ${stale.body?.code}, declared: ${isDeclared}`);
    }
    // The existence of what a caller may not see stays unknown.
    const stranger = await calls.call(route, 'stranger', { 'if-match': '"stale.stale"' });
    if (stranger.status === 412) wrong.push(`${named(route)}: 412 to a stranger`);
  }
  expect(wrong).toEqual([]);
});

test('a current tag is accepted where the route itself doesn’t compare it', async () => {
  const read = async (path: string) => String((await world.call('GET', path, { as: 'owner' })).headers.etag);
  const container = `/server-containers/${calls.container}`;
  const made = await world.call('POST', '/webhooks', {
    as: 'owner',
    body: { client: await clientId(), url: 'http://127.0.0.1:9/' },
  });
  const webhook = `/webhooks/${made.body.id}`;
  expect(made.headers.etag).toBe(await read(webhook));
  const post = async (path: string, body: object, etag: string) =>
    (await world.call('POST', path, { as: 'owner', body, headers: { 'if-match': etag } })).status;
  const clone = { name: 'Copy', domains: ['copy.example'], webTagIds: { 'copy.example': 'GTM-ABC1234' } };
  expect(await post(`${container}/clone`, clone, await read(container))).toBe(202);
  const invitation = { role: 'viewer' };
  const client = `/clients/${await clientId()}`;
  expect(await post(`${client}/invitations`, invitation, await read(client))).toBe(201);
  expect(await post(`${webhook}/secret`, {}, await read(webhook))).toBe(200);
  expect(await post(`${webhook}/test`, {}, '*')).toBe(202);
});

test('of two changes of a webhook by the same tag, one is refused', async () => {
  const body = { client: await clientId(), url: 'http://127.0.0.1:9/' };
  const made = await world.call('POST', '/webhooks', { as: 'owner', body });
  const headers = { 'if-match': String(made.headers.etag) };
  const change = (url: string) =>
    world.call('PATCH', `/webhooks/${made.body.id}`, { as: 'owner', body: { url }, headers });
  const both = await Promise.all([change('http://127.0.0.1:8/a'), change('http://127.0.0.1:8/b')]);
  expect(both.map(({ status }) => status).sort()).toEqual([200, 412]);
});

test('a restoration and a transfer compare the tag of the container', async () => {
  const [from, to] = [await world.client('From'), await world.client('To')];
  const body = creation(from, 'tagged.example', { name: 'Tagged' });
  const { id } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
  const at = `/server-containers/${id}`;
  const status = async (is: string) =>
    await eventually(async () => {
      const answer = await world.call('GET', at, { as: 'owner' });
      expect(answer.body.status).toBe(is);
      return String(answer.headers.etag);
    });
  const active = await status('active');
  const transfer = async (etag: string) =>
    (
      await world.call('POST', `/clients/${from}/transfer`, {
        as: 'owner',
        body: { containers: [id], to, ifMatch: { [id]: etag } },
      })
    ).body.items;
  expect(await transfer('"stale.stale"')).toMatchObject([{ status: 'refused', code: 'precondition_failed' }]);
  expect(await transfer(active)).toMatchObject([{ status: 'transferred' }]);
  await world.call('DELETE', at, { as: 'owner' });
  const removed = await status('removed');
  const restore = async (etag: string) =>
    (await world.call('POST', `${at}/restore`, { as: 'owner', headers: { 'if-match': etag } })).body;
  expect((await restore(active)).code).toBe('precondition_failed');
  expect((await restore(removed)).status).toBe('provisioning');
});
