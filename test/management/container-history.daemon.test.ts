import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());

const at = (id: string, rest = '') => `/server-containers/${id}${rest}`;
const call = (
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  as = 'owner',
) => world.call(method, path, { as, ...(body === undefined ? {} : { body }) });
const read = async (id: string) => (await call('GET', at(id))).body;
const becomes = (id: string, status: string) =>
  eventually(async () => {
    const seen = await read(id);
    expect(seen.status).toBe(status);
    return seen;
  });
const history = async (id: string, query = '') => (await call('GET', at(id, `/history${query}`))).body;

/** The provisioner reports that the restored site is ready. */
const isUp = (siteId: string) => world.provisioner.sites.set(siteId, { reason: 'Ready', message: '' });

async function create(name: string, extra: object = {}) {
  const body = creation(client, `${name.toLowerCase()}.example`, { name, ...extra });
  const { id } = (await call('POST', '/server-containers', body)).body;
  return await becomes(id, 'active');
}

test('the history shows each commit, newest first, with what it changed and without secrets', async () => {
  const { id } = await create('Story');
  await call('PATCH', at(id), { name: 'Second' });
  await call('PATCH', at(id), { features: { cookie_restoration: true } });
  const all = await history(id);
  expect(all.next).toBeNull();
  expect(all.history).toMatchObject([
    {
      author: 'owner',
      subject: 'Change story',
      reason: 'asked for through the API',
      valid: true,
      changes: [{ path: 'features.cookie_restoration', from: false, to: true }],
    },
    { changes: [{ path: 'name', from: 'Story', to: 'Second' }] },
    {
      subject: 'Create story',
      changes: expect.arrayContaining([{ path: 'containerConfigB64', from: null, to: '(secret)' }]),
    },
  ]);
  expect(JSON.stringify(all)).not.toContain('AGE ENCRYPTED');
  const first = await history(id, '?limit=2');
  const second = await history(id, `?limit=2&cursor=${first.next}`);
  expect([...first.history, ...second.history]).toEqual(all.history);
  expect(second.next).toBeNull();
  expect((await call('GET', at(id, '/history'), undefined, 'stranger')).status).toBe(404);
  expect((await history(id, `?cursor=${'0'.repeat(40)}`)).code).toBe('unknown_commit');
});

test('the history shows an operator’s commit that broke the manifest', async () => {
  const { id, siteId } = await create('Broken');
  const clone = await world.clone();
  const file = join(clone, `${siteId}.yaml`);
  await writeFile(file, `${await world.file(siteId)}\nnonsense: true\n`);
  await world.git(clone, 'commit', '-qam', 'Break it');
  await world.git(clone, 'push', '-q');
  await eventually(async () => {
    const [newest] = (await history(id)).history;
    expect(newest).toMatchObject({
      author: 'Olga',
      subject: 'Break it',
      reason: null,
      valid: false,
      changes: [],
    });
  });
});

test('a revert undoes one commit and keeps later ones; a conflict names the paths', async () => {
  const { id } = await create('Undo');
  await call('PATCH', at(id), { name: 'Wrong', features: { cookie_restoration: true } });
  await call('PATCH', at(id), { features: { multi_domain: true } });
  const [, wrong] = (await history(id)).history;
  const dry = await call('POST', at(id, '/revert?dryRun=1'), { commit: wrong.commit });
  expect(dry.body.plan.changes).toEqual([
    { path: 'name', from: 'Wrong', to: 'Undo' },
    { path: 'features.cookie_restoration', from: true, to: false },
  ]);
  const answer = await call('POST', at(id, '/revert'), { commit: wrong.commit });
  expect([answer.status, answer.body.name, answer.body.features]).toMatchObject([
    200,
    'Undo',
    { cookie_restoration: false, multi_domain: true },
  ]);
  await call('PATCH', at(id), { name: 'Again' });
  const [, revert] = (await history(id)).history;
  const conflict = await call('POST', at(id, '/revert'), { commit: revert.commit });
  expect([conflict.status, conflict.body.code, conflict.body.errors]).toEqual([
    409,
    'revert_conflict',
    [{ path: 'name', message: 'has been changed since that commit' }],
  ]);
  expect((await read(id)).name).toBe('Again');
});

test('a revert brings back a domain that is still free, but not one that another client has taken', async () => {
  const { id } = await create('Names');
  for (const domain of ['free.example', 'gone.example']) {
    await call('POST', at(id, '/domains'), { domain, webTagId: 'GTM-AAAA' });
    await call('DELETE', at(id, `/domains?domain=${domain}`));
  }
  const made = await world.call('POST', '/clients', {
    as: 'root',
    body: { name: 'Thief', members: [{ subject: 'thief', role: 'owner' }] },
  });
  await world.call('POST', '/server-containers', {
    as: 'thief',
    body: creation(made.body.id, 'gone.example', { name: 'Thief' }),
  });
  const [gone, , free] = (await history(id)).history;
  const refused = await call('POST', at(id, '/revert'), { commit: gone.commit });
  expect([refused.status, refused.body.code]).toEqual([409, 'domain_in_use']);
  const back = await call('POST', at(id, '/revert'), { commit: free.commit });
  expect(back.body.domains.map(({ domain }: { domain: string }) => domain)).toEqual([
    'names.example',
    'free.example',
  ]);
});

