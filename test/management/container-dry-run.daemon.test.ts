import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseManifest } from '../../sites/manifest/load.ts';
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

/** A request as a dry run, and as the change that saves the plan with this checksum. */
const asPlanned = (method: Method, path: string, body?: unknown) => {
  const call = (query: string, headers: Record<string, string> = {}) =>
    world.call(method, `${path}${path.includes('?') ? '&' : '?'}${query}`, {
      as: 'owner',
      headers,
      ...(body === undefined ? {} : { body }),
    });
  return {
    plan: async () => (await call('dryRun=1')).body.plan,
    save: (checksum: string, headers: Record<string, string> = {}) =>
      call('dryRun=0', { 'x-tagyard-plan': checksum, ...headers }),
  };
};
type Changes = readonly { readonly path: string; readonly to: unknown }[];
const planned = ({ changes }: { readonly changes: Changes }, path: string) =>
  changes.find((one) => one.path === path)?.to;

let count = 0;
/** Another active container. */
async function another(): Promise<string> {
  count += 1;
  const body = creation(client, `another${count}.example`, { name: `Another ${count}` });
  return (await world.call('POST', '/server-containers', { as: 'owner', body })).body.id;
}
const manifestOf = async (site: string) => {
  const parsed = parseManifest((await world.file(site)) ?? '', `${site}.yaml`);
  if (!parsed.ok) throw new Error('the manifest is not valid');
  return parsed.manifest;
};

test('a plan’s checksum saves the generated values that the plan shows', async () => {
  const own = await another();
  const site = `another-${count}`;
  const at = `/server-containers/${own}`;

  const path = asPlanned('POST', `${at}/domains`, { domain: `another${count}.example`, sameOrigin: {} });
  const pathPlan = await path.plan();
  expect(await path.plan()).toEqual(pathPlan);
  expect((await path.save(pathPlan.checksum)).status).toBe(200);
  const [first] = (await manifestOf(site)).domains;
  expect(planned(pathPlan, `domains[another${count}.example].sameOrigin`)).toMatchObject({
    path: first?.sameOrigin?.path,
    forwarder: { generation: first?.sameOrigin?.forwarder.generation },
  });

  const domain = asPlanned('POST', `${at}/domains`, { domain: 'added.example', webTagId: 'GTM-AAAA' });
  const domainPlan = await domain.plan();
  expect((await domain.save(domainPlan.checksum)).status).toBe(200);
  expect(planned(domainPlan, 'domains[added.example]')).toMatchObject({
    containerToken: (await manifestOf(site)).domains[1]?.token,
  });

  const loader = asPlanned('POST', `${at}/loader-tokens/rotate`, {});
  const loaderPlan = await loader.plan();
  const rotated = await loader.save(loaderPlan.checksum);
  expect([rotated.status, rotated.body.loaderToken]).toEqual([200, planned(loaderPlan, 'loaderToken')]);
  // The plan was for another version: its token is never made again.
  expect((await loader.save(loaderPlan.checksum)).body.code).toBe('plan_changed');
  const next = await loader.plan();
  expect(planned(next, 'loaderToken')).not.toBe(rotated.body.loaderToken);
  // Without the checksum, a change is as unpredictable as ever.
  const free = await world.call('POST', `${at}/loader-tokens/rotate`, { as: 'owner', body: {} });
  expect(free.body.loaderToken).not.toBe(planned(next, 'loaderToken'));
});

test('a plan’s checksum creates a container with the planned id, names, ports and tokens', async () => {
  const body = creation(client, 'planned.example', { name: 'Planned' });
  // The name is taken, so a suffix is generated.
  await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'planned0.example', { name: 'Planned' }),
  });
  const lease = (from: string | null, to: string | null) =>
    world.owner
      .updateTable('port_pool')
      .set({ leased_by: to })
      .where('leased_by', from === null ? 'is' : '=', from)
      .where('processing', '=', ({ selectFrom }) =>
        selectFrom('port_pool')
          .select(({ fn }) => fn.min('processing').as('lowest'))
          .where('leased_by', from === null ? 'is' : '=', from),
      )
      .execute();
  const other = await another();
  await world.owner
    .updateTable('port_pool')
    .set({ leased_by: null })
    .where('leased_by', '=', other)
    .execute();
  await lease(null, other);
  const creating = asPlanned('POST', '/server-containers', body);
  const plan = await creating.plan();
  // A lower pair of ports is free by now.
  await lease(other, null);
  const made = await creating.save(plan.checksum);
  expect([made.status, made.body.siteId]).toEqual([202, planned(plan, 'siteId')]);
  expect(made.body.siteId).toMatch(/^planned-[a-z0-9]{5}$/);
  const manifest = await manifestOf(made.body.siteId);
  const saved = {
    id: manifest.container,
    loaderToken: manifest.loaderToken,
    hostnames: manifest.hostnames,
    ports: manifest.ports,
    domains: manifest.domains.map(({ token: containerToken, ...rest }) => ({ ...rest, containerToken })),
  };
  expect(saved).toEqual(Object.fromEntries(Object.keys(saved).map((path) => [path, planned(plan, path)])));
  await lease(null, other);
});

