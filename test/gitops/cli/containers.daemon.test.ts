import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TerminalError } from '../../../base/errors.ts';
import { tagyardOf } from '../../support/cli/command.ts';
import type { MemoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { provisionedWorld } from '../../support/management/provisioned.ts';
import { creation, type World } from '../../support/management/world.ts';

let world: World;
let daemon: MemoryDaemon;
let close: () => Promise<void>;
let url: string;
let env: Record<string, string>;
let client: string;
beforeAll(async () => {
  ({ world, daemon, close } = await provisionedWorld({ logLevel: 'silent' }));
  url = await world.listen();
  client = await world.client();
  env = { MANAGEMENT_URL: url, TAGYARD_TOKEN: await world.issuer.token('owner') };
});
afterAll(() => close());

const tagyard = async (...args: string[]) =>
  await tagyardOf(daemon.app.listeningOrigin)(args, { FORCE_COLOR: '0', ...env });
const config = String(creation('').containerConfigB64);
const create = async (...args: string[]) => await tagyard('create', ...args, '--config', config);

describe('tagyard create', () => {
  test('shows what would be committed, then creates it for the only client', async () => {
    const asked = ['Müller Shop', '--domain', 'müller.example=GTM-ABC1234', '--site-id', 'mueller'];
    const planned = await create(...asked, '--plan');
    expect(planned).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('mueller') });
    expect((await tagyard('list', '--json')).stdout).toBe('[]');
    expect(await create(...asked)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^mueller: .*\n {2}tagyard status mueller\n/),
    });
    await daemon.reaches('mueller', 'Ready');
    const read = (await world.call('GET', '/server-containers', { as: 'owner' })).body;
    expect(read.containers).toMatchObject([
      { siteId: 'mueller', client, domains: [{ domain: 'xn--mller-kva.example', webTagId: 'GTM-ABC1234' }] },
    ]);
  });

  test('says which fields the API refuses', async () => {
    const { exitCode, stderr } = await create('Shop', '--domain', 'shop.example=nonsense');
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^tagyard: POST \/server-containers: 400 .*webTagIds/);
  });

  test.each([
    [['Shop', '--domain', 'shop.example'], /give it as <domain>=<web tag id>/],
    [['Shop', '--domain', 'shop.example=GTM-ABC1234', '--consent', 'never'], /Allowed choices are opt_out/],
    [['--domain', 'shop.example=GTM-ABC1234'], /missing required argument 'name'/],
  ])('exits with 64 for %j', async (args, said) => {
    expect(await create(...args)).toMatchObject({
      exitCode: 64,
      stdout: '',
      stderr: expect.stringMatching(said),
    });
  });
});

describe('tagyard list', () => {
  test('prints what needs something first, domains in Unicode, and filters', async () => {
    daemon.control.fault = (target, at) =>
      target === 'containers' && at !== 'observe'
        ? new TerminalError('the configuration is refused', { isOfSite: true })
        : undefined;
    await create('Broken', '--domain', 'broken.example=GTM-ABC1234', '--site-id', 'zz-broken');
    await daemon.reaches('zz-broken', 'Removed');
    daemon.control.fault = () => undefined;
    await expect
      .poll(async () => (await tagyard('list')).stdout, { timeout: 20_000 })
      .toMatch(/^site .*\nzz-broken .*failing .*\nmueller +Müller Shop +müller\.example +serving/);
    const failing = await tagyard('list', '--state', 'failing,change_refused', '--names');
    expect(failing).toMatchObject({ exitCode: 0, stdout: 'zz-broken' });
    expect((await tagyard('list', '--search', 'müller', '--names')).stdout).toBe('mueller');
    const status = await tagyard('status');
    expect(status.stdout).toMatch(/^2 sites: 1 failing, 1 serving\n\nsite .*\nzz-broken .*\nmueller /);
    expect((await tagyard('status', '--state', 'serving')).stdout).toMatch(
      /^1 site: 1 serving\n\nsite .*\nmueller /,
    );
  });

  test('exits with 64 for a state that there isn’t', async () => {
    expect(await tagyard('list', '--state', 'broken')).toMatchObject({
      exitCode: 64,
      stderr: expect.stringMatching(/^tagyard: --state broken: give one of removed, off, failing/),
    });
  });
});

test('tagyard open prints the address of a container’s page, or says that there is none', async () => {
  const [found] = (await world.call('GET', '/server-containers?q=mueller', { as: 'owner' })).body.containers;
  expect(await tagyard('open', 'mueller')).toMatchObject({
    exitCode: 0,
    stdout: `${url}/console/containers/${found.id}`,
  });
  expect((await tagyard('open')).stdout).toBe(`${url}/console`);
  expect(await tagyard('open', 'nosuch')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('there is no site nosuch'),
  });
});