test('a revert is refused for another container’s commit, a creation, and a change that only operators may make', async () => {
  const one = await create('One');
  const two = await create('Two');
  const [created] = (await history(one.id)).history;
  const revert = async (id: string, commit: string, as = 'owner') => {
    const { status, body } = await call('POST', at(id, '/revert'), { commit }, as);
    return [status, body.code];
  };
  expect(await revert(two.id, created.commit)).toEqual([404, 'unknown_commit']);
  expect(await revert(two.id, '1'.repeat(40))).toEqual([404, 'unknown_commit']);
  expect(await revert(one.id, created.commit)).toEqual([409, 'wrong_status']);
  expect(await revert(one.id, created.commit, 'viewer')).toEqual([403, 'forbidden']);
  const image = `registry.example/gtm@sha256:${'b'.repeat(64)}`;
  await call('PATCH', at(one.id), { image }, 'root');
  const [changed] = (await history(one.id)).history;
  expect(await revert(one.id, changed.commit)).toEqual([403, 'forbidden']);
  expect((await read(one.id)).image).toBe(image);
});

test('no tenant can revert an operator’s lowering of the resources', async () => {
  const { id } = await create('Large');
  await world.call('PUT', `/clients/${client}/members/root`, { as: 'root', body: { role: 'owner' } });
  for (const memory of ['4g', '1g']) {
    await call('PATCH', at(id), { resources: { processing: { memory } } }, 'root');
  }
  const [{ commit }] = (await history(id)).history;
  for (const query of ['?dryRun=1', '']) {
    const refused = await call('POST', at(id, `/revert${query}`), { commit });
    expect([refused.status, refused.body.code, refused.body.errors]).toEqual([
      403,
      'forbidden',
      [{ path: 'resources.processing.memory', message: 'must be at most 2048m' }],
    ]);
  }
  expect((await read(id)).resources.processing.memory).toBe('1g');
  const reverted = await call('POST', at(id, '/revert'), { commit }, 'root');
  expect(reverted.body.resources.processing.memory).toBe('4g');
});

test('a restoration brings back a removed container with its names, tokens and ports', async () => {
  const before = await create('Back');
  const ports = /processing: (\d+)/.exec((await world.file(before.siteId)) ?? '')?.[1];
  expect((await call('POST', at(before.id, '/restore'))).body.code).toBe('wrong_status');
  await call('DELETE', at(before.id));
  await becomes(before.id, 'removed');
  const dry = await call('POST', at(before.id, '/restore?dryRun=1'));
  expect(dry.body.plan).toMatchObject({
    changes: [{ path: 'state', from: 'absent', to: 'present' }],
    commit: `Restore ${before.siteId}`,
  });
  const answer = await call('POST', at(before.id, '/restore'));
  isUp(before.siteId);
  expect([answer.status, answer.body.status]).toEqual([202, 'provisioning']);
  const after = await becomes(before.id, 'active');
  expect(after).toMatchObject({
    loaderToken: before.loaderToken,
    hostnames: before.hostnames,
    domains: [{ domain: 'back.example', containerToken: before.domains[0].containerToken }],
  });
  expect(/processing: (\d+)/.exec((await world.file(before.siteId)) ?? '')?.[1]).toBe(ports);
});

test('a restoration gives other ports if the container’s own are leased, and is refused if its domain is taken', async () => {
  const before = await create('Moved');
  const taken = await create('Taken');
  for (const { id } of [before, taken]) {
    await call('DELETE', at(id));
    await becomes(id, 'removed');
  }
  const next = await create('Lessee');
  const thief = creation(client, 'taken.example', { name: 'Second' });
  await becomes((await call('POST', '/server-containers', thief)).body.id, 'active');
  await call('POST', at(before.id, '/restore'));
  isUp(before.siteId);
  await becomes(before.id, 'active');
  const portOf = async (site: string) => /processing: (\d+)/.exec((await world.file(site)) ?? '')?.[1];
  expect(await portOf(before.siteId)).not.toBe(await portOf(next.siteId));
  const leased = await world.leased();
  const refused = await call('POST', at(taken.id, '/restore'));
  expect([refused.status, refused.body.code]).toEqual([409, 'domain_in_use']);
  expect([await world.leased(), (await read(taken.id)).status]).toEqual([leased, 'removed']);
});
