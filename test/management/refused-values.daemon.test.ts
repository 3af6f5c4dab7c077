import { afterAll, beforeAll, expect, test } from 'vitest';
import { World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'warn' });
  client = await world.client();
});
afterAll(() => world.close());

const UUID = '0b0e7f5a-2a53-4a6e-9a51-3f4c5d6e7f80';
const cursor = (...key: string[]) => Buffer.from(JSON.stringify(key)).toString('base64url');

test.each([
  '/server-containers?q=a%00b',
  '/clients?q=a%00b',
  '/audit?actor=a%00b',
  '/audit?action=a%00b',
  `/clients?cursor=${cursor('\0', UUID)}`,
  `/tokens?cursor=${cursor('0000-01-01T00:00:00Z', UUID)}`,
  `/server-containers?sort=name&cursor=${cursor('name', '\0', '1')}`,
  `/server-containers?sort=updatedAt&cursor=${cursor('updatedAt', '2026-99-99 99:99:99+00', '1')}`,
])('%s is an invalid request', async (url) => {
  const { status, body } = await world.call('GET', url, { as: 'root' });
  expect([status, body.code]).toEqual([400, 'invalid_request']);
});

test.each(['application/x-ndjson', 'text/csv'])(
  'an export as %s refuses a value with NUL, too',
  async (accept) => {
    const answer = await world.management?.app.inject({
      method: 'GET',
      url: '/audit?actor=a%00b',
      headers: { accept, authorization: `Bearer ${await world.issuer.token('root')}` },
    });
    expect([answer?.statusCode, answer?.json().code]).toEqual([400, 'invalid_request']);
  },
);

test('what the database refuses is logged', async () => {
  const seen = world.logs.length;
  await world.call('GET', '/audit?actor=%00', { as: 'root' });
  expect(world.logs.slice(seen).join('')).toContain('the database refused a value of the request');
});

test('a webhook’s URL with NUL is refused, and any other is kept in its normal form', async () => {
  const create = (url: string) =>
    world.call('POST', '/webhooks', { as: 'owner', body: { clientId: client, url } });
  for (const url of [
    'https://hooks.acme.example/\0',
    'https://hooks.acme.example/a\0b',
    'https://a\0b.example/',
  ]) {
    const { status, body } = await create(url);
    expect([status, body.code, body.errors[0].path]).toEqual([400, 'invalid_request', 'url']);
  }
  const { status, body } = await create('https://HOOKS.acme.example/a b/../ü\n');
  expect([status, body.url]).toEqual([201, 'https://hooks.acme.example/%C3%BC']);
});
