import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { CONFIG, creation, World } from '../support/management/world.ts';
import { serviceAccountJson } from '../support/service-account.ts';

let world: World;
let client: string;
let id: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
  id = (await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) })).body.id;
  await eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
    // Its health is recorded a little later, which changes the row, too.
    expect(body).toMatchObject({ status: 'active', health: 'healthy' });
  });
});
afterAll(() => world.close());

/** Everything that a change may touch. */
async function state() {
  const rows = (table: 'containers' | 'domain_claims' | 'port_pool' | 'operations' | 'container_events') =>
    world.owner.selectFrom(table).selectAll().execute();
  return {
    head: await world.repo.head(),
    containers: await rows('containers'),
    claims: await rows('domain_claims'),
    ports: await rows('port_pool'),
    operations: await rows('operations'),
    events: await rows('container_events'),
    keys: await world.owner.selectFrom('idempotency_keys').selectAll().execute(),
  };
}

type Method = 'POST' | 'PUT' | 'PATCH' | 'DELETE';
const rows: [string, Method, () => string, () => unknown, string[], string | null][] = [
  ['a name', 'PATCH', () => '', () => ({ name: 'Other' }), ['name'], 'Change acme-shop'],
  ['nothing', 'PATCH', () => '', () => ({ features: { multi_domain: false } }), [], null],
  [
    'a service account',
    'PUT',
    () => '/service-account',
    () => serviceAccountJson(),
    ['serviceAccount'],
    'Set the service account of acme-shop',
  ],
  ['no service account', 'DELETE', () => '/service-account', () => undefined, [], null],
  [
    'a loader token',
    'POST',
    () => '/loader-token',
    () => ({}),
    ['loaderToken', 'previousLoaderTokens'],
    'Rotate the loader token of acme-shop',
  ],
  [
    'a domain',
    'POST',
    () => '/domains',
    () => ({ domain: 'other.example', webTagId: 'GTM-AAAA' }),
    ['domains[other.example]'],
    'Add domain other.example to acme-shop',
  ],
  [
    'an option of a domain',
    'POST',
    () => '/domains',
    () => ({ domain: 'acme.example', webTagId: 'GTM-BBBB' }),
    ['domains[acme.example].webTagId'],
    'Change domain acme.example of acme-shop',
  ],
  [
    'a custom domain',
    'POST',
    () => '/custom-domains',
    () => ({ domain: 'm.acme.example' }),
    ['customDomains'],
    'Add custom domain m.acme.example to acme-shop',
  ],
  ['a removal', 'DELETE', () => '', () => undefined, ['state'], 'Remove acme-shop'],
  ['a verification', 'POST', () => '/verify', () => undefined, [], null],
];

test.each(rows)('a dry run plans %s and changes nothing', async (_, method, path, body, paths, commit) => {
  const before = await state();
  const answer = await world.call(method, `/server-containers/${id}${path()}?dryRun=1`, {
    as: 'owner',
    body: body(),
  });
  expect([
    answer.status,
    answer.body.plan?.changes.map(({ path }: { path: string }) => path.replace(/\[lt_.*/, '')),
  ]).toEqual([200, paths]);
  expect(answer.body.plan.commit ?? null).toBe(commit);
  expect(JSON.stringify(answer.body)).not.toMatch(/AGE ENCRYPTED|PRIVATE KEY/);
  expect(await state()).toEqual(before);
});

test('a dry run plans a creation, and takes no port, no name, no idempotency key', async () => {
  const before = await state();
  const answer = await world.call('POST', '/server-containers?dryRun=1', {
    as: 'owner',
    body: creation(client, 'second.example', { name: 'Second' }),
    headers: { 'idempotency-key': 'tried' },
  });
  expect(answer.status).toBe(200);
  expect(answer.body.plan).toMatchObject({ commit: 'Create second', warnings: [] });
  expect(answer.body.plan.changes).toContainEqual({ path: 'containerConfigB64', from: null, to: '(secret)' });
  expect(JSON.stringify(answer.body)).not.toContain(CONFIG);
  expect(await state()).toEqual(before);
});

test('a dry run is refused like the real request', async () => {
  const dry = (method: Method, path: string, as: string, body?: unknown, headers = {}) =>
    world.call(method, path, { as, headers, ...(body === undefined ? {} : { body }) });
  const at = `/server-containers/${id}`;
  const refused = [
    await dry('PATCH', `${at}?dryRun=1`, 'viewer', { name: 'x' }),
    await dry('PATCH', `${at}?dryRun=1`, 'stranger', { name: 'x' }),
    await dry('PATCH', `${at}?dryRun=1`, 'owner', { name: 'x' }, { 'if-match': '"none"' }),
    await dry('DELETE', `${at}/domains?domain=acme.example&dryRun=1`, 'owner'),
    await dry('POST', `${at}/custom-domains?dryRun=1`, 'owner', { domain: 'm.foreign.example' }),
    await dry('POST', '/server-containers?dryRun=1', 'owner', creation(client)),
    await dry('PATCH', `${at}?dryrun=1`, 'owner', { name: 'x' }),
    await dry('POST', `${at}/verify?dryRun=1`, 'viewer'),
  ];
  expect(refused.map(({ status, body }) => [status, body.code])).toEqual([
    [403, 'forbidden'],
    [404, 'unknown_container'],
    [412, 'precondition_failed'],
    [409, 'last_domain'],
    [422, 'foreign_domain'],
    [409, 'domain_in_use'],
    [400, 'invalid_request'],
    [403, 'forbidden'],
  ]);
});

test('a dry run is refused for a domain that another client holds', async () => {
  const other = await world.client('Other');
  const made = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(other, 'held.example', { name: 'Held' }),
  });
  const taken = await world.call('POST', `/server-containers/${id}/domains?dryRun=1`, {
    as: 'owner',
    body: { domain: 'held.example', webTagId: 'GTM-AAAA' },
  });
  expect([made.status, taken.status, taken.body.code]).toEqual([202, 409, 'domain_in_use']);
});

