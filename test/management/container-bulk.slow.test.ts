import { randomUUID } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ALWAYS_ON, FEATURE_FLAGS, MODULES } from '../../plugins/document.ts';
import { eventually } from '../support/eventually.ts';
import { CONFIG, creation, World } from '../support/management/world.ts';
import { serviceAccountJson } from '../support/service-account.ts';

let world: World;
const ids: string[] = [];
beforeAll(async () => {
  world = await World.open();
  const client = await world.client();
  for (const name of ['One', 'Two', 'Three']) {
    const body = creation(client, `${name.toLowerCase()}.example`, { name });
    ids.push((await world.call('POST', '/server-containers', { as: 'owner', body })).body.id);
  }
  await eventually(async () => {
    const { body } = await world.call('GET', '/server-containers?status=active', { as: 'owner' });
    expect(body.containers.length).toBe(3);
  });
});
afterAll(() => world.close());

interface Outcome {
  readonly verb: string;
  readonly status: number;
  readonly answer: {
    readonly id?: string;
    readonly code?: string;
    readonly plan: { readonly commit: string };
  };
}

const bulk = (items: unknown[], as = 'owner', query = '') =>
  world.call('POST', `/bulk${query}`, { as, body: { items } });
const change = (id: string | undefined, body: object) => ({ verb: 'change', id, body });

test('a bulk request does each item, those of one container in order, and continues after a refusal', async () => {
  const { status, body } = await bulk([
    change(ids[0], { name: 'First' }),
    change(ids[1], { nonsense: true }),
    change(randomUUID(), { name: 'x' }),
    { verb: 'protect', id: ids[2], body: { protect: true } },
    { verb: 'remove', id: ids[2] },
    { ...change(ids[1], { name: 'Stale' }), ifMatch: '"none"' },
    change(ids[0], { name: 'Second' }),
    { verb: 'suspend', id: ids[1] },
  ]);
  expect([status, body.done, body.refused]).toEqual([200, 4, 4]);
  expect(
    body.items.map((item: { status: number; answer: { code?: string; name?: string } }) => [
      item.status,
      item.answer.code ?? item.answer.name,
    ]),
  ).toEqual([
    [200, 'First'],
    [400, 'invalid_request'],
    [404, 'unknown_container'],
    [200, 'Three'],
    [409, 'site_protected'],
    [412, 'precondition_failed'],
    [200, 'Second'],
    [200, 'Two'],
  ]);
});

