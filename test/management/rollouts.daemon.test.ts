import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import type { MemoryDaemon } from '../support/gitops/memory-daemon.ts';
import { provisionedWorld } from '../support/management/provisioned.ts';
import { creation, type World } from '../support/management/world.ts';

let world: World;
let daemon: MemoryDaemon;
let close: () => Promise<void>;
/** Site ids in the order of creation. */
let sites: string[] = [];
const ids = new Map<string, string>();
let count = 0;
let current = '';

beforeAll(async () => {
  ({ world, daemon, close } = await provisionedWorld({ logLevel: 'silent' }));
  const client = await world.client();
  for (let number = 1; number <= 4; number += 1) {
    const body = creation(client, `shop-${number}.example`, { name: `Shop ${number}` });
    const made = await world.call('POST', '/server-containers', { as: 'owner', body });
    await world.call('GET', `/operations/${made.body.operation.id}?wait=30`, { as: 'owner' });
    ids.set(made.body.siteId, made.body.id);
  }
  sites = [...ids.keys()];
  await Promise.all(sites.map((site) => daemon.reaches(site, 'Ready')));
  current = world.settings.image;
});
afterAll(() => close());
beforeEach(() => {
  daemon.control.fault = () => undefined;
  daemon.control.before = () => undefined;
});

/** An image that no site has yet. */
function newImage(): string {
  count += 1;
  return `registry.example/gtm@sha256:${String(count).padStart(64, '0')}`;
}

const post = (path: string, body: object = {}, as = 'root') => world.call('POST', path, { as, body });
const read = async (id: string) => (await world.call('GET', `/image-rollouts/${id}`, { as: 'root' })).body;

async function start(body: object): Promise<string> {
  const made = await post('/image-rollouts', { watchSeconds: 0, ...body });
  expect([made.status, made.headers.location]).toEqual([201, `/image-rollouts/${made.body.id}`]);
  return made.body.id;
}

async function reaches(id: string, status: string) {
  return await eventually(async () => {
    const rollout = await read(id);
    expect(rollout).toMatchObject({ status });
    return rollout;
  });
}

const states = ({ waves }: { waves: { sites: { siteId: string; state: string }[] }[] }) =>
  waves.map((wave) => wave.sites.map(({ siteId, state }) => `${sites.indexOf(siteId)} ${state}`));
const images = async () => {
  const texts = await Promise.all(sites.map((site) => world.file(site)));
  return texts.map((text) => /^image: (.*)$/m.exec(text ?? '')?.[1]);
};
const subjects = async (number: number) =>
  (await world.git(world.bare, 'log', `-${number}`, '--format=%an %s', 'main')).trim().split('\n');

/** The host can't change the containers of this site. The site's status then has the error's message. */
function breakSite(site: string | undefined): void {
  daemon.control.fault = (target, at) =>
    at !== 'observe' && target === 'containers' && at.site === site
      ? new Error('the new server \u0000 ends at its start')
      : undefined;
}

test.each([
  ['POST', '/image-rollouts'],
  ['GET', '/image-rollouts'],
  ['GET', '/image-rollouts/7c9e6679-7425-40de-944b-e07fc1f90ae7'],
  ['POST', '/image-rollouts/7c9e6679-7425-40de-944b-e07fc1f90ae7/stop'],
  ['POST', '/image-rollouts/7c9e6679-7425-40de-944b-e07fc1f90ae7/back'],
] as const)('%s %s is for operators', async (method, path) => {
  const body = path === '/image-rollouts' && method === 'POST' ? { body: { image: newImage() } } : {};
  const answer = await world.call(method, path, { as: 'owner', ...body });
  expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
  if (path === '/image-rollouts') return;
  expect((await world.call(method, path, { as: 'root' })).body.code).toBe('unknown_rollout');
});

test.each([
  [
    'an image of another repository',
    { image: `evil.example/gtm@sha256:${'0'.repeat(64)}` },
    'image_not_allowed',
  ],
  ['an image that isn’t pinned', { image: 'registry.example/gtm:latest' }, 'invalid_request'],
  ['a site that doesn’t exist', { sites: ['none'] }, 'unknown_container'],
  ['a site twice', { sites: ['shop', 'shop'] }, 'invalid_request'],
  ['an empty wave', { waves: [0] }, 'invalid_request'],
])('a rollout with %s is refused', async (_what, extra, code) => {
  expect((await post('/image-rollouts', { image: newImage(), ...extra })).body.code).toBe(code);
});

test('operators see the images of live sites, and the repositories that images may be from', async () => {
  const { status, body } = await world.call('GET', '/images', { as: 'root' });
  expect([status, body]).toEqual([
    200,
    {
      ofNewSites: current,
      repositories: world.settings.imageRepositories,
      items: [{ image: current, sites: sites.length }],
    },
  ]);
  expect((await world.call('GET', '/images', { as: 'owner' })).body.code).toBe('forbidden');
});

