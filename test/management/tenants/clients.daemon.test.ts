import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { creation, World } from '../../support/management/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.open({
    settings: {
      quotas: {
        containers: 2,
        members: 6,
        tokens: 2,
        clientsPerOrganisation: 1_000,
        clientsPerPerson: 1_000,
      },
    },
  });
});
afterAll(() => world.close());

let count = 0;
/** A client whose members have the roles of their names. */
async function newClient(extra: object = {}): Promise<string> {
  const members = ['owner', 'admin', 'editor', 'viewer'].map((role) => ({ subject: role, role }));
  const body = { name: `Client ${++count}`, members, ...extra };
  return (await world.call('POST', '/clients', { as: 'root', body })).body.id;
}

async function newOrganisation(subject: string, role = 'owner'): Promise<string> {
  const body = { name: `Agency ${++count}`, members: [{ subject, role }] };
  return (await world.call('POST', '/organisations', { as: 'root', body })).body.id;
}

async function newContainer(client: string, domain: string): Promise<string> {
  const { body } = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, domain),
  });
  await eventually(async () => {
    const read = await world.call('GET', `/server-containers/${body.id}`, { as: 'owner' });
    expect(read.body.status).toBe('active');
  });
  return body.id;
}

const inGit = async (name: string): Promise<string> => {
  const head = (await world.repo.head()) ?? '';
  return (await world.repo.readSite(head, name))?.text ?? '';
};

test('a caller reads its own subject, and its role in each client and organisation', async () => {
  const organisation = await newOrganisation('mia', 'editor');
  const client = await newClient({ organisation });
  const { status, body } = await world.call('GET', '/me', { as: 'mia' });
  expect([status, body]).toMatchObject([
    200,
    {
      subject: 'mia',
      isOperator: false,
      scopes: null,
      organisations: [{ id: organisation, role: 'editor' }],
      clients: [{ id: client, organisation, role: 'editor' }],
    },
  ]);
  expect((await world.call('GET', '/me', { as: 'root' })).body).toMatchObject({
    isOperator: true,
    clients: [],
  });
});

