import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';
import { pathWithHooks } from '../support/path-with-hooks.ts';

let world: World;
let client: string;
beforeEach(async () => {
  world = await World.open({ ports: { first: 20000, last: 20003 } });
  client = await world.client();
});
afterEach(() => world.close());

const create = (key?: string) =>
  world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client),
    ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
  });
const read = async (id: string) =>
  (await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body;
const becomes = (id: string, expected: object) =>
  eventually(async () => expect(await read(id)).toMatchObject(expected));
const claims = () => world.owner.selectFrom('domain_claims').selectAll().execute();

describe('a provisioner that doesn’t create a site', () => {
  test('and is unreachable: 502, ports and domains are free, the manifest is deleted, the record fails', async () => {
    await world.provisioner.stop();
    const answer = await create('retry');
    expect([answer.status, answer.body.code]).toEqual([502, 'provisioning_failed']);
    const { container } = answer.body;
    expect(await read(container)).toMatchObject({
      status: 'failed',
      statusReason: 'provisioner_unreachable',
      siteId: 'acme-shop',
    });
    expect([await world.leased(), await claims()]).toEqual([0, []]);
    expect(await world.file('acme-shop')).toBeNull();
    const subjects = (await world.repo.history('acme-shop')).map(({ subject }) => subject);
    expect(subjects).toEqual(['Withdraw acme-shop', 'Create acme-shop']);
    expect((await create('retry')).body).toMatchObject({ code: 'provisioning_failed', container });
  });

  test('and refuses: the same, with a tombstone because the provisioner may have seen the site', async () => {
    world.provisioner.refuse = { status: 422, code: 'wrong_host' };
    const answer = await create();
    expect(answer.status).toBe(502);
    expect(await read(answer.body.container)).toMatchObject({
      status: 'failed',
      statusReason: 'provisioner_refused',
    });
    expect([await world.leased(), await claims()]).toEqual([0, []]);
    expect(await world.file('acme-shop')).toContain('state: absent');
  });

  test('frees name and domains for the next try, which gets another site id', async () => {
    world.provisioner.refuse = { status: 422, code: 'wrong_host' };
    await create();
    world.provisioner.refuse = null;
    const { status, body } = await create();
    expect(status).toBe(202);
    expect(body.siteId).toMatch(/^acme-shop-[a-z0-9]{5}$/);
    await becomes(body.id, { status: 'active' });
  });

  test.each([
    [500, 'internal'],
    [503, 'stopping'],
    [503, 'sites_repo_unavailable'],
    [401, 'unauthorised'],
  ])('and answers %d %s for now: the creation keeps its name and completes later', async (status, code) => {
    world.provisioner.refuse = { status, code };
    const created = await create();
    expect([created.status, created.body.status]).toEqual([202, 'provisioning']);
    world.provisioner.refuse = null;
    await becomes(created.body.id, { status: 'active', siteId: 'acme-shop' });
    expect((await world.repo.history('acme-shop')).map(({ subject }) => subject)).toEqual([
      'Create acme-shop',
    ]);
  });

  test('and fails after acceptance: the record fails at once, the ports are free when the site is gone', async () => {
    world.provisioner.auto = false;
    const { status, body } = await create();
    expect(status).toBe(202);
    world.provisioner.finish('acme-shop', 'failed', 'the image can’t be pulled');
    await becomes(body.id, {
      status: 'failed',
      statusReason: 'provisioning_failed',
      statusDetail: 'the image can’t be pulled',
    });
    expect(await world.file('acme-shop')).toContain('state: absent');
    expect(await world.leased()).toBe(1);
    await eventually(() =>
      expect(world.provisioner.calls).toContainEqual(
        // Git has the tombstone already. A commit now could undo a revert that was made since.
        expect.objectContaining({ path: '/deprovision', body: { site: 'acme-shop', commit: false } }),
      ),
    );
    world.provisioner.finish('acme-shop', 'succeeded');
    world.provisioner.sites.set('acme-shop', { reason: 'Removed', message: '' });
    await eventually(async () => expect([await world.leased(), await claims()]).toEqual([0, []]));
  });
});

describe('a provisioner that doesn’t answer', () => {
  beforeEach(async () => {
    await world.close();
    world = await World.open({ ports: { first: 20000, last: 20003 }, answerMs: 200 });
    client = await world.client();
  });

  test('is asked again; meanwhile the creation is 202, also for a repeated request', async () => {
    world.provisioner.unanswered = 2;
    const { status, body } = await create('late');
    expect([status, body.status]).toEqual([202, 'provisioning']);
    await becomes(body.id, { status: 'active' });
    const again = await create('late');
    expect([again.status, again.body.id]).toEqual([202, body.id]);
    expect((await world.repo.history('acme-shop')).map(({ subject }) => subject)).toEqual([
      'Create acme-shop',
    ]);
  });

  test('and refuses later: the site gets a tombstone, and its names and ports are released when it is gone', async () => {
    world.provisioner.unanswered = 1;
    const { body } = await create();
    world.provisioner.refuse = { status: 422, code: 'wrong_host' };
    await becomes(body.id, { status: 'failed', statusReason: 'provisioner_refused' });
    expect(await world.file('acme-shop')).toContain('state: absent');
    world.provisioner.refuse = null;
    world.provisioner.sites.set('acme-shop', { reason: 'Removed', message: '' });
    await eventually(async () => expect([await world.leased(), await claims()]).toEqual([0, []]));
  });

  test('gets, as any other, the commit on which a call is based', async () => {
    const { body } = await create();
    expect(world.provisioner.calls).toContainEqual(
      expect.objectContaining({ path: '/provision', query: { revision: body.revision } }),
    );
  });
});

test('a creation whose commit takes long is answered in time; a repetition gets the outcome', async () => {
  await world.close();
  const { PATH } = process.env;
  const bin = await mkdtemp(join(tmpdir(), 'tagyard-saga-'));
  onTestFinished(async () => {
    process.env.PATH = PATH;
    await rm(bin, { recursive: true });
  });
  process.env.PATH = pathWithHooks(bin);
  world = await World.open({ remote: true, settings: { answerMs: 300 } });
  client = await world.client();
  const accepts = join(world.dir, 'accepts');
  const hook = `#!/bin/sh\nuntil [ -e ${accepts} ]; do sleep 0.05; done\n`;
  await writeFile(join(world.bare, 'hooks', 'pre-receive'), hook, { mode: 0o755 });
  const { status, body } = await create('slow');
  expect([status, body.status, body.operation.step]).toEqual([202, 'provisioning', 'commit']);
  expect(await create('slow')).toMatchObject({ status: 409, body: { code: 'request_in_progress' } });
  await writeFile(accepts, '');
  await becomes(body.id, { status: 'active' });
  expect(await create('slow')).toMatchObject({ status: 202, body: { id: body.id, status: 'active' } });
});

test('a listing of git from before the withdrawal of a creation doesn’t restore it', async () => {
  await world.provisioner.stop();
  const tree = world.repo.tree.bind(world.repo);
  const withdrawn = Promise.withResolvers<void>();
  let early = 0;
  const listing = vi.spyOn(world.repo, 'tree').mockImplementation(async (revision) => {
    const listed = await tree(revision);
    if (!listed.files.some(({ site }) => site === 'acme-shop')) return listed;
    early += 1;
    await withdrawn.promise;
    return listed;
  });
  const answer = await create();
  expect(answer.status).toBe(502);
  expect(early).toBeGreaterThan(0);
  const before = listing.mock.calls.length;
  withdrawn.resolve();
  await eventually(() => expect(listing.mock.calls.length).toBeGreaterThan(before));
  await eventually(async () => expect(await world.file('acme-shop')).toBeNull());
  const kinds = await world.owner.selectFrom('operations').select('kind').execute();
  expect(kinds).toEqual([{ kind: 'provision' }]);
  expect(await read(answer.body.container)).toMatchObject({ status: 'failed' });
});

test('a repetition of a failed creation is answered with the container if git has restored it', async () => {
  world.provisioner.refuse = { status: 422, code: 'wrong_host' };
  const failed = await create('again');
  expect(failed.status).toBe(502);
  world.provisioner.refuse = null;
  await world.repo.commit({
    site: 'acme-shop',
    subject: 'Bring it back',
    author: { name: 'Olga', email: 'olga@example.test' },
    trailers: {},
    edit: (text) => (text ?? '').replace('state: absent', 'state: present'),
  });
  world.provisioner.sites.set('acme-shop', { reason: 'Ready', message: '' });
  await becomes(failed.body.container, { status: 'active' });
  expect(await create('again')).toMatchObject({ status: 202, body: { id: failed.body.container } });
});

describe('a host fault', () => {
  const SITE = 'acme-shop';
  async function held() {
    world.provisioner.auto = false;
    const { body } = await create();
    world.provisioner.sites.set(SITE, { reason: 'UndecryptableConfig', message: 'no identity fits' });
    world.provisioner.finish(SITE, 'failed', 'UndecryptableConfig: no identity fits', 'host');
    await becomes(body.id, {
      status: 'provisioning',
      statusReason: 'provisioning_failed',
      statusDetail: 'UndecryptableConfig: no identity fits',
    });
    return body;
  }

  test('delays a creation, which keeps its name, ports and domains until the host works again', async () => {
    const { id, siteId } = await held();
    expect(siteId).toBe(SITE);
    expect(await world.file(SITE)).not.toContain('state: absent');
    expect(await world.leased()).toBe(1);
    expect(await claims()).not.toEqual([]);
    world.provisioner.sites.set(SITE, { reason: 'Ready', message: '' });
    await becomes(id, { status: 'active', statusReason: null, statusDetail: null, siteId: SITE });
  });

  test('that doesn’t prevent serving the site, such as a missing firewall, doesn’t delay its creation', async () => {
    const { id } = await held();
    world.provisioner.sites.set(SITE, { reason: 'NotIsolated', message: 'no right' });
    await becomes(id, { status: 'active', health: 'degraded', statusReason: 'host_trouble' });
  });

  test('is followed by a new attempt if the host has stopped trying; that attempt may show the site’s own failure', async () => {
    const { id } = await held();
    world.provisioner.sites.set(SITE, { reason: 'Failed', message: 'the token is invalid' });
    await eventually(() => expect(world.provisioner.operations.size).toBe(2));
    world.provisioner.finish(SITE, 'failed', 'Failed: it exits with code 1');
    await becomes(id, { status: 'failed', statusDetail: 'Failed: it exits with code 1' });
    expect(await world.file(SITE)).toContain('state: absent');
  });

  test('doesn’t prevent the removal of the container', async () => {
    const { id } = await held();
    const removed = await world.call('DELETE', `/server-containers/${id}`, { as: 'owner' });
    expect(removed.status).toBe(202);
    await becomes(id, { status: 'deprovisioning' });
  });
});

test('a creation is answered with no_free_port when the pool is empty, and makes no record', async () => {
  for (const domain of ['a.example', 'b.example']) {
    const answer = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, domain),
    });
    expect(answer.status).toBe(202);
  }
  const answer = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'c.example'),
    headers: { 'idempotency-key': 'again' },
  });
  expect([answer.status, answer.body.code]).toEqual([503, 'no_free_port']);
  const { body } = await world.call('GET', '/server-containers', { as: 'owner' });
  expect(body.containers).toHaveLength(2);
});

