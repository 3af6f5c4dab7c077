import { afterAll, beforeAll, expect, test } from 'vitest';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { creation, World } from '../../support/management/world.ts';

let world: World;
let env: Record<string, string>;
const sites: string[] = [];
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  const client = await world.client();
  for (const domain of ['one.example', 'two.example']) {
    const body = creation(client, domain, { name: domain });
    const made = await world.call('POST', '/server-containers', { as: 'owner', body });
    sites.push(made.body.siteId);
    await reaches(made.body.id, 'serving');
    if (domain === 'two.example') continue;
    world.provisioner.sites.set(made.body.siteId, { reason: 'Failed', message: 'exited with 1' });
    await reaches(made.body.id, 'failing');
    world.provisioner.sites.set(made.body.siteId, { reason: 'Ready', message: '' });
    await reaches(made.body.id, 'serving');
  }
  env = { MANAGEMENT_URL: await world.listen(), TAGYARD_TOKEN: await world.issuer.token('owner') };
});
afterAll(() => world.close());

const reaches = (id: string, state: string) =>
  eventually(async () => {
    const { body } = await world.call('GET', `/server-containers/${id}`, { as: 'owner' });
    expect(body.state.name).toBe(state);
  });
const events = (...args: string[]) => tagyardHere('', ['events', ...args], env);

test('a failure is shown with its time, its reason, and how long it lasted', async () => {
  const [site = ''] = sites;
  const { exitCode, stdout } = await events(site, '--kind', 'state');
  expect(exitCode).toBe(0);
  const rows = stdout.split('\n').slice(1);
  expect(rows.slice(-2)).toEqual([
    expect.stringMatching(new RegExp(`^\\d{4}-\\d\\d-\\d\\d [\\d:]{8}  ${site} +failing .*exited with 1`)),
    expect.stringMatching(new RegExp(`${site} +serving +was failing for \\d+ s`)),
  ]);
});

test('without a site, all sites of the caller are shown, as JSON too', async () => {
  const { stdout } = await events('--json');
  const shown: { site: string; at: string }[] = JSON.parse(stdout).events;
  expect(new Set(shown.map(({ site }) => site))).toEqual(new Set(sites));
  expect(shown.map(({ at }) => at)).toEqual(shown.map(({ at }) => at).sort());
});

test.each([
  [['nobody'], {}, 1, 'there is no site nobody'],
  [['--since', 'often'], {}, 64, '--since often'],
  [[], { MANAGEMENT_URL: '', TAGYARD_HOME: '/nonexistent' }, 1, 'set MANAGEMENT_URL and TAGYARD_TOKEN'],
])('%j with %j is refused with a reason', async (args, more, code, words) => {
  const { exitCode, stderr } = await tagyardHere('', ['events', ...args], { ...env, ...more });
  expect([exitCode, stderr]).toEqual([code, expect.stringContaining(words)]);
});

test('a time that is past shows nothing', async () => {
  const { stdout } = await events('--since', '0s');
  expect(stdout).toBe('no events in this time');
});