test('a dry run plans a rollout without changing anything', async () => {
  const image = newImage();
  const head = await world.repo.head();
  const answer = await post('/image-rollouts?dryRun=1', { image, waves: [1, 2] });
  expect([answer.status, answer.body]).toEqual([
    200,
    {
      plan: {
        changes: sites.map((site) => ({ path: `sites[${site}].image`, from: current, to: image })),
        waves: [[sites[0]], [sites[1], sites[2]], [sites[3]]],
      },
    },
  ]);
  expect(await world.repo.head()).toBe(head);
  expect((await world.call('GET', '/image-rollouts', { as: 'root' })).body.items).toEqual([]);
});

test('a rollout changes the sites wave by wave, each by a commit, and only after the wave before is applied', async () => {
  const image = newImage();
  const held = Promise.withResolvers<void>();
  daemon.control.before = ({ site }) => (site === sites[0] ? held.promise : undefined);
  const id = await start({ image, waves: [1, 2] });
  await eventually(async () => expect((await images())[0]).toBe(image));
  await eventually(async () => expect(daemon.loop.status(sites[0] ?? '')?.reason).toBe('Progressing'));
  const meanwhile = await read(id);
  expect(states(meanwhile)).toEqual([['0 changing'], ['1 pending', '2 pending'], ['3 pending']]);
  expect((await images()).slice(1)).toEqual([current, current, current]);
  // A second rollout would change the same sites.
  expect((await post('/image-rollouts', { image: newImage() })).body.code).toBe('rollout_active');

  held.resolve();
  const ended = await reaches(id, 'succeeded');
  expect(states(ended)).toEqual([['0 swapped'], ['1 swapped', '2 swapped'], ['3 swapped']]);
  expect(ended).toMatchObject({ image, reason: null, actor: 'root', sites: { swapped: 4 } });
  expect(ended.waves[0].sites[0]).toMatchObject({
    containerId: ids.get(sites[0] ?? ''),
    fromImage: current,
    commit: expect.stringMatching(/^[0-9a-f]{40}$/),
  });
  expect(await images()).toEqual([image, image, image, image]);
  for (const site of sites) {
    expect(daemon.loop.status(site)).toMatchObject({ ready: true, reason: 'Ready' });
  }
  expect(await subjects(4)).toEqual(
    expect.arrayContaining(sites.map((site) => `root Change the image of ${site}`)),
  );
  const container = await world.call('GET', `/server-containers/${ids.get(sites[3] ?? '')}`, {
    as: 'viewer',
  });
  expect(container.body.image).toBe(image);
  const { items } = (await world.call('GET', '/image-rollouts', { as: 'root' })).body;
  expect(items).toMatchObject([{ id, status: 'succeeded', sites: { swapped: 4 } }]);
  const audit = await world.owner
    .selectFrom('audit_log')
    .selectAll()
    .where('action', '=', 'startImageRollout')
    .where('status', '=', 201)
    .execute();
  expect(audit).toMatchObject([{ actor: 'root' }]);
  current = image;

  // The second time, there is nothing to change.
  const head = await world.repo.head();
  expect(states(await reaches(await start({ image }), 'succeeded'))[0]).toEqual(['0 already']);
  expect(await world.repo.head()).toBe(head);
});

describe('a site that fails', () => {
  let id: string;

  test('stops the rollout, which says why', async () => {
    breakSite(sites[1]);
    const image = newImage();
    id = await start({ image, waves: [1] });
    const ended = await reaches(id, 'failed');
    expect(states(ended)).toEqual([['0 swapped'], ['1 failed'], ['2 pending'], ['3 pending']]);
    expect(ended).toMatchObject({
      reason: 'site_failed',
      detail: expect.stringMatching(`^${sites[1]}: .*the new server . ends at its start`),
    });
    expect(ended.waves[1].sites[0]).toMatchObject({ reason: 'host_failed' });
    expect(await images()).toEqual([image, image, current, current]);
    expect((await post(`/image-rollouts/${id}/stop`)).body.code).toBe('rollout_ended');
  });

  test('gets its earlier image again on request, as do all others that were changed', async () => {
    const [first] = (await read(id)).waves[0].sites;
    const plan = await post(`/image-rollouts/${id}/back?dryRun=1`);
    expect(plan.body.plan.changes).toEqual(
      [0, 1].map((n) => ({
        path: `sites[${sites[n]}].image`,
        from: expect.any(String),
        to: first.fromImage,
      })),
    );
    // The host recovers first: otherwise going back would fail, and would have to be repeated.
    daemon.control.fault = () => undefined;
    const answer = await post(`/image-rollouts/${id}/back`);
    expect([answer.status, answer.body.status]).toEqual([202, 'reverting']);
    const ended = await reaches(id, 'reverted');
    expect(states(ended)).toEqual([['0 reverted'], ['1 reverted'], ['2 pending'], ['3 pending']]);
    expect(await images()).toEqual([current, current, current, current]);
    for (const site of sites) expect(daemon.loop.status(site)).toMatchObject({ ready: true });
  });
});