describe('clients', () => {
  test('are listed by name, page by page, to their members and operators', async () => {
    const ids = [];
    for (const name of ['zebra 7', 'Äpfel 7', 'Zoo 7']) ids.push(await newClient({ name }));
    const list = async (query: string, as = 'viewer') =>
      (await world.call('GET', `/clients?${query}`, { as })).body;
    const first = await list('limit=1&q=7');
    expect(first.items).toHaveLength(1);
    const names = [...first.items];
    for (let next = first.next; next !== null; ) {
      const page = await list(`limit=1&q=7&cursor=${next}`);
      names.push(...page.items);
      next = page.next;
    }
    expect(names.map(({ id }) => id).sort()).toEqual(ids.sort());
    expect((await list('q=ZEB')).items).toMatchObject([{ name: 'zebra 7', role: 'viewer' }]);
    expect((await list('q=zebra', 'stranger')).items).toEqual([]);
    expect((await list('q=zebra', 'root')).items).toMatchObject([{ name: 'zebra 7', role: null }]);
    expect((await world.call('GET', '/clients?limit=201', { as: 'viewer' })).status).toBe(400);
  });

  test.each(['no base64!', ...[['x'], ['x', 'y'], [1], {}].map((key) => btoa(JSON.stringify(key)))])(
    'and all other lists refuse the cursor %s, which no page has returned',
    async (cursor) => {
      const id = await newClient();
      const lists = [
        'clients',
        'organisations',
        'invitations',
        'tokens',
        'audit',
        'events',
        'webhooks',
        'server-containers',
      ];
      const paths = [...lists, `clients/${id}/invitations`, 'changes'].map((path) => `/${path}`);
      for (const path of paths) {
        const query = `cursor=${encodeURIComponent(cursor)}`;
        const { status, body } = await world.call('GET', `${path}?${query}`, { as: 'owner' });
        expect([path, status, body.code]).toEqual([path, 400, 'invalid_request']);
      }
    },
  );

  test('are renamed by an admin, by a commit in the caller’s name', async () => {
    const id = await newClient();
    const patch = (as: string, body: object, headers = {}) =>
      world.call('PATCH', `/clients/${id}`, { as, body, headers });
    const read = await world.call('GET', `/clients/${id}`, { as: 'viewer' });
    const etag = String(read.headers.etag);
    expect((await patch('editor', { name: 'No' })).body.code).toBe('forbidden');
    expect((await patch('stranger', { name: 'No' })).body.code).toBe('unknown_client');
    const renamed = await patch('admin', { name: 'New name' }, { 'if-match': etag });
    expect([renamed.status, renamed.body]).toMatchObject([200, { id, name: 'New name', role: 'admin' }]);
    expect((await patch('admin', { name: 'Late' }, { 'if-match': etag })).status).toBe(412);
    expect(await inGit(`clients/${id}`)).toContain('name: New name\n');
    const [entry] = await world.repo.history(`clients/${id}`, 1);
    expect(entry).toMatchObject({ trailers: { Actor: 'admin', Client: id } });
  });

  test('get a plan from a dry run, which changes nothing', async () => {
    const id = await newClient({ name: 'Before' });
    const { body } = await world.call('PATCH', `/clients/${id}?dryRun=1`, {
      as: 'admin',
      body: { name: 'After' },
    });
    expect(body).toEqual({ plan: { changes: [{ path: 'name', from: 'Before', to: 'After' }] } });
    const put = await world.call('PUT', `/clients/${id}/members/viewer?dryRun=1`, {
      as: 'admin',
      body: { role: 'editor' },
    });
    expect(put.body.plan.changes).toEqual([{ path: 'members[viewer].role', from: 'viewer', to: 'editor' }]);
    const made = await world.call('POST', '/clients?dryRun=1', { as: 'root', body: { name: 'None' } });
    expect([made.status, made.body.plan.changes]).toEqual([
      200,
      [
        { path: 'name', from: null, to: 'None' },
        { path: 'members', from: null, to: [] },
      ],
    ]);
    expect((await world.call('GET', `/clients/${id}`, { as: 'viewer' })).body.name).toBe('Before');
  });

  test('are archived by an owner once they have no container, and are hidden then', async () => {
    const id = await newClient({ name: 'Old customer' });
    const container = await newContainer(id, 'old.example');
    const archive = (as: string, verb = 'archive') => world.call('POST', `/clients/${id}/${verb}`, { as });
    expect((await archive('admin')).body.code).toBe('forbidden');
    expect((await archive('owner')).body.code).toBe('client_in_use');
    await world.call('DELETE', `/server-containers/${container}`, { as: 'owner' });
    await eventually(async () => {
      const { body } = await world.call('GET', `/server-containers/${container}`, { as: 'owner' });
      expect(body.status).toBe('removed');
    });
    const invitation = await world.call('POST', `/clients/${id}/invitations`, {
      as: 'owner',
      body: { email: 'late@example.com', role: 'editor' },
    });
    const body = { name: 'CI', client: id, scopes: ['admin'] };
    const { value: token } = (await world.call('POST', '/tokens', { as: 'owner', body })).body;
    expect((await archive('owner')).body.archivedAt).toEqual(expect.any(String));
    // What was given out before opens it no more: an invitation makes no member, a token makes nothing.
    const accepted = { token: invitation.body.token };
    const late = await world.call('POST', '/invitations/accept', { as: 'late', body: accepted });
    const member = { token, body: { role: 'viewer' } };
    const made = await world.call('PUT', `/clients/${id}/members/new`, member);
    expect([late.body.code, made.body.code]).toEqual(['client_archived', 'client_archived']);
    expect((await world.call('GET', `/clients/${id}`, { token })).status).toBe(200);
    const listed = async (query: string) =>
      (await world.call('GET', `/clients?q=Old${query}`, { as: 'viewer' })).body.items.length;
    expect([await listed(''), await listed('&archived=1')]).toEqual([0, 1]);
    const refused = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(id, 'again.example'),
    });
    expect(refused.body.code).toBe('client_archived');
    expect((await archive('owner', 'unarchive')).body.archivedAt).toBe(null);
    expect(await listed('')).toBe(1);
  });

  test('have at most the containers and members that the settings allow', async () => {
    const id = await newClient();
    await newContainer(id, 'one-of-two.example');
    await newContainer(id, 'two-of-two.example');
    const third = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(id, 'third.example'),
    });
    expect(third.body.code).toBe('limit_reached');
    const put = async (subject: string) =>
      (
        await world.call('PUT', `/clients/${id}/members/${subject}`, {
          as: 'owner',
          body: { role: 'viewer' },
        })
      ).status;
    expect([await put('fifth'), await put('sixth'), await put('seventh')]).toEqual([200, 200, 409]);
  });
});

