import { mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
});
afterAll(() => world.close());

let count = 0;
let id: string;
let site: string;
let domain: string;
let clone: string;
let edited: string;
beforeEach(async () => {
  domain = `edit${++count}.example`;
  ({ id, siteId: site } = await create(domain));
  clone = await world.clone();
});

async function create(name: string) {
  const { body } = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, name, { name }),
  });
  await shows({ status: 'active' }, body.id);
  return body;
}

function shows(expected: object, which = id) {
  return eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${which}`, { as: 'viewer' });
    expect(body).toMatchObject(expected);
    return body;
  });
}

/** Works as an operator: pulls, edits or removes the site's file, commits and pushes. */
async function operate(change: ((text: string) => string) | null, which = site): Promise<void> {
  await world.git(clone, 'pull', '--quiet', '--rebase');
  const path = join(clone, `${which}.yaml`);
  if (change === null) {
    await world.git(clone, 'rm', '--quiet', path);
  } else {
    await writeFile(path, change(await readFile(path, 'utf8')));
    await world.git(clone, 'add', path);
  }
  await world.git(clone, 'commit', '--quiet', '-m', 'By hand');
  edited = (await world.git(clone, 'rev-parse', 'HEAD')).trim();
  await world.git(clone, 'push', '--quiet', 'origin', 'HEAD:main');
}

/** Reverts the commit `edited`, even if other commits follow it. */
async function revert(): Promise<void> {
  await world.git(clone, 'pull', '--quiet', '--rebase');
  await world.git(clone, 'revert', '--no-edit', edited);
  await world.git(clone, 'push', '--quiet', 'origin', 'HEAD:main');
}

const holder = async () =>
  (
    await world.owner
      .selectFrom('port_pool')
      .select('processing')
      .where('leased_by', '=', id)
      .executeTakeFirst()
  )?.processing;

describe('an operator’s commit shows in the API', () => {
  test.each<[string, (text: string) => string, () => object]>([
    ['the name', (text) => text.replace(/^name: .*/m, 'name: By hand'), () => ({ name: 'By hand' })],
    [
      'a feature',
      (text) => text.replace('multi_domain: false', 'multi_domain: true'),
      () => ({ features: { multi_domain: true } }),
    ],
    [
      'a custom domain',
      (text) => text.replace('customDomains: []', `customDomains: [metrics.${domain}]`),
      () => ({ customDomains: [`metrics.${domain}`] }),
    ],
  ])('a change of %s, and its revert', async (_what, change, expected) => {
    const before = await shows({ status: 'active' });
    await operate(change);
    const after = await shows({ ...expected(), status: 'active' });
    expect(after.revision).not.toBe(before.revision);
    await revert();
    const { name, features, customDomains } = before;
    await shows({ name, features, customDomains });
    const { body } = await world.call('GET', `/server-containers/${id}/events`, { as: 'viewer' });
    expect(body.events.at(-1)).toMatchObject({ kind: 'changed', actor: 'Olga' });
  });

  test('a refused manifest: with file, line and path, while the last valid one stays applied', async () => {
    await operate((text) => text.replace(/^name: .*/m, 'nmae: Typo'));
    const broken = await shows({ status: 'active', statusReason: 'invalid_manifest', name: domain });
    expect(broken.statusDetail).toMatch(new RegExp(`${site}\\.yaml:\\d+: nmae`));
    await revert();
    await shows({ status: 'active', statusReason: null });
  });

  test('a domain that another site holds: the other site keeps it', async () => {
    const other = await create(`held${count}.example`);
    await operate((text) => text.replaceAll(domain, `held${count}.example`));
    await shows({ status: 'active', statusReason: 'domain_in_use' });
    const claims = await world.owner
      .selectFrom('domain_claims')
      .select('container_id')
      .where('domain', '=', `held${count}.example`)
      .execute();
    expect(claims).toEqual([{ container_id: other.id }]);
    await revert();
    await shows({ status: 'active', statusReason: null });
  });
});

describe('a hostname that another site holds', () => {
  const take = (other: { siteId: string }) => (text: string) =>
    text.replace(`edge: ${site}.edge`, `edge: ${other.siteId}.edge`).replace(/^name: .*/m, 'name: Greedy');
  const unprojected = () => world.logs.filter((line) => line.includes('could not be projected'));

  test('stays with that site: nothing of the edit is applied, and a revert ends the error', async () => {
    const other = await create(`host${count}.example`);
    const before = await shows({ status: 'active' });
    await operate(take(other));
    await shows({
      status: 'active',
      statusReason: 'domain_in_use',
      statusDetail: `another site or client holds ${other.hostnames.edge}`,
      name: domain,
      hostnames: before.hostnames,
    });
    await shows({ status: 'active', statusReason: null, hostnames: other.hostnames }, other.id);
    await revert();
    await shows({ status: 'active', statusReason: null, hostnames: before.hostnames });
    expect(unprojected()).toEqual([]);
  });

  test('moves to the site that waits for it once the other site is gone', async () => {
    const other = await create(`other${count}.example`);
    await operate(take(other));
    await shows({ statusReason: 'domain_in_use' });
    await world.call('DELETE', `/server-containers/${other.id}`, { as: 'owner' });
    await shows({ name: 'Greedy', statusReason: null, hostnames: { edge: other.hostnames.edge } });
    expect(unprojected()).toEqual([]);
  });

  test('is not given to a new site whose name would yield it', async () => {
    await operate((text) => text.replace(`edge: ${site}.edge`, 'edge: wanted.edge'));
    await shows({ hostnames: { edge: 'wanted.edge.example.net' } });
    const body = creation(client, `wanted${count}.example`, { name: 'Wanted' });
    const made = await world.call('POST', '/server-containers', { as: 'owner', body });
    expect([made.status, made.body.siteId]).toEqual([202, expect.stringMatching(/^wanted-[a-z0-9]{5}$/)]);
  });
});

test('a second site of one container is ignored, and changes nothing', async () => {
  const text = (await world.file(site)) ?? '';
  await world.repo.commit({
    site: `copy${count}`,
    subject: 'Copy by hand',
    author: { name: 'Olga', email: 'olga@example.test' },
    trailers: {},
    edit: () => text.replaceAll(site, `copy${count}`).replaceAll(domain, `copy${count}.example`),
  });
  await eventually(() => expect(world.logs.join('')).toContain('git holds a second site of one container'));
  await operate((mine) => mine.replace(/^name: .*/m, 'name: Still mine'));
  await shows({ status: 'active', statusReason: null, name: 'Still mine', siteId: site });
  expect(world.logs.filter((line) => line.includes('could not be projected'))).toEqual([]);
});

describe('a file that is missing', () => {
  async function publish(): Promise<void> {
    await world.git(clone, 'add', '--all');
    await world.git(clone, 'commit', '--quiet', '-m', 'By hand');
    edited = (await world.git(clone, 'rev-parse', 'HEAD')).trim();
    await world.git(clone, 'push', '--quiet', '--force', 'origin', 'HEAD:main');
  }
  const file = () => join(clone, `${site}.yaml`);

  test.each<[string, () => Promise<unknown>, () => string]>([
    [
      'because it is in a folder',
      async () => {
        await mkdir(join(clone, 'old'), { recursive: true });
        await rename(file(), join(clone, 'old', `${site}.yaml`));
      },
      () => `old/${site}.yaml has its name`,
    ],
    [
      'because it has another ending',
      () => rename(file(), join(clone, `${site}.yml`)),
      () => `${site}.yml has its name`,
    ],
    [
      'because it is a link',
      async () => {
        await rename(file(), join(clone, `text-of-${site}`));
        await symlink(`text-of-${site}`, file());
      },
      () => `${site}.yaml is a symbolic link`,
    ],
    [
      'because it has another name',
      () => rename(file(), join(clone, `kept-${site}`)),
      () => `renamed ${site}.yaml to kept-${site}`,
    ],
  ])('%s: its site stays, and its status says what is wrong', async (_what, act, detail) => {
    await world.git(clone, 'pull', '--quiet', '--rebase');
    await act();
    await publish();
    await shows({
      status: 'active',
      statusReason: 'invalid_manifest',
      statusDetail: expect.stringContaining(detail()),
    });
    expect(await holder()).toBeDefined();
    await revert();
    await shows({ status: 'active', statusReason: null });
    await operate(null);
    await shows({ status: 'removed' });
  });

  test('because the branch was rewritten, doesn’t remove its site', async () => {
    await world.git(clone, 'pull', '--quiet', '--rebase');
    const own = await world.git(clone, 'log', '--format=%H', '--reverse', '--', `${site}.yaml`);
    await world.git(clone, 'reset', '--quiet', '--hard', `${own.split('\n')[0]}^`);
    await world.git(clone, 'commit', '--quiet', '--allow-empty', '-m', 'Rewritten');
    await world.git(clone, 'push', '--quiet', '--force', 'origin', 'HEAD:main');
    await shows({ status: 'active', statusDetail: `no commit of this branch removed ${site}` });
  });

  test.each<[string, () => void]>([
    ['has removed it', () => world.provisioner.sites.set(site, { reason: 'Removed', message: '' })],
    ['has nothing of it', () => world.provisioner.sites.delete(site)],
  ])('because the branch was rewritten, removes its site once the host %s', async (_what, approve) => {
    await world.git(clone, 'pull', '--quiet', '--rebase');
    const own = await world.git(clone, 'log', '--format=%H', '--reverse', '--', `${site}.yaml`);
    await world.git(clone, 'reset', '--quiet', '--hard', `${own.split('\n')[0]}^`);
    await world.git(clone, 'commit', '--quiet', '--allow-empty', '-m', 'Rewritten');
    world.provisioner.ready = false;
    await world.git(clone, 'push', '--quiet', '--force', 'origin', 'HEAD:main');
    await shows({ status: 'active', statusReason: 'invalid_manifest' });
    approve();
    world.provisioner.ready = true;
    await shows({ status: 'removed', statusReason: null });
    expect(await holder()).toBeUndefined();
    await create(domain);
  });

  test('because a commit removed it, doesn’t remove its site if that is protected', async () => {
    await operate((text) => text.replace('state: present', 'state: present\nprotect: true'));
    await operate(() => 'site: [');
    await shows({ statusReason: 'invalid_manifest' });
    await operate(null);
    await shows({ status: 'active', statusDetail: expect.stringContaining('is protected') });
  });
});

describe.each<[string, ((text: string) => string) | null]>([
  ['a tombstone', (text) => text.replace('state: present', 'state: absent')],
  ['a deleted file', null],
])('a removal by %s', (_kind, change) => {
  test('ends in the status removed and releases everything; its revert leases all of it again', async () => {
    const port = await holder();
    await operate(change);
    await shows({ status: 'removed' });
    expect(await holder()).toBeUndefined();
    world.provisioner.sites.set(site, { reason: 'Ready', message: '' });
    await revert();
    await shows({ status: 'active', domains: [{ domain }] });
    expect(await holder()).toBe(port);
  });

  test('is not reverted while another site leases its ports', async () => {
    await operate(change);
    await shows({ status: 'removed' });
    const taker = await create(`taker${count}.example`);
    await revert();
    await shows({ status: 'removed', statusReason: 'port_taken' });
    const { body } = await world.call('GET', `/server-containers/${taker.id}`, { as: 'viewer' });
    expect(body).toMatchObject({ status: 'active', statusReason: null });
  });

  test('is reverted once the other site releases the ports, without a further commit', async () => {
    await operate(change);
    await shows({ status: 'removed' });
    const taker = await create(`leaver${count}.example`);
    await revert();
    await shows({ status: 'removed', statusReason: 'port_taken' });
    world.provisioner.sites.set(site, { reason: 'Ready', message: '' });
    await world.call('DELETE', `/server-containers/${taker.id}`, { as: 'owner' });
    await shows({ status: 'active', statusReason: null });
  });

  test('can be requested again while the site waits for its ports', async () => {
    await operate(change);
    await shows({ status: 'removed' });
    await create(`stayer${count}.example`);
    await revert();
    await shows({ status: 'removed', statusReason: 'port_taken' });
    expect((await world.call('DELETE', `/server-containers/${id}`, { as: 'owner' })).status).toBe(202);
    await shows({ status: 'removed', statusReason: null });
    expect(await world.file(site)).toContain('state: absent');
  });
});

test('a site that an operator adds for a known client becomes a container', async () => {
  const text = (await world.file(site)) ?? '';
  const mine = '5b0a6679-7425-40de-944b-e07fc1f90001';
  await world.repo.commit({
    site: 'by-hand',
    subject: 'Add by hand',
    author: { name: 'Olga', email: 'olga@example.test' },
    trailers: {},
    edit: () =>
      text
        .replaceAll(domain, 'by-hand.example')
        .replaceAll(`${site}-`, 'by-hand-')
        .replaceAll(`${site}.`, 'by-hand.')
        .replace(/^site: .*/m, 'site: by-hand')
        .replace(/^container: .*/m, `container: ${mine}`)
        .replace(/processing: \d+/, 'processing: 20090')
        .replace(/preview: \d+/, 'preview: 20091'),
  });
  await eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${mine}`, { as: 'viewer' });
    expect(body).toMatchObject({ status: 'provisioning', siteId: 'by-hand' });
  });
  world.provisioner.sites.set('by-hand', { reason: 'Ready', message: '' });
  await shows({ status: 'active' }, mine);
});