test('a bulk request covers configuration, domains, tokens, service accounts and reverts', async () => {
  const [id] = ids;
  const read = async () => (await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body;
  const before = await read();
  const at = `/server-containers/${id}`;
  await world.call('PATCH', at, { as: 'owner', body: { name: 'To be reverted' } });
  const [{ commit }] = (await world.call('GET', `${at}/history?limit=1`, { as: 'owner' })).body.history;
  const { body } = await bulk([
    { verb: 'setConfig', id, body: { containerConfigB64: CONFIG } },
    { verb: 'addDomain', id, body: { domain: 'shop.one.example', webTagId: 'GTM-ABC1234', sameOrigin: {} } },
    { verb: 'addDomain', id, body: { domain: 'extra.one.example', webTagId: 'GTM-ABC1234' } },
    { verb: 'removeDomain', id, domain: 'extra.one.example' },
    { verb: 'orderDomains', id, body: { domains: ['shop.one.example', 'one.example'] } },
    { verb: 'addCustomDomain', id, body: { domain: 'm.one.example' } },
    { verb: 'addCustomDomain', id, body: { domain: 'n.one.example' } },
    { verb: 'removeCustomDomain', id, domain: 'm.one.example' },
    { verb: 'rotateLoaderToken', id },
    { verb: 'revokeLoaderToken', id, token: before.loaderToken },
    { verb: 'rotateForwarderToken', id, domain: 'shop.one.example' },
    { verb: 'setServiceAccount', id, body: serviceAccountJson() },
    { verb: 'removeServiceAccount', id },
    { verb: 'revert', id, body: { commit } },
    { verb: 'removeDomain', id, domain: 'none.example' },
    { verb: 'setConfig', id, body: { containerConfigB64: 'no base64' } },
  ]);
  const outcomes = body.items.map(({ verb, status, answer }: Outcome) => `${verb} ${answer.code ?? status}`);
  expect(outcomes).toEqual([
    'setConfig 200',
    'addDomain 200',
    'addDomain 200',
    'removeDomain 200',
    'orderDomains 200',
    'addCustomDomain 200',
    'addCustomDomain 200',
    'removeCustomDomain 200',
    'rotateLoaderToken 200',
    'revokeLoaderToken 200',
    'rotateForwarderToken 200',
    'setServiceAccount 200',
    'removeServiceAccount 200',
    'revert 200',
    'removeDomain unknown_domain',
    'setConfig invalid_container_config',
  ]);
  const after = await read();
  expect(after.domains.map(({ domain }: { domain: string }) => domain)).toEqual([
    'shop.one.example',
    'one.example',
  ]);
  expect([after.customDomains, after.serviceAccount]).toEqual([['n.one.example'], null]);
  expect(after.loaderToken).not.toBe(before.loaderToken);
  expect(after.name).toBe(before.name);
});

test('an item that lacks what its verb needs, or has what it doesn’t take, is named', async () => {
  const [id] = ids;
  const { status, body } = await bulk([
    { verb: 'removeDomain', id },
    { verb: 'revokeLoaderToken', id, domain: 'one.example' },
    { verb: 'change', id, domain: 'one.example', body: { name: 'x' } },
  ]);
  expect([status, body.errors.map(({ path }: { path: string }) => path)]).toEqual([
    400,
    ['items.0.domain', 'items.1.domain', 'items.1.token', 'items.2.domain'],
  ]);
});

test('a bulk request plans each item in a dry run, and makes no clone twice for one key', async () => {
  const [id] = ids;
  const clone = (name: string) => ({
    verb: 'clone',
    id,
    body: { name, domains: [`${name}.example`], webTagIds: { [`${name}.example`]: 'GTM-ABC1234' } },
  });
  const items = [clone('cloned-a'), clone('cloned-b'), { verb: 'rotateLoaderToken', id }];
  const head = await world.repo.head();
  const planned = (await bulk(items, 'owner', '?dryRun=1')).body;
  expect(planned.items.map(({ answer }: Outcome) => answer.plan.commit)).toEqual([
    'Create cloned-a',
    'Create cloned-b',
    expect.stringMatching(/^Rotate the loader token of /),
  ]);
  expect(await world.repo.head()).toBe(head);
  const once = async () =>
    await world.call('POST', '/bulk', {
      as: 'owner',
      body: { items },
      headers: { 'idempotency-key': 'clones-1' },
    });
  const first = await once();
  expect(first.body.items.map(({ status }: Outcome) => status)).toEqual([202, 202, 200]);
  // As if the process had died before it stored the answer: the request is done again.
  await world.owner.deleteFrom('idempotency_keys').where('key', 'like', 'sha256:%').execute();
  const again = await once();
  expect(again.body.items.slice(0, 2).map(({ answer }: Outcome) => answer.id)).toEqual(
    first.body.items.slice(0, 2).map(({ answer }: Outcome) => answer.id),
  );
});

test('a dry run changes nothing', async () => {
  const head = await world.repo.head();
  const { body } = await bulk(
    [change(ids[0], { name: 'Never' }), { verb: 'remove', id: ids[0] }],
    'owner',
    '?dryRun=1',
  );
  expect(
    body.items.map(({ answer }: { answer: { plan: { commit: string } } }) => answer.plan.commit),
  ).toEqual(['Change one', 'Remove one']);
  expect(await world.repo.head()).toBe(head);
});

test('each item is judged and audited like a request of its own', async () => {
  const { clientId } = (await world.call('GET', `/server-containers/${ids[0]}`, { as: 'owner' })).body;
  const member = { as: 'owner', body: { role: 'editor' } };
  await world.call('PUT', `/clients/${clientId}/members/editor`, member);
  const { body } = await bulk([{ verb: 'protect', id: ids[0], body: { protect: true } }], 'editor');
  expect(body.items).toMatchObject([{ status: 403, done: false, answer: { code: 'forbidden' } }]);
  const rows = await world.owner
    .selectFrom('audit_log')
    .select(['action', 'status', 'code', 'container_id'])
    .where('actor', '=', 'editor')
    .orderBy('seq')
    .execute();
  expect(rows).toEqual([
    { action: 'changeContainers', status: 200, code: null, container_id: null },
    { action: 'protectContainer', status: 403, code: 'forbidden', container_id: ids[0] },
  ]);
});

test('a caller who may change nothing is refused as a whole', async () => {
  const items = [change(ids[0], { name: 'x' })];
  expect((await bulk(items, 'viewer')).body.code).toBe('forbidden');
  expect((await bulk(items, 'stranger')).body.code).toBe('unknown_client');
});

test('a bulk request takes at most a hundred items', async () => {
  const items = (count: number) =>
    Array.from({ length: count }, () => ({ verb: 'verify', id: randomUUID() }));
  expect((await bulk(items(101))).body.code).toBe('invalid_request');
  expect((await bulk(items(100))).body).toMatchObject({ done: 0, refused: 100 });
  expect((await bulk([])).status).toBe(400);
});

test('the list of plugins has schemas from which forms are made', async () => {
  const { body } = await world.call('GET', '/plugins', { as: 'stranger' });
  expect(body.items.map(({ name }: { name: string }) => name)).toEqual(Object.keys(MODULES));
  for (const { name, title, description, kind, flag, options } of body.items) {
    const isAlwaysOn = ALWAYS_ON.some((one) => one === name);
    const hasFlag = FEATURE_FLAGS.some((one) => one === name);
    expect([kind === 'always_on', kind === 'optional', flag]).toEqual([
      isAlwaysOn,
      hasFlag,
      hasFlag ? name : null,
    ]);
    expect(title).not.toBe(name);
    expect(description).toMatch(/\.$/);
    for (const [key, option] of Object.entries<{ title: string; description: string }>(options.properties)) {
      expect(option.title).not.toBe(key);
      expect(option.description).toMatch(/\.$/);
    }
    const accepts = new Ajv2020({ strict: false }).compile(options);
    const hasDefaults = (options.required ?? []).length === 0;
    expect([accepts({}), accepts({ nonsense: 1 })]).toEqual([hasDefaults, false]);
    expect(hasDefaults || !isAlwaysOn).toBe(true);
  }
  const proxy = body.items.find(({ name }: { name: string }) => name === 'server_proxy');
  expect(proxy.options.properties.paths).toMatchObject({ type: 'array', default: [], maxItems: 50 });
  const first = (await world.call('GET', '/plugins?limit=2', { as: 'viewer' })).body;
  const rest = (await world.call('GET', `/plugins?cursor=${first.next}`, { as: 'viewer' })).body;
  expect([...first.items, ...rest.items]).toEqual(body.items);
});

test('an option that the schema refuses is named with its path', async () => {
  const modules = { server_proxy: { paths: ['/ok', '/../x'] }, cookie_restoration: { cookie: [] } };
  const answer = await world.call('PATCH', `/server-containers/${ids[0]}`, {
    as: 'owner',
    body: { modules },
  });
  const paths = answer.body.errors.map(({ path }: { path: string }) => path);
  expect([answer.status, paths]).toEqual([
    400,
    ['modules.server_proxy.paths.1', 'modules.cookie_restoration.cookie'],
  ]);
});
