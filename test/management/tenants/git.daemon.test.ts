import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { creation, World } from '../../support/management/world.ts';

let dir: string;
let world: World;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-tenants-'));
  world = await World.open({ bare: join(dir, 'sites.git'), logLevel: 'warn' });
});
afterEach(async () => {
  await world.close();
  await rm(dir, { recursive: true, force: true });
});

const inGit = async (name: string): Promise<string | null> => {
  const head = await world.repo.head();
  return head === null ? null : ((await world.repo.readSite(head, name))?.text ?? null);
};

/** Edits a file as an operator. */
async function push(path: string, edit: (text: string) => string | null): Promise<void> {
  const clone = await world.clone();
  const text = edit(await readFile(join(clone, path), 'utf8'));
  if (text === null) await rm(join(clone, path));
  else await writeFile(join(clone, path), text);
  await world.git(clone, 'commit', '--quiet', '-am', `Edit ${path}`);
  await world.git(clone, 'push', '--quiet', 'origin', 'HEAD:main');
}

const roleOf = async (subject: string, client: string): Promise<string | null> => {
  const { body } = await world.call('GET', '/me', { as: subject });
  return body.clients.find(({ id }: { id: string }) => id === client)?.role ?? null;
};

describe('a client in git', () => {
  test.each(['client', 'organisation'])(
    'is not changed by a request whose caller lost the role in the %s meanwhile',
    async (place) => {
      const members = ['boss', 'late'].map((subject) => ({ subject, role: 'owner' }));
      const organisation = (
        await world.call('POST', '/organisations', { as: 'root', body: { name: 'Agency', members } })
      ).body.id;
      const body = { name: 'Acme', organisation, members: place === 'client' ? members : [] };
      const { id } = (await world.call('POST', '/clients', { as: 'root', body })).body;
      if (place === 'client') {
        await world.call('DELETE', `/organisations/${organisation}/members/late`, { as: 'boss' });
      }
      const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const commit = world.repo.commit.bind(world.repo);
      world.repo.commit = async (edit) => {
        if (edit.trailers?.Actor === 'late') {
          reached.resolve();
          await held.promise;
        }
        return await commit(edit);
      };
      const late = world.call('PUT', `/clients/${id}/members/friend`, {
        as: 'late',
        body: { role: 'owner' },
      });
      await reached.promise;
      const at = place === 'client' ? `/clients/${id}` : `/organisations/${organisation}`;
      const taken = await world.call('DELETE', `${at}/members/late`, { as: 'boss' });
      held.resolve();
      expect([taken.status, (await late).body.code]).toEqual([204, 'forbidden']);
      expect(await inGit(`clients/${id}`)).not.toContain('friend');
    },
  );

  test('has its name, organisation and members, and no secret', async () => {
    const organisation = (
      await world.call('POST', '/organisations', {
        as: 'root',
        body: { name: 'Agency', members: [{ subject: 'boss', role: 'owner' }] },
      })
    ).body.id;
    const members = ['b', 'a'].map((subject) => ({ subject, role: 'viewer' }));
    const body = {
      name: 'Acme: & Söhne',
      organisation,
      members: [...members, { subject: '7', role: 'owner' }],
    };
    const { id } = (await world.call('POST', '/clients', { as: 'root', body })).body;
    expect(await inGit(`clients/${id}`)).toBe(
      [
        `version: 1\nid: ${id}\nname: "Acme: & Söhne"\norganisation: ${organisation}\nmembers:`,
        '  owner:\n    - "7"\n  viewer:\n    - a\n    - b\n',
      ].join('\n'),
    );
    expect(await inGit(`organisations/${organisation}`)).toContain('members:\n  owner:\n    - boss\n');
  });

  test('may be edited by an operator, and the API shows it', async () => {
    const id = await world.client('Before');
    await push(`clients/${id}.yaml`, (text) =>
      text
        .replace('name: Before', '# kept\nname: After')
        .replace('  viewer:\n    - viewer', '  editor:\n    - viewer'),
    );
    await eventually(async () => expect(await roleOf('viewer', id)).toBe('editor'));
    expect((await world.call('GET', `/clients/${id}`, { as: 'owner' })).body.name).toBe('After');
    // A change by the API starts from the operator's version.
    await world.call('PUT', `/clients/${id}/members/late`, { as: 'owner', body: { role: 'viewer' } });
    expect(await inGit(`clients/${id}`)).toMatch(/name: After\n(.|\n)*viewer:\n {4}- late\n/);
  });

  test('keeps its members where its file is invalid or missing, and the log says so', async () => {
    const id = await world.client();
    await push(`clients/${id}.yaml`, (text) => text.replace('owner:', 'onwer:'));
    await eventually(() => expect(world.logs.join('')).toContain('onwer'));
    expect(await roleOf('owner', id)).toBe('owner');
    const put = await world.call('PUT', `/clients/${id}/members/x`, {
      as: 'owner',
      body: { role: 'viewer' },
    });
    expect([put.status, put.body.code]).toEqual([409, 'tenant_file_broken']);
    await push(`clients/${id}.yaml`, () => null);
    await eventually(() => expect(world.logs.join('')).toContain('is missing in git'));
    expect(await roleOf('owner', id)).toBe('owner');
    // The next change writes the file again.
    await world.call('PATCH', `/clients/${id}`, { as: 'owner', body: { name: 'Again' } });
    expect(await inGit(`clients/${id}`)).toContain('name: Again');
  });

  test('is written to git once, where only the database has it', async () => {
    const id = randomUUID();
    await world.stop();
    await world.db.insertInto('clients').values({ id, name: 'Older' }).execute();
    const role = { subject: 'ada', role: 'member' };
    await world.db
      .insertInto('client_memberships')
      .values({ client_id: id, ...role })
      .execute();
    await world.start();
    await eventually(async () => expect(await inGit(`clients/${id}`)).toContain('  member:\n    - ada\n'));
    expect(await world.repo.history(`clients/${id}`)).toHaveLength(1);
    expect(await roleOf('ada', id)).toBe('viewer');
  });

  test('is moved by operators only, even where the database is behind', async () => {
    const body = { name: 'Agency', members: [{ subject: 'boss', role: 'owner' }] };
    const organisation = (await world.call('POST', '/organisations', { as: 'root', body })).body.id;
    const client = { name: 'Moved', organisation, members: [{ subject: 'ada', role: 'owner' }] };
    const { id } = (await world.call('POST', '/clients', { as: 'root', body: client })).body;
    await world.stop();
    await world.start({ follow: false });
    await push(`clients/${id}.yaml`, (text) => text.replace(/^organisation: .*\n/m, ''));
    const patch = (as: string) => world.call('PATCH', `/clients/${id}`, { as, body: { organisation } });
    expect((await patch('ada')).body.code).toBe('forbidden');
    expect(await inGit(`clients/${id}`)).not.toContain(organisation);
    expect((await patch('root')).body.organisation).toBe(organisation);
  });

  test('must exist: a manifest with an unknown one is refused, and the container is not moved', async () => {
    const client = await world.client();
    const { body } = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
    const read = async () => (await world.call('GET', `/server-containers/${body.id}`, { as: 'owner' })).body;
    await eventually(async () => expect((await read()).status).toBe('active'));
    await push(`${body.siteId}.yaml`, (text) => text.replace(client, randomUUID()));
    await eventually(async () => expect((await read()).statusReason).toBe('invalid_manifest'));
    expect((await read()).clientId).toBe(client);
    await push(`${body.siteId}.yaml`, (text) => text.replace(/^client: .*$/m, `client: ${client}`));
    await eventually(async () => expect((await read()).statusReason).toBe(null));
  });
});

