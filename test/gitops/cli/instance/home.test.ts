import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Home } from '../../../../gitops/cli/instance/home.ts';
import { CliError } from '../../../../gitops/cli/output/cli-error.ts';

let folder: string;
let home: Home;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tagyard-home-'));
  home = new Home(join(folder, 'nested', 'home'));
  await home.prepare();
});
afterEach(() => rm(folder, { recursive: true }));

test('a home is created with its logs, for its owner only', async () => {
  expect((await stat(home.path)).mode & 0o777).toBe(0o700);
  expect((await stat(home.at('logs'))).isDirectory()).toBe(true);
});

test('the first call creates the instance, later ones read it', async () => {
  const instance = await home.instance();
  expect(await home.instance()).toEqual(instance);
  expect(await new Home(home.path).instance()).toEqual(instance);
});

test('two homes differ in every secret', async () => {
  const other = new Home(join(folder, 'other'));
  await other.prepare();
  const [one, two] = [await home.instance(), await other.instance()];
  for (const name of [
    'instance',
    'infraSecret',
    'hopSecret',
    'verificationSecret',
    'ingestSecret',
    'forwarderKey',
    'cloudflareToken',
  ] as const) {
    expect(one[name]).not.toBe(two[name]);
  }
});

test('no instance has the loopback subnet of a provisioner that runs beside it, by default 127.77', async () => {
  const subnets = await Promise.all(
    Array.from({ length: 20 }, async (_, number) => {
      const one = new Home(join(folder, `home-${number}`));
      await one.prepare();
      return (await one.instance()).loopbackSubnet;
    }),
  );
  expect(subnets.filter((subnet) => Number(subnet.split('.')[1]) < 100)).toEqual([]);
});

test.each(['verificationSecret', 'forwarderKey', 'ingestSecret'])(
  'an instance of an older release gets a %s',
  async (name) => {
    const { [name]: _removed, ...older } = { ...(await home.instance()) } as Record<string, unknown>;
    await writeFile(home.at('instance.json'), JSON.stringify(older));
    expect(await home.instance()).toMatchObject({ [name]: expect.stringMatching(/^[\w-]{32}$/) });
  },
);

test.each(['{', '{}', '[]', ''])('a damaged file is an error and stays as it is: %j', async (text) => {
  await writeFile(home.at('instance.json'), text);
  await expect(home.instance()).rejects.toThrow(/instance\.json is damaged; restore it from a backup/);
  expect(await readFile(home.at('instance.json'), 'utf8')).toBe(text);
});

test('a path below a file can’t be a home', async () => {
  await writeFile(join(folder, 'file'), '');
  await expect(new Home(join(folder, 'file', 'home')).prepare()).rejects.toThrow(CliError);
});