describe('members', () => {
  test('are listed to readers, and given roles up to the caller’s own', async () => {
    const id = await newClient();
    const put = async (as: string, subject: string, role: string) => {
      const at = `/clients/${id}/members/${subject}`;
      const { status, body } = await world.call('PUT', at, { as, body: { role } });
      return status === 200 ? 200 : body.code;
    };
    expect(await put('admin', 'new', 'editor')).toBe(200);
    expect(await put('admin', 'new', 'owner')).toBe('forbidden');
    expect(await put('admin', 'owner', 'viewer')).toBe('forbidden');
    expect(await put('editor', 'new', 'viewer')).toBe('forbidden');
    expect(await put('owner', 'new', 'owner')).toBe(200);
    const remove = (as: string) => world.call('DELETE', `/clients/${id}/members/new`, { as });
    expect((await remove('admin')).body.code).toBe('forbidden');
    const listed = await world.call('GET', `/clients/${id}/members?limit=2`, { as: 'viewer' });
    expect(listed.body.items).toEqual([
      { subject: 'admin', role: 'admin' },
      { subject: 'editor', role: 'editor' },
    ]);
    const rest = await world.call('GET', `/clients/${id}/members?cursor=${listed.body.next}`, {
      as: 'viewer',
    });
    expect(rest.body.items.map(({ subject }: { subject: string }) => subject)).toEqual([
      'new',
      'owner',
      'viewer',
    ]);
    expect((await remove('owner')).status).toBe(204);
    expect(await inGit(`clients/${id}`)).not.toContain('new');
  });
});

