import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepPlan } from '../../management/instance/plans.repository.ts';
import { eventually } from '../support/eventually.ts';
import type { MemoryDaemon } from '../support/gitops/memory-daemon.ts';
import { provisionedWorld } from '../support/management/provisioned.ts';
import { creation, type World } from '../support/management/world.ts';

let world: World;
let daemon: MemoryDaemon;
let close: () => Promise<void>;
let id: string;
let site: string;
beforeAll(async () => {
  ({ world, daemon, close } = await provisionedWorld({ logLevel: 'silent' }));
  const client = await world.client();
  const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  id = made.body.id;
  site = made.body.siteId;
  await world.call('GET', `/operations/${made.body.operation.id}?wait=30`, { as: 'owner' });
  await daemon.reaches(site, 'Ready');
  // A site of another client.
  const body = { name: 'Theirs', members: [{ subject: 'other', role: 'owner' }] };
  const other = (await world.call('POST', '/clients', { as: 'root', body })).body.id;
  const foreign = creation(other, 'theirs.example', { name: 'Theirs' });
  expect((await world.call('POST', '/server-containers', { as: 'other', body: foreign })).status).toBe(202);
});
afterAll(() => close());

const read = async (path: string, as = 'root') => await world.call('GET', path, { as });

test.each([
  ['GET', '/hosts'],
  ['GET', '/drift'],
  ['POST', '/plans'],
  ['GET', '/plans'],
  ['GET', '/plans/abc'],
  ['POST', '/plans/abc/approve'],
] as const)('%s %s is for operators', async (method, path) => {
  const answer = await world.call(method, path, { as: 'owner', ...(path === '/plans' && { body: {} }) });
  expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
});

test('a host is shown with its capacity and state', async () => {
  const { items } = (await read('/hosts')).body;
  expect(items).toMatchObject([
    {
      name: 'tag-1',
      state: 'ready',
      problem: null,
      ports: { size: 50, free: 48 },
      revision: await world.repo.head(),
      checks: expect.arrayContaining([expect.objectContaining({ name: 'reconciler', status: 'passed' })]),
    },
  ]);
});

test('drift lists what was changed from outside, with its container', async () => {
  expect((await read('/drift')).body.items).toEqual([]);
  const objects = daemon.world('proxy');
  const [key] = [...objects.keys()].filter((name) => name.startsWith(site));
  objects.delete(key ?? '');
  expect((await read('/drift')).body.items).toMatchObject([
    { site, containerId: id, target: 'proxy', key, drift: true, found: null },
  ]);
  await daemon.fullPass();
  await eventually(async () => expect((await read('/drift')).body.items).toEqual([]));
});

test('drift is listed page by page, by site, target and key', async () => {
  const deleted = ['dns', 'kv', 'proxy'].flatMap((target) => {
    const objects = daemon.world(target);
    const keys = [...objects.keys()].filter((name) => name.includes(site)).slice(0, 2);
    return keys.map((key) => objects.delete(key) && [site, target, key].join(' '));
  });
  expect(deleted.length).toBeGreaterThan(2);
  const seen: string[] = [];
  for (let next: string | null = ''; next !== null; ) {
    const { body } = await read(`/drift?limit=2${next === '' ? '' : `&cursor=${next}`}`);
    expect(body.items.length).toBeLessThanOrEqual(2);
    seen.push(...body.items.map((one: Record<string, string>) => [one.site, one.target, one.key].join(' ')));
    next = body.next;
  }
  expect(seen).toEqual(deleted.sort());
  await daemon.fullPass();
});

test('hosts are listed page by page, too', async () => {
  const { next } = (await read('/hosts?limit=1')).body;
  expect(next).toBeNull();
  const behind = Buffer.from(JSON.stringify(['tag-1'])).toString('base64url');
  expect((await read(`/hosts?cursor=${behind}`)).body).toEqual({ items: [], next: null });
  for (const path of ['/hosts', '/drift', '/plans']) {
    expect((await read(`${path}?cursor=none`)).body.code).toBe('invalid_request');
    expect((await read(`${path}?limit=201`)).body.code).toBe('invalid_request');
  }
});

test('a plan of a branch changes nothing, and can’t be approved', async () => {
  const clone = await world.clone();
  await world.git(clone, 'checkout', '--quiet', '-b', 'proposal');
  await world.git(clone, 'rm', '--quiet', `${site}.yaml`);
  await world.git(clone, 'commit', '--quiet', '-m', 'Remove a site');
  await world.git(clone, 'push', '--quiet', 'origin', 'proposal');
  const made = await world.call('POST', '/plans', { as: 'root', body: { ref: 'proposal' } });
  expect([made.status, made.headers.location]).toEqual([201, `/plans/${made.body.checksum}`]);
  expect((await read(`/plans/${made.body.checksum}`)).body).toEqual(made.body);
  const approved = await world.call('POST', `/plans/${made.body.checksum}/approve`, { as: 'root' });
  expect([approved.status, approved.body.code]).toEqual([412, 'plan_changed']);
  const unknown = await world.call('POST', '/plans', { as: 'root', body: { ref: 'no-such-branch' } });
  expect([unknown.status, unknown.body.code]).toEqual([404, 'unknown_ref']);
  expect((await read('/plans/none')).body.code).toBe('unknown_plan');
});