test('a lost database comes back from the sites repository alone', async () => {
  const organisation = (
    await world.call('POST', '/organisations', {
      as: 'root',
      body: { name: 'Agency', members: [{ subject: 'boss', role: 'admin' }] },
    })
  ).body.id;
  const clients = [await world.client('First'), await world.client('Second')];
  await world.call('PATCH', `/clients/${clients[1]}`, { as: 'root', body: { organisation } });
  const archived = await world.client('Gone');
  await world.call('POST', `/clients/${archived}/archive`, { as: 'owner' });
  const ids: string[] = [];
  for (const [index, client] of clients.entries()) {
    const domains = [`shop${index}.example`, `second${index}.example`];
    const webTagIds = Object.fromEntries(domains.map((domain) => [domain, 'GTM-ABC1234']));
    const body = creation(client, domains[0], { domains, webTagIds, features: { multi_domain: true } });
    const { id } = (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
    ids.push(id);
    await eventually(async () => expect((await container(id)).status).toBe('active'));
    const at = `/server-containers/${id}`;
    await world.call('POST', `${at}/custom-domains`, {
      as: 'owner',
      body: { domain: `data.shop${index}.example` },
    });
    await world.call('POST', `${at}/loader-token`, { as: 'owner', body: {} });
    const sameOrigin = { domain: `shop${index}.example`, webTagId: 'GTM-ABC1234', sameOrigin: {} };
    expect((await world.call('POST', `${at}/domains`, { as: 'owner', body: sameOrigin })).status).toBe(200);
  }
  const before = await everything(ids, [...clients, archived], organisation);
  const { forwarderKey } = world.settings;
  const running = world.provisioner.sites;
  await world.close();

  world = await World.open({ bare: join(dir, 'sites.git'), settings: { forwarderKey } });
  // The host still has all that it had.
  for (const [site, status] of running) world.provisioner.sites.set(site, status);
  await eventually(async () => {
    for (const id of ids) expect((await container(id)).status).toBe('active');
  });
  expect(await everything(ids, [...clients, archived], organisation)).toEqual(before);
});

async function container(id: string) {
  return (await world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body;
}

/** All that must come back: without times, operations and what a host reports. */
async function everything(ids: readonly string[], clients: readonly string[], organisation: string) {
  const containers = [];
  for (const id of ids) {
    const { createdAt, updatedAt, operation, health, state, ...rest } = await container(id);
    const { since, ...shown } = state;
    containers.push({ ...rest, state: shown });
  }
  const members = [];
  for (const path of [...clients.map((id) => `/clients/${id}`), `/organisations/${organisation}`]) {
    const read = await world.call('GET', path, { as: 'root' });
    members.push([read.body, (await world.call('GET', `${path}/members`, { as: 'root' })).body]);
  }
  const query = (table: 'port_pool' | 'domain_claims' | 'site_domains') =>
    world.owner.selectFrom(table).selectAll();
  return {
    containers,
    members,
    mine: (await world.call('GET', '/me', { as: 'boss' })).body,
    ports: await query('port_pool')
      .where('leased_by' as never, 'is not', null)
      .orderBy('processing' as never)
      .execute(),
    claims: (await query('domain_claims').execute())
      .map((row) => [Reflect.get(row, 'domain'), Reflect.get(row, 'container_id')])
      .sort(),
    domains: (await query('site_domains').execute()).map((row) => JSON.stringify(row)).sort(),
  };
}