describe('organisations', () => {
  test('are made by operators, read by members and renamed by admins', async () => {
    expect(
      (await world.call('POST', '/organisations', { as: 'owner', body: { name: 'Mine' } })).body.code,
    ).toBe('forbidden');
    const id = await newOrganisation('olaf');
    const at = `/organisations/${id}`;
    expect((await world.call('GET', at, { as: 'stranger' })).body.code).toBe('unknown_organisation');
    const put = { as: 'olaf', body: { role: 'viewer' } };
    expect((await world.call('PUT', `${at}/members/vera`, put)).status).toBe(200);
    expect((await world.call('PATCH', at, { as: 'vera', body: { name: 'No' } })).body.code).toBe('forbidden');
    expect((await world.call('PATCH', at, { as: 'olaf', body: { name: 'Yes' } })).body.name).toBe('Yes');
    expect((await world.call('GET', '/organisations', { as: 'vera' })).body.items).toEqual([
      { id, name: 'Yes', archivedAt: null, role: 'viewer' },
    ]);
    expect((await world.call('DELETE', `${at}/members/olaf`, { as: 'olaf' })).body.code).toBe('last_owner');
    expect((await world.call('DELETE', `${at}/members/vera`, { as: 'olaf' })).status).toBe(204);
  });

  test('are archived by an owner once no client of theirs is active, and get no client from then on', async () => {
    const id = await newOrganisation('otto');
    const client = await newClient({ organisation: id });
    const archive = (verb: string, { as = 'otto', ...rest }: { as?: string; headers?: object } = {}) =>
      world.call('POST', `/organisations/${id}/${verb}`, { as, ...rest } as never);
    expect((await archive('archive')).body.code).toBe('organisation_in_use');
    expect((await archive('archive?dryRun=1')).body.code).toBe('organisation_in_use');
    await world.call('POST', `/clients/${client}/archive`, { as: 'otto' });
    const { etag } = (await world.call('GET', `/organisations/${id}`, { as: 'otto' })).headers;
    const planned = (await archive('archive?dryRun=1')).body.plan.changes;
    expect(planned).toEqual([{ path: 'archivedAt', from: null, to: expect.any(String) }]);
    const archived = await archive('archive', { headers: { 'if-match': etag } });
    expect([archived.status, archived.body]).toMatchObject([200, { id, archivedAt: expect.any(String) }]);
    expect((await archive('archive', { headers: { 'if-match': etag } })).status).toBe(412);
    expect(await inGit(`organisations/${id}`)).toContain(`archivedAt: ${archived.body.archivedAt}\n`);

    const listed = async (query = '') =>
      (await world.call('GET', `/organisations${query}`, { as: 'otto' })).body.items.length;
    const mine = async () => (await world.call('GET', '/me', { as: 'otto' })).body.organisations.length;
    expect([await listed(), await listed('?archived=1'), await mine()]).toEqual([0, 1, 0]);
    const other = await newClient();
    const refusals = [
      await world.call('POST', '/clients', { as: 'otto', body: { name: 'New', organisation: id } }),
      await world.call('PATCH', `/clients/${other}`, { as: 'root', body: { organisation: id } }),
      await world.call('POST', `/clients/${client}/unarchive`, { as: 'otto' }),
    ];
    expect(refusals.map(({ body }) => body.code)).toEqual(Array(3).fill('organisation_archived'));
    expect((await archive('unarchive', { as: 'root' })).body.archivedAt).toBe(null);
    expect((await world.call('POST', `/clients/${client}/unarchive`, { as: 'otto' })).status).toBe(200);
    expect(await listed()).toBe(1);
  });

  test('get clients from their admins, and lose them only by an operator', async () => {
    const id = await newOrganisation('anna', 'admin');
    const body = { name: 'Of the agency', organisation: id };
    expect((await world.call('POST', '/clients', { as: 'owner', body })).body.code).toBe('forbidden');
    const made = await world.call('POST', '/clients', { as: 'anna', body });
    expect([made.status, made.body.organisation]).toEqual([201, id]);
    const clients = async () =>
      (await world.call('GET', `/organisations/${id}/clients`, { as: 'anna' })).body.items;
    expect(await clients()).toMatchObject([{ id: made.body.id, role: 'admin' }]);
    const move = (as: string) =>
      world.call('PATCH', `/clients/${made.body.id}`, { as, body: { organisation: null } });
    expect((await move('anna')).body.code).toBe('forbidden');
    expect((await move('root')).body.organisation).toBe(null);
    expect(await clients()).toEqual([]);
    expect((await world.call('GET', `/clients/${made.body.id}`, { as: 'anna' })).status).toBe(404);
  });
});

