import { sql } from 'kysely';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { Receiver } from '../support/management/receiver.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let receiver: Receiver;
let client: string;
let container: string;
beforeAll(async () => {
  receiver = new Receiver();
  await receiver.start();
  world = await World.open({ logLevel: 'silent' });
  client = await world.client();
  const body = creation(client);
  container = (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
  await eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${container}`, { as: 'owner' });
    expect([body.status, body.health]).toEqual(['active', 'healthy']);
  });
});
afterAll(async () => {
  await world.close();
  await receiver.stop();
});
beforeEach(async () => {
  await world.owner.deleteFrom('webhooks').execute();
  receiver.received.length = 0;
  receiver.answer = () => 204;
});

const create = async (extra: object = {}) =>
  (
    await world.call('POST', '/webhooks', {
      as: 'owner',
      body: { client, url: `${receiver.url}/`, ...extra },
    })
  ).body;
const call = async (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object, as = 'owner') =>
  await world.call(method, `/webhooks/${path}`, { as, ...(body && { body }) });
const deliveries = async (id: string, query = '') =>
  (await call('GET', `${id}/deliveries${query}`)).body.items;
/** Adds an event, as every change does. */
const happens = (kind = 'changed') =>
  sql`insert into container_events (container_id, kind, status) values (${container}, ${kind}, 'active')`.execute(
    world.owner,
  );
const isIdle = (id: string) =>
  eventually(async () => expect(await deliveries(id, '?status=pending')).toEqual([]));
/** Makes retries due now. */
const hurry = async () => {
  await sql`update webhook_queues set due_at = now() where due_at is not null and lease is null`.execute(
    world.owner,
  );
  await sql`update webhooks set paused_until = null`.execute(world.owner);
};

test('a change arrives, signed as Standard Webhooks demands, and is listed as delivered', async () => {
  const { id, secret, ...webhook } = await create();
  expect(webhook).toMatchObject({ client, organisation: null, enabled: true, notice: null });
  await world.call('PATCH', `/server-containers/${container}`, {
    as: 'owner',
    body: { name: 'Delivered' },
    headers: { 'x-request-id': 'hook-1' },
  });
  await eventually(() => expect(receiver.received).toHaveLength(1));
  const [message] = receiver.received;
  const verified = new Webhook(secret).verify(
    message?.body ?? '',
    message?.headers as Record<string, string>,
  );
  const [event] = (await world.call('GET', '/events?limit=1', { as: 'owner' })).body.items;
  expect(verified).toEqual({ type: 'container.changed', timestamp: event.at, data: event });
  expect(event.requestId).toBe('hook-1');
  await isIdle(id);
  expect(await deliveries(id)).toMatchObject([
    {
      event: 'container.changed',
      containerId: container,
      status: 'delivered',
      attempts: 1,
      nextAt: null,
      answer: 204,
    },
  ]);
  // The secret is never shown again.
  for (const answer of [await call('GET', id), await world.call('GET', '/webhooks', { as: 'owner' })]) {
    expect(JSON.stringify(answer.body)).not.toContain(secret.slice(6));
  }
});

test('after a rotation both secrets verify', async () => {
  const { id, secret } = await create();
  const rotated = (await call('POST', `${id}/secret`)).body.secret;
  expect(rotated).not.toBe(secret);
  await happens();
  await eventually(() => expect(receiver.received).toHaveLength(1));
  const [message] = receiver.received;
  for (const one of [secret, rotated]) {
    new Webhook(one).verify(message?.body ?? '', message?.headers as Record<string, string>);
  }
  await sql`update webhooks set previous_until = now() - interval '1 second'`.execute(world.owner);
  await happens();
  await eventually(() => expect(receiver.received).toHaveLength(2));
  const later = receiver.received[1];
  expect(() =>
    new Webhook(secret).verify(later?.body ?? '', later?.headers as Record<string, string>),
  ).toThrow();
});

test('a webhook gets only the events that it names, and only while it is on; an organisation’s gets those of its clients', async () => {
  const agency = { name: 'Agency', members: [{ subject: 'boss', role: 'admin' }] };
  const organisation = (await world.call('POST', '/organisations', { as: 'root', body: agency })).body.id;
  await world.call('PATCH', `/clients/${client}`, { as: 'root', body: { organisation } });
  const body = { organisation, url: `${receiver.url}/agency` };
  const made = await world.call('POST', '/webhooks', { as: 'boss', body });
  expect(made.status).toBe(201);
  expect((await world.call('POST', '/webhooks', { as: 'owner', body })).body.code).toBe(
    'unknown_organisation',
  );
  await create({ url: `${receiver.url}/hosts`, events: ['container.host'] });
  await create({ url: `${receiver.url}/off`, enabled: false });
  await happens('changed');
  await happens('host');
  await eventually(() => expect(receiver.received).toHaveLength(3));
  expect([receiver.events('/agency').length, receiver.events('/hosts').length]).toEqual([2, 1]);
});

test('a failed delivery is retried, and holds the later ones of its container until it arrives', async () => {
  receiver.answer = () => 500;
  const { id } = await create();
  await happens();
  await happens();
  await eventually(async () => {
    const [later, first] = await deliveries(id);
    expect(first).toMatchObject({ status: 'pending', attempts: 1, answer: 500, nextAt: expect.any(String) });
    expect(later).toMatchObject({ status: 'pending', attempts: 0 });
    expect(Date.parse(first.nextAt)).toBeGreaterThan(Date.now());
  });
  receiver.answer = () => 200;
  await hurry();
  await isIdle(id);
  const ids = receiver.events();
  expect(ids).toEqual([ids[0], ids[0], ids[2]]);
  expect(new Set(receiver.received.slice(0, 2).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
});

test('a redirect isn’t followed', async () => {
  receiver.answer = () => 302;
  const { id } = await create();
  await happens();
  await eventually(async () =>
    expect(await deliveries(id)).toMatchObject([
      { status: 'pending', answer: 302, error: expect.stringContaining('redirect') },
    ]),
  );
  expect(receiver.events('/elsewhere')).toEqual([]);
});

test('a receiver that answers 410 is switched off, with a notice', async () => {
  receiver.answer = () => 410;
  const { id } = await create();
  await happens();
  await eventually(async () =>
    expect((await call('GET', id)).body).toMatchObject({
      enabled: false,
      notice: { text: expect.stringContaining('410') },
    }),
  );
  expect(await deliveries(id)).toMatchObject([{ status: 'dead' }]);
  expect((await call('POST', `${id}/test`)).body.code).toBe('webhook_disabled');
  expect((await call('PATCH', id, { enabled: true })).body).toMatchObject({ enabled: true, notice: null });
});

test('a delivery is given up after three days, with a notice, and can be sent again', async () => {
  receiver.answer = () => 503;
  const { id } = await create();
  await happens();
  await eventually(async () => expect(await deliveries(id)).toMatchObject([{ attempts: 1 }]));
  await sql`update webhook_deliveries set queued_at = now() - interval '73 hours'`.execute(world.owner);
  await hurry();
  await eventually(async () => expect(await deliveries(id)).toMatchObject([{ status: 'dead', attempts: 2 }]));
  expect((await call('GET', id)).body.notice.text).toContain('status 503');
  receiver.answer = () => 200;
  const [{ id: delivery }] = await deliveries(id);
  const replayed = await call('POST', `${id}/deliveries/${delivery}/replay`);
  expect([replayed.status, replayed.body.status]).toEqual([202, 'pending']);
  await isIdle(id);
  expect(await deliveries(id)).toMatchObject([{ id: delivery, status: 'delivered', attempts: 1 }]);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
});

test('a receiver that always fails is paused, and the others go on', async () => {
  receiver.answer = ({ path }) => (path === '/bad' ? 500 : 200);
  const { id } = await create({ url: `${receiver.url}/bad` });
  await create({ url: `${receiver.url}/good` });
  // A failure is recorded after the receiver has answered, and only then can its queue be due again.
  const due = () =>
    sql`update webhook_queues set due_at = now() where due_at is not null and lease is null`.execute(
      world.owner,
    );
  for (let index = 0; index < 5; index += 1) {
    await happens();
    await eventually(async () => {
      await due();
      expect(receiver.events('/bad').length).toBeGreaterThan(index);
    });
  }
  await eventually(async () => {
    await due();
    expect((await call('GET', id)).body.pausedUntil).not.toBeNull();
  });
  await eventually(() => expect(receiver.events('/good')).toHaveLength(5));
});

test('a test message arrives, and is signed', async () => {
  const { id, secret } = await create();
  const tested = await call('POST', `${id}/test`);
  expect([tested.status, tested.body]).toMatchObject([202, { event: 'webhook.test', containerId: null }]);
  await eventually(() => expect(receiver.received).toHaveLength(1));
  const [message] = receiver.received;
  const verified = new Webhook(secret).verify(
    message?.body ?? '',
    message?.headers as Record<string, string>,
  );
  expect(verified).toMatchObject({ type: 'webhook.test' });
});

test.each<[string, number, string]>([
  ['viewer', 403, 'forbidden'],
  ['stranger', 404, 'unknown_webhook'],
])('a %s can neither read nor change a webhook', async (as, status, code) => {
  const { id } = await create();
  const answers = [
    await call('GET', id, undefined, as),
    await call('GET', `${id}/deliveries`, undefined, as),
    await call('PATCH', id, { enabled: false }, as),
    await call('POST', `${id}/secret`, undefined, as),
    await call('POST', `${id}/test`, undefined, as),
    await call('DELETE', id, undefined, as),
  ];
  for (const answer of answers) expect([answer.status, answer.body.code]).toEqual([status, code]);
  expect((await world.call('GET', '/webhooks', { as })).body).toEqual({ items: [], next: null });
});

test('a webhook is listed, changed and deleted; the audit log records it', async () => {
  const [one, two] = [await create(), await create()];
  const page = (await world.call('GET', `/webhooks?limit=1&client=${client}`, { as: 'admin' })).body;
  expect(page.items.map(({ id }: { id: string }) => id)).toEqual([two.id]);
  const rest = (await world.call('GET', `/webhooks?limit=1&cursor=${page.next}`, { as: 'admin' })).body;
  expect([rest.items[0].id, rest.next]).toEqual([one.id, null]);
  const changed = await call('PATCH', one.id, { url: `${receiver.url}/new`, events: ['container.host'] });
  expect(changed.body).toMatchObject({ url: `${receiver.url}/new`, events: ['container.host'] });
  expect((await call('DELETE', one.id)).status).toBe(204);
  expect((await call('GET', one.id)).body.code).toBe('unknown_webhook');
  // Its client's members read in the audit log what was done with it.
  const audit = (await world.call('GET', '/audit?limit=3', { as: 'owner' })).body.items;
  expect(
    audit.map(({ action, clientId }: { action: string; clientId: string }) => [action, clientId]),
  ).toEqual(['deleteWebhook', 'changeWebhook', 'createWebhook'].map((action) => [action, client]));
});

test('a dry run shows the plan, and does nothing', async () => {
  const { id } = await create();
  const body = { client, url: 'https://hooks.acme.example/' };
  const plans = [
    await world.call('POST', '/webhooks?dryRun=1', { as: 'owner', body }),
    await call('PATCH', `${id}?dryRun=1`, { enabled: false }),
    await call('POST', `${id}/secret?dryRun=1`),
    await call('POST', `${id}/test?dryRun=1`),
    await call('DELETE', `${id}?dryRun=1`),
  ];
  expect(plans.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(plans[1]?.body.plan.changes).toEqual([{ path: 'enabled', from: true, to: false }]);
  expect(JSON.stringify(plans[2]?.body)).not.toContain('whsec_');
  expect((await world.call('GET', '/webhooks', { as: 'owner' })).body.items).toMatchObject([
    { id, enabled: true },
  ]);
  expect(await deliveries(id)).toEqual([]);
  const refused = { ...body, url: 'https://10.0.0.1/' };
  const answer = await world.call('POST', '/webhooks?dryRun=1', { as: 'owner', body: refused });
  expect(answer.body.code).toBe('address_refused');
});

test('clientId and organisationId still name a webhook’s owner; exactly one owner is needed', async () => {
  const url = 'https://hooks.acme.example/older';
  const members = [{ subject: 'boss', role: 'owner' }];
  const agency = await world.call('POST', '/organisations', {
    as: 'root',
    body: { name: 'Agency', members },
  });
  const organisation = agency.body.id;
  const made = await world.call('POST', '/webhooks', { as: 'owner', body: { clientId: client, url } });
  expect(made.body).toMatchObject({ client, organisation: null });
  expect(made.body).not.toHaveProperty('clientId');
  const other = await world.call('POST', '/webhooks', {
    as: 'boss',
    body: { organisationId: organisation, url },
  });
  expect(other.body).toMatchObject({ client: null, organisation });
  const listed = await world.call('GET', `/webhooks?organisation=${organisation}`, { as: 'boss' });
  expect(listed.body.items.map(({ organisation: of }: { organisation: string }) => of)).toContain(
    organisation,
  );
  expect((await world.call('GET', `/webhooks?organisation=${organisation}`, { as: 'owner' })).status).toBe(
    404,
  );
  for (const owners of [{}, { client, clientId: client }, { client, organisation }]) {
    const refused = await world.call('POST', '/webhooks', { as: 'owner', body: { ...owners, url } });
    expect([refused.status, refused.body.code]).toEqual([400, 'invalid_request']);
  }
});