describe('a restart', () => {
  test('resumes a creation, also when the provisioner has lost its operation', async () => {
    world.provisioner.auto = false;
    const { body } = await create();
    await world.stop();
    world.provisioner.operations.clear();
    world.provisioner.auto = true;
    await world.start();
    await becomes(body.id, { status: 'active', operation: { status: 'succeeded' } });
  });

  test.each(['commit', 'provision'] as const)(
    'resumes an operation that stopped before “%s”',
    async (step) => {
      world.provisioner.auto = false;
      const { body } = await create();
      await world.stop();
      // The state after a kill at that step: the step is recorded, and database and git have nothing later.
      const manifest = await world.owner
        .selectFrom('operations')
        .select('manifest')
        .executeTakeFirstOrThrow();
      expect(manifest.manifest).not.toBeNull();
      await world.owner.deleteFrom('site_domains').execute();
      await world.owner.deleteFrom('sites').execute();
      await world.owner.updateTable('operations').set({ step }).execute();
      if (step === 'commit') {
        const edit = { site: 'acme-shop', subject: 'Undo', author: { name: 'x', email: 'x@example.test' } };
        await world.repo.commit({ ...edit, trailers: {}, edit: () => null });
      }
      world.provisioner.auto = true;
      world.provisioner.operations.forEach((operation) => {
        operation.status = 'succeeded';
      });
      await world.start();
      await becomes(body.id, { status: 'active' });
      expect(await world.file('acme-shop')).toContain('state: present');
      const sites = await world.owner.selectFrom('sites').select('site_id').execute();
      expect(sites).toEqual([{ site_id: 'acme-shop' }]);
    },
  );

  test('answers a repeated request whose first answer was lost', async () => {
    const { body } = await create('lost');
    await becomes(body.id, { status: 'active' });
    await world.stop();
    await world.owner.updateTable('idempotency_keys').set({ answer: 'null' }).execute();
    await world.start();
    const again = await create('lost');
    expect([again.status, again.body.id]).toEqual([202, body.id]);
  });

  test('projects what an operator committed while the API was stopped', async () => {
    const { body } = await create();
    await becomes(body.id, { status: 'active' });
    await world.stop();
    const clone = await world.clone();
    await world.git(clone, 'rm', '--quiet', 'acme-shop.yaml');
    await world.git(clone, 'commit', '--quiet', '-m', 'Remove');
    await world.git(clone, 'push', '--quiet', 'origin', 'HEAD:main');
    await world.start();
    await becomes(body.id, { status: 'removed' });
    expect(await world.leased()).toBe(0);
  });

  test('releases a domain whose change was never committed, once the change is overdue', async () => {
    const { body } = await create();
    await becomes(body.id, { status: 'active' });
    await world.stop();
    const left = (domain: string, minutes: number) => ({
      domain,
      container_id: body.id,
      changes: [randomUUID()],
      changed_at: new Date(Date.now() - minutes * 60_000),
    });
    const names = [left('late.example', 11), left('acme.example', 11), left('young.example', 9)];
    await world.owner.deleteFrom('domain_claims').execute();
    await world.owner.insertInto('domain_claims').values(names).execute();
    await world.start();
    await eventually(async () =>
      expect((await claims()).map(({ domain, changes }) => [domain, changes.length]).sort()).toEqual([
        ['acme.example', 0],
        ['young.example', 1],
      ]),
    );
  });
});