describe('a transfer', () => {
  test('gives containers to another client of the same owner, each by a commit', async () => {
    const [from, to] = [await newClient(), await newClient()];
    const ids = [await newContainer(from, 'moved.example'), await newContainer(from, 'deep.moved.example')];
    const transfer = (containers: string[], as = 'owner', query = '') =>
      world.call('POST', `/clients/${from}/transfer${query}`, { as, body: { containers, to } });
    expect((await transfer(ids, 'admin')).body.code).toBe('forbidden');
    const alone = await transfer(ids.slice(0, 1));
    expect(alone.body.items).toMatchObject([{ id: ids[0], status: 'refused', code: 'domain_in_use' }]);
    const plan = await transfer(ids, 'owner', '?dryRun=1');
    expect(plan.body.plan.changes).toHaveLength(2);
    const { status, body } = await transfer([...ids, to]);
    expect(status).toBe(200);
    expect(body.items).toEqual([
      ...ids.map((id) => ({ id, status: 'transferred', code: null, detail: null })),
      expect.objectContaining({ id: to, status: 'refused', code: 'unknown_container' }),
    ]);
    for (const id of ids) {
      const read = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
      expect(read.body.clientId).toBe(to);
      expect(await world.file(read.body.siteId)).toContain(`client: ${to}\n`);
    }
    // Admins of either client read in the audit log who transferred the containers.
    const put = { as: 'root', body: { role: 'admin' } };
    await world.call('PUT', `/clients/${to}/members/receiver`, put);
    const rows = (
      await world.call('GET', `/audit?client=${to}&action=transferContainers`, { as: 'receiver' })
    ).body.items;
    expect(rows).toMatchObject([
      { actor: 'owner', client: to, status: 200, code: null },
      { actor: 'owner', client: to, status: 200, code: 'dry_run' },
      { actor: 'owner', client: to, status: 200, code: null },
    ]);
    const given = `/audit?client=${from}&action=transferContainers`;
    const { items } = (await world.call('GET', given, { as: 'owner' })).body;
    // The client that gives them also sees what was refused to its admin.
    const seen = items.filter(({ actor }: { actor: string }) => actor === 'owner');
    expect(seen.map((row: { requestId: string }) => row.requestId)).toEqual(
      rows.map((row: { requestId: string }) => row.requestId),
    );
    // The domain belongs to the other client now.
    const taken = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(from, 'new.moved.example'),
    });
    expect(taken.body.code).toBe('domain_in_use');
  });

  test('moves no container of a registrable domain if another of that domain is refused', async () => {
    const [from, to] = [await newClient(), await newClient()];
    const ids = [await newContainer(from, 'pair.example'), await newContainer(from, 'deep.pair.example')];
    const [broken, whole] = ids;
    const { siteId } = (await world.call('GET', `/server-containers/${broken}`, { as: 'owner' })).body;
    const clone = await world.clone();
    const file = join(clone, `${siteId}.yaml`);
    await writeFile(file, `${await readFile(file, 'utf8')}nonsense: true\n`);
    await world.git(clone, 'commit', '-qam', 'Break it');
    await world.git(clone, 'push', '-q');
    const transfer = async (query = '', containers = ids) =>
      (
        await world.call('POST', `/clients/${from}/transfer${query}`, {
          as: 'owner',
          body: { containers, to },
        })
      ).body;
    expect((await transfer('?dryRun=1')).plan.changes).toEqual([]);
    const { items } = await transfer();
    expect(items).toMatchObject([
      { id: broken, status: 'refused', code: 'manifest_broken' },
      { id: whole, status: 'refused', code: 'domain_in_use' },
    ]);
    // The answer asks to transfer both only if the request names just one of them.
    expect(items[1].detail).toBe(
      'another container with names in pair.example is refused, and they are transferred only together',
    );
    expect((await transfer('', [whole ?? ''])).items[0].detail).toBe(
      'another container of the client has names in pair.example: transfer them together',
    );
    for (const id of ids) {
      const read = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
      expect(read.body.clientId).toBe(from);
      expect(await world.file(read.body.siteId)).toContain(`client: ${from}\n`);
    }
  });
});

test('an organisation’s admin can’t make a client with an owner; the organisation’s owner can', async () => {
  const organisation = await newOrganisation('chief');
  const put = `/organisations/${organisation}/members/second`;
  expect((await world.call('PUT', put, { as: 'chief', body: { role: 'admin' } })).status).toBeLessThan(300);
  const make = (as: string, role: string) => {
    const body = { name: `Client ${++count}`, organisation, members: [{ subject: 'hand', role }] };
    return world.call('POST', '/clients', { as, body });
  };
  expect((await make('second', 'owner')).body.code).toBe('forbidden');
  expect((await make('chief', 'owner')).status).toBe(201);
});