test('a site that isn’t ready before the rollout is skipped, and another one is changed first', async () => {
  const [first = ''] = sites;
  breakSite(first);
  // The cause is not the image, so a rollout can’t repair the site.
  await world.call('PATCH', `/server-containers/${ids.get(first)}`, {
    as: 'owner',
    body: { name: 'Broken' },
  });
  await eventually(async () => expect(daemon.loop.status(first)).toMatchObject({ ready: false }));
  const image = newImage();
  const ended = await reaches(await start({ image, waves: [1, 9] }), 'succeeded');
  expect(states(ended)).toEqual([['0 skipped'], ['1 swapped'], ['2 swapped', '3 swapped']]);
  expect(ended.waves[0].sites[0]).toMatchObject({ reason: 'not_ready' });
  daemon.control.fault = () => undefined;
  await daemon.fullPass();
  await daemon.reaches(first, 'Ready');
  const suspended = `/server-containers/${ids.get(first)}`;
  await world.call('POST', `${suspended}/suspend`, { as: 'owner', body: {} });
  const again = await reaches(await start({ image, sites: [first] }), 'succeeded');
  expect(again.waves[0].sites[0]).toMatchObject({ state: 'skipped', reason: 'suspended' });
  await world.call('POST', `${suspended}/resume`, { as: 'owner' });
  await reaches(await start({ image, sites: [first] }), 'succeeded');
  current = image;
  expect(await images()).toEqual([image, image, image, image]);
});

test('a rollout stops on request after the wave that has begun', async () => {
  const held = Promise.withResolvers<void>();
  daemon.control.before = () => held.promise;
  const image = newImage();
  const id = await start({ image, waves: [2] });
  await eventually(async () => expect((await images())[1]).toBe(image));
  expect((await post(`/image-rollouts/${id}/stop?dryRun=1`)).body.plan.changes).toMatchObject([
    { to: 'stopping' },
  ]);
  expect((await read(id)).status).toBe('running');
  // An earlier rollout can't be reverted meanwhile.
  const [, earlier] = (await world.call('GET', '/image-rollouts', { as: 'root' })).body.items;
  for (const query of ['', '?dryRun=1']) {
    expect((await post(`/image-rollouts/${earlier.id}/back${query}`)).body.code).toBe('rollout_active');
  }
  const answer = await post(`/image-rollouts/${id}/stop`);
  expect([answer.status, answer.body.status]).toEqual([202, 'stopping']);
  held.resolve();
  const ended = await reaches(id, 'stopped');
  expect(states(ended)).toEqual([
    ['0 swapped', '1 swapped'],
    ['2 pending', '3 pending'],
  ]);
  // What someone else changed later isn't changed back.
  const other = newImage();
  const body = { image: other };
  await world.call('PATCH', `/server-containers/${ids.get(sites[1] ?? '')}`, { as: 'root', body });
  const { plan } = (await post(`/image-rollouts/${id}/back?dryRun=1`)).body;
  expect(plan.changes).toEqual([{ path: `sites[${sites[0]}].image`, from: image, to: current }]);
  await post(`/image-rollouts/${id}/back`);
  const back = await reaches(id, 'reverted');
  expect(states(back)[0]).toEqual(['0 reverted', '1 skipped']);
  expect(back.waves[0].sites[1]).toMatchObject({ reason: 'changed_since' });
  expect(await images()).toEqual([current, other, current, current]);
  await reaches(await start({ image: current }), 'succeeded');
});

test('a rollout continues after a restart of the API, also if another process had run it', async () => {
  const held = Promise.withResolvers<void>();
  daemon.control.before = () => held.promise;
  const image = newImage();
  const id = await start({ image, waves: [1, 2] });
  await eventually(async () => expect((await images())[0]).toBe(image));
  await world.stop();
  held.resolve();
  // The lease as it is after its process was killed.
  const lease = (until: string) =>
    world.owner
      .updateTable('image_rollouts')
      .set({ leased_by: '7c9e6679-7425-40de-944b-e07fc1f90ae7', leased_until: new Date(until) })
      .where('id', '=', id)
      .execute();
  await lease('2999-01-01');
  await world.start();
  await Promise.all(sites.map((site) => daemon.reaches(site, 'Ready')));
  expect(states(await read(id))[0]).toEqual(['0 changing']);
  await lease('2000-01-01');
  await world.stop();
  await world.start();
  const ended = await reaches(id, 'succeeded');
  expect(ended.sites).toEqual({ swapped: 4 });
  current = image;
});

test('a rollout watches a site for the given time, and ends if the person who started it is no longer an operator', async () => {
  const image = newImage();
  const id = await start({ image, waves: [1], watchSeconds: 1 });
  await eventually(async () => expect((await images())[0]).toBe(image));
  Object.assign(world.settings, { superAdmins: ['other-root'] });
  await eventually(async () => {
    const rows = await world.owner.selectFrom('image_rollouts').selectAll().where('id', '=', id).execute();
    expect(rows).toMatchObject([{ status: 'failed', reason: 'not_operator' }]);
  });
  Object.assign(world.settings, { superAdmins: ['root'] });
  const ended = await read(id);
  expect(states(ended)).toEqual([['0 swapped'], ['1 pending'], ['2 pending'], ['3 pending']]);
  const [site] = ended.waves[0].sites;
  expect(Date.parse(ended.updatedAt) - Date.parse(site.since)).toBeGreaterThanOrEqual(1_000);
});
