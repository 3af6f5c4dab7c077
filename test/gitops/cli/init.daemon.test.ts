import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readEnv } from '../../../gitops/env.ts';
import { readEnvironment } from '../../../management/env.ts';

const CLI = fileURLToPath(new URL('../../../gitops/cli.ts', import.meta.url));
/** Where nothing listens. */
const DEAD = 'https://127.0.0.1:9';
const ANSWERS = {
  EDGE_DOMAIN: 'example.net',
  HOST_ADDRESS: '203.0.113.7',
  HOST_NAME: 'tag-1',
  SITES_REPO: '/nowhere/sites.git',
  CLOUDFLARE_API_TOKEN: 'token with # and "quotes"',
  CLOUDFLARE_ACCOUNT_ID: '0'.repeat(32),
  CLOUDFLARE_ZONE_ID: '1'.repeat(32),
  EDGE_UPSTREAM: DEAD,
  ACME_EMAIL: 'ops@example.net',
  DATABASE: '127.0.0.1:9/tagyard',
  DATABASE_ADMIN_URL: '',
  AUTH_ISSUER: DEAD,
  AUTH_JWKS_URL: DEAD,
  SUPER_ADMINS: 'alice',
  PUBLIC_URL: '',
  provisioner: {
    CLOUDFLARE_API_URL: `${DEAD}/client/v4`,
    ACME_DIRECTORY_URL: `${DEAD}/dir`,
    DNS_RESOLVERS: '127.0.0.1:9',
    PROXY_DRIVER: 'embedded',
    CONTAINERS_DRIVER: 'process',
  },
};

let folder: string;
let etc: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tagyard-init-'));
  etc = join(folder, 'root/etc/tagyard');
  writeFileSync(join(folder, 'answers.json'), JSON.stringify(ANSWERS));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function init(...args: string[]) {
  const run = ['init', '--yes', '--root', join(folder, 'root'), ...args];
  const { all } = await execa(process.execPath, [CLI, ...run], {
    reject: false,
    all: true,
    cwd: folder,
    stdin: 'ignore',
  });
  return all;
}
const withFile = () => init('--answers', join(folder, 'answers.json'));
const read = (name: string) => readFileSync(join(etc, name), 'utf8');
/** Each file with its content and the time of its last change. */
const everything = () =>
  readdirSync(join(folder, 'root'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [path, statSync(path).mtimeMs, readFileSync(path, 'utf8')]);

test('writes what both daemons accept, with secrets that only the owner reads, and ends with the check', async () => {
  const printed = await withFile();
  expect(printed).toMatch(/^host$.*cloudflare_zone.*^management$.*database/ms);
  const host = readEnv(parseEnv(read('provisioner.env')));
  const management = readEnvironment(parseEnv(read('management.env')));
  expect(host).toMatchObject({
    CLOUDFLARE_API_TOKEN: ANSWERS.CLOUDFLARE_API_TOKEN,
    ...ANSWERS.provisioner,
    DNS_RESOLVERS: ['127.0.0.1:9'],
  });
  expect(management.INFRA_SECRET).toBe(host.INFRA_SECRET);
  expect(parseEnv(read('management.env')).DEFAULT_CONSENT).toBe('required');
  for (const name of readdirSync(etc))
    expect([name, statSync(join(etc, name)).mode & 0o777]).toEqual([name, 0o600]);
  for (const name of ['provisioner.env', 'management.env']) {
    expect(read(name).match(/^[A-Z].*=/gm)?.length).toBeLessThanOrEqual(25);
  }
  // The passwords of the roles are those of the URLs.
  expect(read('database.sql')).toContain(new URL(management.DATABASE_URL ?? '').password);
});

test('twice is the same as once, also without the file of answers', async () => {
  await withFile();
  const once = everything();
  expect(await withFile()).not.toMatch(/is (written|replaced)|differs/);
  expect(await init()).not.toMatch(/is (written|replaced)|differs/);
  expect(everything()).toEqual(once);
});

test('goes on after an interruption with the same secrets', async () => {
  await withFile();
  const before = parseEnv(read('provisioner.env'));
  const units = readdirSync(join(folder, 'root/etc/systemd/system'));
  rmSync(join(folder, 'root/etc/systemd'), { recursive: true });
  for (const name of ['management.env', 'database.sql']) rmSync(join(etc, name));
  await withFile();
  expect(parseEnv(read('management.env')).INFRA_SECRET).toBe(before.INFRA_SECRET);
  expect(parseEnv(read('provisioner.env'))).toEqual(before);
  expect(readdirSync(join(folder, 'root/etc/systemd/system'))).toEqual(units);
});

test('keeps what a person changed: shows the difference without secrets', async () => {
  await withFile();
  const [unit, settings] = [
    join(folder, 'root/etc/systemd/system/tagyard-management.service'),
    join(etc, 'management.env'),
  ];
  writeFileSync(unit, `${readFileSync(unit, 'utf8')}# mine\n`);
  writeFileSync(settings, `${read('management.env')}LOG_LEVEL=warn\n`);
  const before = everything();
  const printed = await withFile();
  expect(printed).toMatch(/tagyard-management\.service differs.*- # mine.*stays as it is/s);
  expect(printed).toContain(`${settings} is as it should be`);
  expect(everything()).toEqual(before);

  const { INFRA_SECRET: secret = '' } = parseEnv(read('provisioner.env'));
  const token = { ...ANSWERS, CLOUDFLARE_API_TOKEN: 'another-token' };
  writeFileSync(join(folder, 'answers.json'), JSON.stringify(token));
  const other = await init('--answers', join(folder, 'answers.json'), '--set', 'HOST_NAME=tag-2');
  expect(other).toMatch(/- HOST_NAME='tag-1'.*\+ HOST_NAME='tag-2'/s);
  expect(other).not.toMatch(new RegExp(`another-token|${secret}`));
  expect(everything()).toEqual(before);
});