test('a site doesn’t count as gone before the provisioner has observed its host', async () => {
  const { body } = await create();
  await becomes(body.id, { status: 'active' });
  // A provisioner that has just started knows no site, although containers may be running.
  world.provisioner.sites.clear();
  world.provisioner.ready = false;
  await world.call('DELETE', `/server-containers/${body.id}`, { as: 'owner' });
  const asked = () => world.provisioner.calls.filter(({ path }) => path === '/readyz').length;
  await eventually(() => expect(asked()).toBeGreaterThan(1));
  expect(await read(body.id)).toMatchObject({ status: 'deprovisioning' });
  expect(await world.leased()).toBe(1);
  world.provisioner.ready = true;
  await becomes(body.id, { status: 'removed' });
});

test('a container that is still provisioning or has failed can be removed', async () => {
  world.provisioner.auto = false;
  const { body } = await create();
  const early = await world.call('DELETE', `/server-containers/${body.id}`, { as: 'owner' });
  expect(early.body.status).toBe('deprovisioning');
  world.provisioner.auto = true;
  world.provisioner.finish('acme-shop', 'succeeded');
  world.provisioner.sites.set('acme-shop', { reason: 'Removed', message: '' });
  await becomes(body.id, { status: 'removed' });

  world.provisioner.refuse = { status: 422, code: 'wrong_host' };
  const failed = await create();
  world.provisioner.refuse = null;
  await world.call('DELETE', `/server-containers/${failed.body.container}`, { as: 'owner' });
  await becomes(failed.body.container, { status: 'removed' });
  expect([await world.leased(), await claims()]).toEqual([0, []]);
});

test('all commits of a container are listed, also one that edits its file during its creation', async () => {
  world.provisioner.auto = false;
  const made = await create();
  const { id, siteId } = made.body;
  const clone = await world.clone();
  const text = (await world.file(siteId)) ?? '';
  await writeFile(join(clone, `${siteId}.yaml`), text.replace(/^name: .*$/m, 'name: Edited by hand'));
  await world.git(clone, 'commit', '--quiet', '--all', '-m', 'Edit a site');
  await world.git(clone, 'push', '--quiet', 'origin', 'HEAD');
  await becomes(id, { name: 'Edited by hand', status: 'provisioning' });
  world.provisioner.finish(siteId, 'succeeded');
  await becomes(id, { status: 'active' });
  const { items } = (await world.call('GET', '/changes', { as: 'owner' })).body;
  expect(items.map(({ subject }: { subject: string }) => subject)).toEqual([
    'Edit a site',
    `Create ${siteId}`,
  ]);
});
