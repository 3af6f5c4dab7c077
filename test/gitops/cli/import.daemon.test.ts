import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { CONFIG, World } from '../../support/management/world.ts';

let world: World;
let url: string;
let file: string;
beforeAll(async () => {
  // The person who imports is an operator and a member of what is created.
  world = await World.open({ logLevel: 'silent', settings: { superAdmins: ['root', 'owner'] } });
  url = await world.listen();
  file = join(world.dir, 'import.yaml');
});
afterAll(() => world.close());

const shop = (name: string, extra: object = {}) => ({
  name,
  domains: [`${name}.example`],
  webTagIds: { [`${name}.example`]: 'GTM-ABC1234' },
  containerConfigB64: CONFIG,
  ...extra,
});
const members = [{ subject: 'owner', role: 'owner' }];

async function importThese(clients: unknown, ...options: string[]) {
  await writeFile(file, stringify({ clients }));
  return await run(...options);
}

async function run(...options: string[]) {
  const env = { MANAGEMENT_URL: url, TAGYARD_TOKEN: await world.issuer.token('owner') };
  const args = ['import', 'containers', '-f', file, '--json', ...options];
  const { exitCode, stdout, stderr } = await tagyardHere('http://127.0.0.1:9', args, env);
  const items: { name: string; outcome: string; detail: string }[] =
    stdout === '' ? [] : JSON.parse(stdout).items;
  return { exitCode, stderr, items, outcomes: items.map(({ name, outcome }) => `${name}: ${outcome}`) };
}

async function names(): Promise<string[]> {
  const { body } = await world.call('GET', '/server-containers?limit=100', { as: 'owner' });
  return body.containers.map(({ name }: { name: string }) => name).sort();
}

test('shows what it would create, creates it with --yes, and does nothing the second time', async () => {
  const clients = [
    {
      name: 'First',
      members,
      containers: [shop('one'), shop('two', { features: { cookie_restoration: true } })],
    },
    { name: 'Second', members, containers: [shop('three')] },
  ];
  const all = ['First', 'one', 'two', 'Second', 'three'];
  const shown = await importThese(clients);
  expect([shown.exitCode, shown.outcomes]).toEqual([0, all.map((name) => `${name}: create`)]);
  expect(await names()).toEqual([]);

  const made = await run('--yes');
  expect([made.exitCode, made.outcomes]).toEqual([0, all.map((name) => `${name}: created`)]);
  expect(await names()).toEqual(['one', 'three', 'two']);
  const again = await run('--yes');
  expect([again.exitCode, again.outcomes]).toEqual([0, all.map((name) => `${name}: exists`)]);
  expect(await names()).toEqual(['one', 'three', 'two']);
  expect(await world.owner.selectFrom('clients').select('name').orderBy('name').execute()).toEqual([
    { name: 'First' },
    { name: 'Second' },
  ]);
});

test('continues with the others when one fails', async () => {
  const { id } = await world.owner.selectFrom('clients').select('id').executeTakeFirstOrThrow();
  const other = await world.client('Other');
  const clients = [{ id: other, containers: [shop('four'), shop('five')] }, { id }];
  await world.call('POST', '/server-containers', {
    as: 'owner',
    body: { ...shop('four'), clientId: id },
  });
  const { exitCode, items } = await importThese(clients, '--yes');
  expect(exitCode).toBe(1);
  expect(items).toMatchObject([
    { name: other, outcome: 'exists' },
    { name: 'four', outcome: 'failed', detail: expect.stringContaining('409 domain_in_use') },
    { name: 'five', outcome: 'created' },
    { name: id, outcome: 'exists' },
  ]);
});

test('creates a container whose first creation failed', async () => {
  const other = await world.client('Another');
  world.provisioner.refuse = { status: 422, code: 'invalid_manifest', detail: 'the host refuses it' };
  const clients = [{ id: other, containers: [shop('six')] }];
  expect((await importThese(clients, '--yes')).outcomes).toEqual([`${other}: exists`, 'six: failed']);
  world.provisioner.refuse = null;
  await eventually(async () =>
    expect((await run('--yes')).outcomes).toEqual([
      `${other}: exists`,
      expect.stringMatching(/^six: (created|exists)$/),
    ]),
  );
  expect((await names()).filter((name) => name === 'six').length).toBeGreaterThan(0);
});

test('keeps what a repeated import needs: idempotency keys, and ids of new clients', async () => {
  const clients = [{ name: 'Lost', members, containers: [shop('seven')] }];
  expect((await importThese(clients, '--yes')).exitCode).toBe(0);
  const keys = await world.owner.selectFrom('idempotency_keys').select('key').execute();
  expect(keys.map(({ key }) => key)).toContainEqual(expect.stringMatching(/^import-[\da-f]{64}$/));
  const saved = JSON.parse(await readFile(`${file}.clients.json`, 'utf8'));
  expect(Object.keys(saved.clients)).toContain(`${url} Lost`);
  expect((await run('--yes')).outcomes).toEqual(['Lost: exists', 'seven: exists']);
});

test.each<[string, unknown, RegExp]>([
  [
    'a container without a tag id',
    [{ name: 'A', containers: [shop('x', { webTagIds: {} })] }],
    /line \d+: clients\.0\.containers\.0\.webTagIds\.x\.example: is missing/,
  ],
  ['an unknown key of a client', [{ name: 'A', colour: 1 }], /clients\.0.*colour/],
  ['a client without a name', [{ containers: [] }], /clients\.0\.name/],
  ['a client twice', [{ name: 'A' }, { name: 'A' }], /clients\.1: is listed twice/],
  ['a client id in a container', [{ name: 'A', containers: [shop('x', { clientId: 'y' })] }], /clientId/],
  ['no client', [], /clients: /],
])('refuses a file with %s, and does nothing', async (_what, clients, problem) => {
  const before = await names();
  const { exitCode, stderr } = await importThese(clients, '--yes');
  expect([exitCode, stderr]).toEqual([1, expect.stringMatching(problem)]);
  expect(await names()).toEqual(before);
});

test('names the line of a file that is no YAML, and a file that is missing', async () => {
  await writeFile(file, 'clients:\n  - name: "A\n');
  expect((await run()).stderr).toMatch(/import\.yaml:\d+: /);
  await rm(file);
  expect((await run()).stderr).toMatch(/can't be read/);
});
