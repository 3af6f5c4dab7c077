import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { CONFIG, creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
let id: string;
let site: string;
beforeAll(async () => {
  world = await World.open();
  client = await world.client();
  await world.call('PUT', `/clients/${client}/members/editor`, { as: 'root', body: { role: 'editor' } });
  const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  ({ id, siteId: site } = made.body);
  await eventually(async () => expect((await call('GET', '')).body.status).toBe('active'));
});
afterAll(() => world.close());

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
const call = (method: Method, path: string, body?: unknown, as = 'owner') =>
  world.call(method, `/server-containers/${id}${path}`, { as, ...(body === undefined ? {} : { body }) });
const codeOf = async (...args: Parameters<typeof call>) => {
  const { status, body } = await call(...args);
  return [status, body.code];
};

/** Edits the manifest as an operator. */
async function push(edit: (text: string) => string): Promise<void> {
  const clone = await world.clone();
  const file = join(clone, `${site}.yaml`);
  await writeFile(file, edit(await readFile(file, 'utf8')));
  await world.git(clone, 'commit', '-qam', 'Edit it');
  await world.git(clone, 'push', '-q');
}

test('a new container configuration replaces the stored one, encrypted', async () => {
  const before = await world.file(site);
  const secret = 'another-auth-value';
  const containerConfigB64 = Buffer.from(`id=GTM-SRV54321&env=1&auth=${secret}`).toString('base64');
  const answer = await call('PUT', '/config', { containerConfigB64 }, 'editor');
  expect(answer.status).toBe(200);
  const after = (await world.file(site)) ?? '';
  expect(after).toContain('AGE ENCRYPTED');
  expect(after).not.toBe(before);
  for (const text of [after, JSON.stringify(answer.body), ...world.logs]) expect(text).not.toContain(secret);
  expect(await codeOf('PUT', '/config', { containerConfigB64: 'bm9uc2Vuc2U=' })).toEqual([
    422,
    'invalid_container_config',
  ]);
  expect(await codeOf('PUT', '/config', { containerConfigB64: CONFIG }, 'viewer')).toEqual([
    403,
    'forbidden',
  ]);
});

test('a container is suspended and resumed; meanwhile, a dry run says that a change waits', async () => {
  expect((await call('POST', '/suspend', {})).body).toMatchObject({
    suspended: true,
    statusReason: 'suspended',
  });
  expect(await world.file(site)).toContain('suspend: true');
  const dry = await call('PATCH', '?dryRun=1', { name: 'Waiting' });
  expect(dry.body.plan.warnings).toEqual(['the site is suspended: the change is applied when it is resumed']);
  expect((await call('POST', '/resume')).body.suspended).toBe(false);
  expect(await codeOf('POST', '/suspend', {}, 'editor')).toEqual([403, 'forbidden']);
});

test('serving is switched off and on again', async () => {
  const dry = await call('POST', '/suspend?dryRun=1', { serving: false });
  expect(dry.body.plan.changes).toEqual([{ path: 'serving', from: true, to: false }]);
  const off = await call('POST', '/suspend', { serving: false });
  expect(off.body).toMatchObject({ serving: false, suspended: false, statusReason: 'serving_off' });
  expect(await world.file(site)).toContain('serving: false');
  expect((await call('GET', '')).body).toMatchObject({ serving: false, statusReason: 'serving_off' });
  const listed = async () =>
    (await world.call('GET', '/server-containers?view=summary', { as: 'owner' })).body.containers;
  expect(await listed()).toMatchObject([{ id, serving: false }]);
  expect(await codeOf('POST', '/verify')).toEqual([409, 'wrong_status']);
  // Suspended while serving is off: changes wait, too, and one resume ends both.
  expect((await call('POST', '/suspend', {})).body).toMatchObject({ serving: false, suspended: true });
  expect((await call('POST', '/resume')).body).toMatchObject({ serving: true, suspended: false });
  expect(await world.file(site)).not.toContain('serving');
  expect(await listed()).toMatchObject([{ id, serving: true }]);
  // A suspended container’s changes wait, so serving could not be switched off.
  await call('POST', '/suspend', {});
  expect(await codeOf('POST', '/suspend', { serving: false })).toEqual([409, 'wrong_status']);
  await call('POST', '/resume');
});

test('a protected container isn’t removed until the protection is lifted', async () => {
  expect((await call('POST', '/protect', { protect: true })).body.protected).toBe(true);
  expect(await codeOf('DELETE', '')).toEqual([409, 'site_protected']);
  expect((await call('POST', '/protect', { protect: false })).body.protected).toBe(false);
  expect((await call('DELETE', '?dryRun=1')).status).toBe(200);
});

test('resources are changed in part, within limits for tenants', async () => {
  const answer = await call('PATCH', '', { resources: { processing: { memory: '1g' } } }, 'editor');
  expect(answer.body.resources).toMatchObject({
    processing: { memory: '1g', cpus: 1, replicas: 1 },
    preview: { memory: '256m', onDemand: false },
  });
  const large = { resources: { processing: { memory: '3g', replicas: 5 } } };
  const refused = await call('PATCH', '', large);
  expect([refused.status, refused.body.errors.map(({ path }: { path: string }) => path)]).toEqual([
    403,
    ['resources.processing.memory', 'resources.processing.replicas'],
  ]);
  const replicas = await call('PATCH', '', { resources: { processing: { replicas: 2 } } });
  expect(replicas.body.resources.processing).toEqual({ memory: '1g', cpus: 1, replicas: 2 });
});

test('resources may have a range of replicas, and requests of at most the limits', async () => {
  const set = (processing: object) => call('PATCH', '', { resources: { processing } }, 'editor');
  const range = await set({ replicas: { min: 2, max: 4 }, requests: { memory: '512m', cpus: 0.2 } });
  expect(range.body.resources.processing).toEqual({
    memory: '1g',
    cpus: 1,
    requests: { memory: '512m', cpus: 0.2 },
    replicas: { min: 2, max: 4 },
  });
  expect(await world.file(site)).toMatch(/replicas:\s+min: 2\s+max: 4/);
  const above = await set({ memory: '256m' });
  expect([above.status, above.body.errors]).toEqual([
    400,
    [{ path: 'resources.processing.requests.memory', message: 'must be at most the limit, 256m' }],
  ]);
  const many = await set({ replicas: { min: 1, max: 5 } });
  expect([many.status, many.body.errors]).toEqual([
    403,
    [{ path: 'resources.processing.replicas', message: 'must be at most 4' }],
  ]);
  expect((await set({ replicas: { min: 3, max: 2 } })).body.errors[0].path).toMatch(/processing\.replicas$/);
  const dry = await call('PATCH', '?dryRun=1', { resources: { processing: { replicas: 3 } } });
  expect(dry.body.plan.changes).toEqual([
    { path: 'resources.processing.replicas', from: { min: 2, max: 4 }, to: 3 },
  ]);
  const restored = await set({ requests: {}, replicas: 2 });
  expect(restored.body.resources.processing).toMatchObject({ requests: {}, replicas: 2 });
});

test('a new container that would request more than its limit is refused', async () => {
  const resources = { processing: { memory: '256m', requests: { memory: '1g' } } };
  const body = {
    ...creation(client),
    name: 'Other',
    domains: ['other-shop.example'],
    webTagIds: { 'other-shop.example': 'GTM-AAAA' },
    resources,
  };
  const refused = await world.call('POST', '/server-containers', { as: 'owner', body });
  expect([refused.status, refused.body.errors]).toEqual([
    400,
    [{ path: 'resources.processing.requests.memory', message: 'must be at most the limit, 256m' }],
  ]);
});

test('a container is created with resources, within limits for tenants', async () => {
  const create = (resources: unknown, query = '') => {
    const pages = { domains: ['thrifty.example'], webTagIds: { 'thrifty.example': 'GTM-AAAA' } };
    const body = { ...creation(client), name: 'Thrifty', ...pages, resources };
    return world.call('POST', `/server-containers${query}`, { as: 'owner', body });
  };
  const large = { processing: { memory: '3g' }, preview: { memory: '3g' } };
  for (const query of ['', '?dryRun=1']) {
    const { status, body } = await create(large, query);
    expect([status, body.errors.map(({ path }: { path: string }) => path)]).toEqual([
      403,
      ['resources.processing.memory', 'resources.preview.memory'],
    ]);
  }
  const { status, body } = await create({ preview: { onDemand: true } });
  expect([status, body.resources]).toEqual([
    202,
    {
      processing: { memory: '512m', cpus: 1, replicas: 1 },
      preview: { memory: '256m', cpus: 0.5, onDemand: true },
    },
  ]);
});

test('domains are put in order by a list of all of them and no other', async () => {
  await call('POST', '/domains', { domain: 'second.example', webTagId: 'GTM-AAAA' });
  const order = (...domains: string[]) => call('PUT', '/domains/order', { domains }, 'editor');
  const { body } = await order('second.example', 'acme.example');
  expect(body.domains).toMatchObject([
    { domain: 'second.example', webTagId: 'GTM-AAAA', active: true },
    { domain: 'acme.example', active: false },
  ]);
  const wrong = await order('acme.example', 'acme.example', 'other.example');
  expect([wrong.status, wrong.body.errors]).toEqual([
    400,
    [
      { path: 'domains.1', message: 'is listed twice' },
      { path: 'domains.2', message: 'is not a domain of the container' },
      { path: 'domains', message: 'lacks second.example' },
    ],
  ]);
});

test('loader tokens are listed with shortened values, rotated and revoked', async () => {
  const first = (await call('GET', '')).body.loaderToken;
  await call('POST', '/loader-tokens/rotate', { graceUntil: '2999-01-01' });
  const second = (await call('GET', '')).body.loaderToken;
  await call('POST', '/loader-token', { graceUntil: '2999-02-02' });
  const { body } = await call('GET', '/loader-tokens', undefined, 'viewer');
  expect(body).toMatchObject({
    items: [
      { current: true, until: null },
      { current: false, until: '2999-02-02', value: expect.stringMatching(/^lt_.{4}….{4}$/) },
      { current: false, until: '2999-01-01' },
    ],
    next: null,
  });
  expect(JSON.stringify(body)).not.toContain(first);
  expect((await call('DELETE', `/loader-tokens/${first}`)).status).toBe(200);
  expect((await call('DELETE', `/loader-tokens/${body.items[1].id}`)).status).toBe(200);
  expect(await world.file(site)).not.toMatch(new RegExp(`${first}|${second}`));
  expect(await codeOf('DELETE', `/loader-tokens/${first}`)).toEqual([404, 'unknown_loader_token']);
  expect(await codeOf('DELETE', `/loader-tokens/${body.items[0].id}`)).toEqual([409, 'wrong_status']);
});

test('a clone has the settings, but neither names nor tokens', async () => {
  const modules = { server_proxy: { paths: ['/data'] } };
  await call('PATCH', '', { modules, consent: 'required', features: { multi_domain: true } });
  const body = { name: 'Clone', domains: ['clone.example'], webTagIds: { 'clone.example': 'GTM-BBBB' } };
  const dry = await call('POST', '/clone?dryRun=1', body);
  expect(dry.body.plan.commit).toBe('Create clone');
  const answer = await call('POST', '/clone', body);
  const source = (await call('GET', '')).body;
  expect([answer.status, answer.body]).toMatchObject([
    202,
    {
      name: 'Clone',
      clientId: client,
      consent: 'required',
      features: { multi_domain: true },
      modules: { server_proxy: { paths: ['/data'] } },
      resources: source.resources,
      image: source.image,
      domains: [{ domain: 'clone.example' }],
      customDomains: [],
    },
  ]);
  expect(answer.body.loaderToken).not.toBe(source.loaderToken);
  const configOf = (text: string | null) => /BEGIN AGE[\s\S]*?END AGE/.exec(text ?? '')?.[0];
  expect(configOf(await world.file('clone'))).toBe(configOf(await world.file(site)));
  expect(await codeOf('POST', '/clone', body)).toEqual([409, 'domain_in_use']);
  expect(await codeOf('POST', '/clone', body, 'editor')).toEqual([403, 'forbidden']);
  expect(await codeOf('POST', '/clone', { ...body, webTagIds: {} })).toEqual([400, 'invalid_request']);
});

test('a clone is refused if the caller may not set its resources or its image', async () => {
  await world.call('PUT', `/clients/${client}/members/root`, { as: 'root', body: { role: 'owner' } });
  await call('PATCH', '', { resources: { processing: { memory: '4g' } } }, 'root');
  const body = { name: 'Large', domains: ['large.example'], webTagIds: { 'large.example': 'GTM-BBBB' } };
  for (const path of ['/clone?dryRun=1', '/clone']) {
    expect(await codeOf('POST', path, body)).toEqual([403, 'forbidden']);
  }
  expect((await call('POST', '/clone?dryRun=1', body, 'root')).status).toBe(200);
  await call('PATCH', '', { resources: { processing: { memory: '1g' } } }, 'root');
  expect((await call('POST', '/clone?dryRun=1', body)).status).toBe(200);
  const image = /^image: .*$/m.exec((await world.file(site)) ?? '')?.[0] ?? '';
  await push((text) => text.replace(image, `image: withdrawn.example/gtm@sha256:${'c'.repeat(64)}`));
  for (const as of ['owner', 'root']) {
    expect(await codeOf('POST', '/clone', body, as)).toEqual([422, 'image_not_allowed']);
  }
  await push((text) => text.replace(/^image: .*$/m, image));
});

test('an editor can’t add a domain that git lacks, even if the database still has it', async () => {
  await call('POST', '/domains', { domain: 'late.example', webTagId: 'GTM-AAAA' });
  const option = { domain: 'late.example', webTagId: 'GTM-BBBB' };
  expect((await call('POST', '/domains', option, 'editor')).status).toBe(200);
  // Without `follow`, the operator's commit doesn't reach the database.
  await world.stop();
  await world.start({ follow: false });
  await push((text) => text.replace(/ {2}- domain: late\.example\n(?: {4}.*\n)*/, ''));
  expect(await world.file(site)).not.toContain('late.example');
  for (const query of ['?dryRun=1', '']) {
    expect(await codeOf('POST', `/domains${query}`, option, 'editor')).toEqual([403, 'forbidden']);
  }
  expect(await world.file(site)).not.toContain('late.example');
  expect((await call('POST', '/domains', option)).status).toBe(200);
});