test('a plan that another change has outdated isn’t saved', async () => {
  const own = await another();
  const at = `/server-containers/${own}`;
  const renamed = asPlanned('PATCH', at, { name: 'Renamed' });
  const { checksum } = await renamed.plan();
  const refused = (answer: { status: number; body: { code?: string } }) => [answer.status, answer.body.code];
  const outdated = [412, 'plan_changed'];

  // Another request, another container's change, this container's change.
  expect(refused(await asPlanned('PATCH', at, { name: 'Other' }).save(checksum))).toEqual(outdated);
  expect(refused(await renamed.save('made up'))).toEqual(outdated);
  await world.call('PATCH', `/server-containers/${id}`, { as: 'owner', body: { name: 'Meanwhile' } });
  expect(await renamed.plan()).toMatchObject({ checksum });
  await world.call('PATCH', at, { as: 'owner', body: { features: { cookie_restoration: true } } });
  expect(refused(await renamed.save(checksum))).toEqual(outdated);
  const { checksum: current } = await renamed.plan();
  await world.call('PATCH', `/server-containers/${id}`, { as: 'owner', body: { name: 'And again' } });
  const saved = await renamed.save(current);
  expect([saved.status, saved.body.name]).toEqual([200, 'Renamed']);
});

test('a creation isn’t saved once another site has its planned name or port', async () => {
  const named = asPlanned('POST', '/server-containers', creation(client, 'n.example', { name: 'Named' }));
  const ported = asPlanned('POST', '/server-containers', creation(client, 'p.example', { name: 'Ported' }));
  const plans = [await named.plan(), await ported.plan()];
  await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'named.example', { name: 'Named' }),
  });
  const answers = [await named.save(plans[0].checksum), await ported.save(plans[1].checksum)];
  expect(answers.map(({ status, body }) => [status, body.code])).toEqual([
    [412, 'plan_changed'],
    [412, 'plan_changed'],
  ]);
  const at = `/server-containers/${id}/domains`;
  const domain = asPlanned('POST', at, { domain: 'taken.example', webTagId: 'GTM-AAAA' });
  const { checksum } = await domain.plan();
  const other = await world.client('Taker');
  await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(other, 'taken.example', { name: 'Taker' }),
  });
  const taken = await domain.save(checksum);
  expect([taken.status, taken.body.code, taken.body.detail]).toEqual([
    412,
    'plan_changed',
    expect.stringContaining('another site or client holds taken.example'),
  ]);
  // Nothing was taken by the refused ones.
  expect((await named.save((await named.plan()).checksum)).status).toBe(202);
});

test('a removal and a restoration are saved as planned', async () => {
  const own = await another();
  const removal = asPlanned('DELETE', `/server-containers/${own}`);
  const plan = await removal.plan();
  expect((await removal.save('0'.repeat(64))).body.code).toBe('plan_changed');
  expect((await removal.save(plan.checksum)).status).toBe(202);
  await eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${own}`, { as: 'owner' });
    expect(body.status).toBe('removed');
  });
  const restoration = asPlanned('POST', `/server-containers/${own}/restore`);
  const { checksum } = await restoration.plan();
  expect((await restoration.save('0'.repeat(64))).body.code).toBe('plan_changed');
  expect((await restoration.save(checksum)).status).toBe(202);
  expect((await manifestOf(`another-${count}`)).state).toBe('present');
});

test('an item of a bulk request is saved as planned', async () => {
  const own = await another();
  const item = { verb: 'rotateLoaderToken', id: own };
  const bulk = (query: string, plan?: string) =>
    world.call('POST', `/bulk${query}`, {
      as: 'owner',
      body: { items: [{ ...item, ...(plan === undefined ? {} : { plan }) }] },
    });
  const [dry] = (await bulk('?dryRun=1')).body.items;
  const [refused] = (await bulk('', '0'.repeat(64))).body.items;
  const [done] = (await bulk('', dry.answer.plan.checksum)).body.items;
  expect([refused.status, done.status]).toEqual([412, 200]);
  expect(done.answer.loaderToken).toBe(planned(dry.answer.plan, 'loaderToken'));
});