test('a dry run is marked in the audit log', async () => {
  await world.call('DELETE', `/server-containers/${id}?dryRun=1`, { as: 'admin' });
  const row = await world.owner
    .selectFrom('audit_log')
    .select(['action', 'status', 'code', 'container_id'])
    .where('actor', '=', 'admin')
    .executeTakeFirst();
  expect(row).toEqual({ action: 'removeContainer', status: 200, code: 'dry_run', container_id: id });
});

test('a dry run checks no domain, so it doesn’t count against the limit of checks', async () => {
  await world.call('POST', `/server-containers/${id}/custom-domains`, {
    as: 'owner',
    body: { domain: 'tags.acme.example' },
  });
  for (const path of ['domains/acme.example', 'custom-domains/tags.acme.example']) {
    const check = (query: string, as = 'owner') =>
      world.call('POST', `/server-containers/${id}/${path}/check${query}`, { as });
    const plan = await check('?dryRun=1');
    expect([plan.status, plan.body]).toEqual([200, { plan: { changes: [] } }]);
    expect((await check('?dryRun=1', 'viewer')).body.code).toBe('forbidden');
    expect((await check('')).status).toBe(200);
    expect((await check('')).body.code).toBe('rate_limited');
    expect((await check('?dryRun=1')).status).toBe(200);
  }
});

test('a dry run of a plan of the instance stores no plan', async () => {
  const plan = (as: string) => world.call('POST', '/plans?dryRun=1', { as, body: {} });
  expect((await plan('owner')).body.code).toBe('forbidden');
  const { status, body } = await plan('root');
  expect([status, body]).toEqual([200, { plan: { changes: [] } }]);
  expect(await world.owner.selectFrom('plans').selectAll().execute()).toEqual([]);
});

test('a dry run of a creation shows the host name, and a creation takes another one', async () => {
  const body = creation(client, 'möbel.example', { name: 'Möbel Groß' });
  const create = (extra: object, query = '') =>
    world.call('POST', `/server-containers${query}`, { as: 'owner', body: { ...body, ...extra } });
  const namesIn = ({ body: { plan } }: Awaited<ReturnType<typeof create>>) =>
    plan.changes.filter(({ path }: { path: string }) => /^(siteId|hostnames)/.test(path));
  expect(namesIn(await create({}, '?dryRun=1'))).toMatchObject([
    { path: 'siteId', to: 'moebel-gross' },
    { path: 'hostnames', to: { edge: 'moebel-gross.edge.example.net' } },
  ]);
  const wanted = await create({ siteId: 'mg' }, '?dryRun=1');
  expect(namesIn(wanted)[0]).toMatchObject({ path: 'siteId', to: 'mg' });
  for (const [siteId, message] of [
    ['acme-shop', 'is taken, or was once'],
    ['login', 'is reserved'],
    ['acme-preview', 'is reserved'],
    ['Möbel', 'must be 1 to 48 of a-z, 0-9 and -'],
    ['a'.repeat(49), 'must be 1 to 48 of a-z, 0-9 and -'],
  ] as const) {
    for (const query of ['?dryRun=1', '']) {
      const refused = await create({ siteId }, query);
      expect([refused.status, refused.body.code]).toEqual([400, 'invalid_request']);
      expect(refused.body.errors).toEqual([{ path: 'siteId', message: expect.stringContaining(message) }]);
    }
  }
  const created = await create({ siteId: 'mg' });
  expect([created.status, created.body.siteId]).toEqual([202, 'mg']);
});

test('a wanted host name that blocking lists match is kept, with a warning of the list', async () => {
  const body = creation(client, 'ads.example', { name: 'Ads', siteId: 'ads' });
  const { body: answer } = await world.call('POST', '/server-containers?dryRun=1', { as: 'owner', body });
  expect(answer.plan.changes).toContainEqual(expect.objectContaining({ path: 'siteId', to: 'ads' }));
  expect(answer.plan.warnings.join()).not.toContain('instead of the name');
  expect(answer.plan.warnings.join()).toContain('EasyList');
});
