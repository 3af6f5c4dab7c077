import { afterAll, beforeAll, expect, test } from 'vitest';
import { creation, World } from '../../support/management/world.ts';

let world: World;
let container: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  const client = await world.client('Acme');
  const { body } = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  container = body.id;
});
afterAll(() => world.close());

const refusal = async (path: string) => {
  const { status, body } = await world.call('GET', path, { as: 'viewer' });
  return [status, body.code ?? body];
};

test.each([
  'to=9999-12-31',
  'from=9999-12-01&to=9999-12-31',
  'from=0001-01-01&to=0001-01-02',
  'from=0000-01-01&to=0000-01-01&timeZone=Europe/Berlin',
  'to=1000-01-01&timeZone=Asia/Kathmandu',
])('usage of days outside the permitted years is refused: %s', async (query) => {
  expect(await refusal(`/usage?${query}`)).toEqual([400, 'invalid_request']);
});

test.each([
  'from=9999-12-01T00:00:00Z&to=9999-12-31T23:59:59Z&step=86400',
  'from=0000-01-01T00:00:00Z&to=0000-01-02T00:00:00Z&step=86400',
  'to=0000-01-01T00:00:00Z&step=3600',
])('traffic of years that the database doesn’t read is refused: %s', async (query) => {
  for (const path of ['/traffic', `/server-containers/${container}/traffic`])
    expect(await refusal(`${path}?${query}`)).toEqual([400, 'invalid_request']);
});

test('an operator may read a container’s traffic, requests and logs; strangers may not', async () => {
  const of = (path: string, as: string) =>
    world.call('GET', `/server-containers/${container}/${path}`, { as });
  for (const path of ['traffic', 'requests', 'requests/live', 'container-logs', 'container-logs/live']) {
    expect([path, (await of(path, 'stranger')).body.code]).toEqual([path, 'unknown_container']);
  }
  expect((await of('traffic', 'root')).status).toBe(200);
  // This installation has neither a bucket nor a host that keeps lines.
  expect((await of('requests', 'root')).body.code).toBe('search_unavailable');
  expect((await of('container-logs', 'root')).body.code).toBe('host_unavailable');
});