test('a plan of the newest revision can be approved, also if it was requested by the name of the branch', async () => {
  const { body } = await world.call('POST', '/plans', { as: 'root', body: { ref: 'main' } });
  expect(body).toMatchObject({ ref: 'main', revision: await world.repo.head() });
  const approved = await world.call('POST', `/plans/${body.checksum}/approve`, { as: 'root' });
  expect([approved.status, approved.body.code]).toEqual([202, undefined]);
});

test('a plan of the newest revision can be approved only while a new observation confirms it', async () => {
  const plan = (await world.call('POST', '/plans', { as: 'root', body: {} })).body;
  expect(plan).toMatchObject({
    ref: null,
    actor: 'root',
    revision: await world.repo.head(),
  });
  const approve = (query = '') =>
    world.call('POST', `/plans/${plan.checksum}/approve${query}`, { as: 'root' });
  expect((await approve('?dryRun=1')).body).toEqual({ plan: { changes: [] } });
  const approved = await approve();
  expect([approved.status, approved.body]).toMatchObject([202, { checksum: plan.checksum, approved: 0 }]);
  const { approvedAt } = (await read(`/plans/${plan.checksum}`)).body;
  expect(approvedAt).not.toBeNull();
  // The same plan again is still approved, and a branch with the same changes doesn't take its place.
  const plannedAgain = async (body: object) =>
    (await world.call('POST', '/plans', { as: 'root', body })).body;
  expect(await plannedAgain({})).toMatchObject({ checksum: plan.checksum, ref: null, approvedAt });
  const clone = await world.clone();
  await world.git(clone, 'checkout', '--quiet', '-b', 'same-changes');
  await world.git(clone, 'commit', '--quiet', '--allow-empty', '-m', 'Change nothing');
  await world.git(clone, 'push', '--quiet', 'origin', 'same-changes');
  const ofBranch = await plannedAgain({ ref: 'same-changes' });
  expect(ofBranch).toMatchObject({ checksum: plan.checksum, ref: 'same-changes', approvedAt: null });
  expect((await read(`/plans/${plan.checksum}`)).body).toMatchObject({
    ref: null,
    revision: plan.revision,
    approvedAt,
  });
  expect((await approve()).status).toBe(202);
  // From here on, an observation leads to another plan.
  const held = Promise.withResolvers<void>();
  daemon.control.before = () => held.promise;
  const objects = daemon.world('kv');
  objects.delete([...objects.keys()][0] ?? '');
  const stale = await approve();
  daemon.control.before = () => undefined;
  held.resolve();
  expect(stale.body.code).toBe('plan_changed');
  await daemon.fullPass();
});

test('the plans of a week are listed, newest first, or only those that wait for an approval', async () => {
  const list = async (query = '') => (await read(`/plans${query}`)).body;
  const all = (await list()).items;
  expect(all.length).toBeGreaterThan(1);
  const times = all.map(({ createdAt }: { createdAt: string }) => createdAt);
  expect(times).toEqual(times.toSorted().reverse());
  const first = await list('?limit=1');
  const rest = await list(`?limit=200&cursor=${first.next}`);
  expect([...first.items, ...rest.items]).toEqual(all);
  expect(all.some(({ ref }: { ref: string | null }) => ref === 'proposal')).toBe(true);
  expect((await list('?waiting=1')).items).toEqual([]);

  // A plan of the newest revision that a guard holds, as the provisioner reports it.
  const change = { site, target: 'dns', op: 'delete', summary: '', drift: false, found: null };
  const blocked = [{ reason: 'too_many_sites', detail: 'too many at once' }];
  const guarded = { ...change, key: 'x', held: ['frozen', 'too_many_sites'] };
  const suspended = { ...change, key: 'y', held: ['suspended'] };
  const report = { changes: [guarded, suspended], blocked };
  const insert = async (checksum: string, revision: string | null, created_at = new Date(), of = report) =>
    await world.owner
      .insertInto('plans')
      .values({
        ...{ checksum, ref: null, actor: 'root', created_at },
        report: JSON.stringify({ ...of, checksum, revision }),
      })
      .execute();
  await insert('held-1', await world.repo.head());
  await insert('held-2', 'an-older-revision');
  await insert('held-3', await world.repo.head(), new Date(Date.now() - 8 * 86_400_000));
  // No approval lets a suspended site's changes pass.
  await insert('suspended', await world.repo.head(), new Date(), { ...report, changes: [suspended] });
  expect((await list('?waiting=1')).items).toMatchObject([
    { checksum: 'held-1', changes: 2, held: 2, guarded: 1, blocked, waiting: true, approvedAt: null },
  ]);
  expect((await read('/plans/held-1')).body).toMatchObject({ guarded: 1 });
  const dry = await world.call('POST', '/plans/held-1/approve?dryRun=1', { as: 'root' });
  expect(JSON.stringify(dry.body)).toContain(`${site}: dns x`);
  expect(JSON.stringify(dry.body)).not.toContain(`${site}: dns y`);
  const known = (await list()).items.map(({ checksum }: { checksum: string }) => checksum);
  expect([known.includes('held-2'), known.includes('held-3')]).toEqual([true, false]);
  expect((await read('/plans/held-3')).body.code).toBe('unknown_plan');
});

test('a plan is kept whatever others have written onto the host', async () => {
  // Half a surrogate pair, and NUL: PostgreSQL's jsonb takes neither.
  const found = 'of "\ud83d \u0000"';
  const change = {
    site,
    target: 'containers',
    key: 'x',
    op: 'update',
    summary: '',
    drift: false,
    found,
  } as const;
  const report = { checksum: 'odd-1', revision: null, changes: [{ ...change, held: [] }], blocked: [] };
  await keepPlan(world.db, null, { ref: 'main', report, actor: 'root' });
  expect((await read('/plans/odd-1')).status).toBe(200);
});

test('a container’s readers see the tree of its resources', async () => {
  await daemon.reaches(site, 'Ready');
  const { status, body } = await read(`/server-containers/${id}/resources`, 'viewer');
  expect(status).toBe(200);
  expect(body).toMatchObject({ ready: true, reason: 'Ready', asOf: expect.any(String) });
  const names = body.targets.map(({ target }: { target: string }) => target);
  expect(names).toEqual(['containers', 'proxy', 'kv', 'route', 'dns'].filter((name) => names.includes(name)));
  expect(names.length).toBeGreaterThan(2);
  for (const { state } of body.targets) expect(state).toBe('applied');
  expect((await read(`/server-containers/${id}/resources`, 'other')).status).toBe(404);
});

test('the commits of the instance are listed: operators get all, others those of their containers', async () => {
  await world.call('PATCH', `/server-containers/${id}`, {
    as: 'owner',
    body: { name: 'Renamed' },
    headers: { 'x-request-id': 'change-1' },
  });
  const commits = async (as: string, query = '') => (await read(`/changes${query}`, as)).body;
  const { items } = await commits('owner');
  expect(items[0]).toMatchObject({
    commit: await world.repo.head(),
    author: 'owner',
    requestId: 'change-1',
    sites: [{ siteId: site, containerId: id }],
  });
  const sites = (list: { sites: { siteId: string }[] }[]) =>
    new Set(list.flatMap((one) => one.sites.map(({ siteId }) => siteId)));
  expect(sites(items)).toEqual(new Set([site]));
  expect(items.map(({ subject }: { subject: string }) => subject)).toContain(`Create ${site}`);

  const all: { commit: string; sites: { siteId: string }[] }[] = [];
  for (let next: string | null = ''; next !== null; ) {
    const page = await commits('root', `?limit=2${next === '' ? '' : `&cursor=${next}`}`);
    all.push(...page.items);
    next = page.next;
  }
  const log = (await world.git(world.bare, 'log', '--format=%H', 'main')).trim().split('\n');
  expect(all.map(({ commit }) => commit)).toEqual(log);
  expect(sites(all).size).toBe(2);
  expect((await commits('stranger')).items).toEqual([]);

  const { client } = (await read(`/server-containers/${id}`, 'owner')).body;
  const ofClient = (await commits('owner', `?client=${client}`)).items;
  expect(ofClient).toEqual(items);
  const asOperator = (await commits('root', `?client=${client}`)).items;
  expect(asOperator.map(({ commit }: { commit: string }) => commit)).toEqual(
    items.map(({ commit }: { commit: string }) => commit),
  );
  expect((await commits('stranger', `?client=${client}`)).code).toBe('unknown_client');
});

test('a host shows the sites that it serves and no container here has, until they are gone', async () => {
  const unknown = async () => {
    const { checks } = (await read('/hosts')).body.items[0];
    return checks.find(({ name }: { name: string }) => name === 'containers');
  };
  expect(await unknown()).toMatchObject({ status: 'passed', fix: null });
  // The client has no file in git.
  const theirs = daemon.manifest('stray', 31, { client: '7c9e6679-7425-40de-944b-e07fc1f90aff' });
  await daemon.push('stray', theirs);
  await daemon.reaches('stray', 'Ready');
  expect(await unknown()).toMatchObject({
    status: 'failed',
    detail: expect.stringContaining('stray'),
    fix: expect.stringContaining('clients/'),
  });
  await daemon.push('stray', { ...theirs, state: 'absent' });
  await daemon.reaches('stray', 'Removed');
  expect(await unknown()).toMatchObject({ status: 'passed' });
});

test('the answers about hosts, drift and resources say that the provisioner doesn’t answer', async () => {
  await daemon.app.close();
  expect((await read('/hosts')).body.items).toMatchObject([{ state: 'unreachable', ports: { size: 50 } }]);
  for (const path of ['/drift', `/server-containers/${id}/resources`]) {
    const as = path === '/drift' ? 'root' : 'viewer';
    expect((await read(path, as)).body).toMatchObject({ status: 502, code: 'host_unavailable' });
  }
});
