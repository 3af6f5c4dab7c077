import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readEnv } from '../../../gitops/env.ts';
import { checkSettings } from '../../../gitops/host/preflight.ts';
import { healthSchema, type PartCheck } from '../../../gitops/report/report.ts';
import { readEnvironment } from '../../../management/env.ts';
import { checkEnvironment, watchSettings } from '../../../management/preflight.ts';
import { checkOf, findingOf } from '../../support/checks/findings.ts';
import { eventually } from '../../support/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../../support/instance.ts';
import { silentServer } from '../../support/silent.ts';

/** The settings of a running instance's own daemons, each finding made true by one other value, and gone with the right one. */
const home = temporaryHome();
let instance: Instance;
let host: Record<string, string>;
let management: Record<string, string>;
/** Where nothing listens. */
let dead: string;
let other: string;
beforeAll(async () => {
  instance = await startInstance(home.path, { TAGYARD_PROXY: 'embedded', TAGYARD_CONTAINERS: 'process' });
  [host, management] = [settingsOf('gitops/main.ts'), settingsOf('management/main.ts')];
  const closed = await silentServer();
  await closed.close();
  dead = `127.0.0.1:${closed.port}`;
  other = await identityToRecipient(await generateIdentity());
});
afterAll(async () => {
  await instance?.stop();
  home[Symbol.dispose]();
});

/** The variables that an instance has given to one of its daemons. */
function settingsOf(script: string): Record<string, string> {
  const children: { pid: number; script: string }[] = JSON.parse(
    readFileSync(join(home.path, 'children.json'), 'utf8'),
  );
  const { pid } = children.find((child) => child.script.endsWith(script)) ?? {};
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .map((entry): [string, string] => [entry.split('=', 1)[0] ?? '', entry.slice(entry.indexOf('=') + 1)]);
  return Object.fromEntries(entries.filter(([name, value]) => name !== '' && process.env[name] !== value));
}

type Break = () => Record<string, string>;

async function findsAndForgets(
  ask: (changes: Record<string, string>) => Promise<PartCheck[]>,
  [name, fix, fact, change]: readonly [Parameters<typeof checkOf>[1], string, RegExp, Break],
) {
  const found = checkOf(await ask(change()), name);
  expect(findingOf(found, fact)).toBe(fix);
  expect(checkOf(await ask({}), name)).toMatchObject({ status: 'passed', fix: null });
}

const asHost = async (changes: Record<string, string>) => {
  const env = { ...host, AGE_RECIPIENT: management.AGE_RECIPIENT, ...changes };
  return await checkSettings(readEnv(env), env.AGE_RECIPIENT);
};
const asManagement = async (changes: Record<string, string>) =>
  await checkEnvironment({ ...management, ...changes });

describe('of a host', () => {
  test('nothing is to fix as `npm start` sets it', async () => {
    const checks = await asHost({});
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([]);
    expect(checks.flatMap(({ name, status }) => (status === 'skipped' ? [name] : []))).toEqual(['edge']);
  });

  test.each<readonly [Parameters<typeof checkOf>[1], string, RegExp, Break]>([
    ['age_identity', 'other', /^AGE_RECIPIENT/, () => ({ AGE_RECIPIENT: other })],
    ['age_identity', 'unreadable', /ENOENT/, () => ({ AGE_IDENTITY_FILE: join(home.path, 'none') })],
    ['cloudflare_zone', 'token', /^CLOUDFLARE_API_TOKEN/, () => ({ CLOUDFLARE_API_TOKEN: 'revoked' })],
    ['cloudflare_token', 'lacks', /lacks Zone, Zone/, () => ({ CLOUDFLARE_API_TOKEN: 'revoked' })],
    ['cloudflare_zone', 'unknown', /^CLOUDFLARE_ZONE_ID/, () => ({ CLOUDFLARE_ZONE_ID: 'f'.repeat(32) })],
    ['cloudflare_zone', 'other', /^EDGE_DOMAIN/, () => ({ EDGE_DOMAIN: 'example.localhost' })],
    [
      'cloudflare_zone',
      'silent',
      /^CLOUDFLARE_API_URL/,
      () => ({ CLOUDFLARE_API_URL: `http://${dead}/client/v4` }),
    ],
    ['edge_kv', 'missing', /no KV namespace other-ROUTES/, () => ({ EDGE_SCRIPT_NAME: 'other' })],
    ['worker_bindings', 'absent', /^EDGE_SCRIPT_NAME/, () => ({ EDGE_SCRIPT_NAME: 'other' })],
    ['edge_upstream', 'silent', /^EDGE_UPSTREAM .*ECONNREFUSED/, () => ({ EDGE_UPSTREAM: `http://${dead}` })],
    ['hop_secret', 'other', /^HOP_SECRET/, () => ({ HOP_SECRET: 'another-secret-of-the-tests' })],
    ['sites_repo_rights', 'refused', /^SITES_REPO/, () => ({ SITES_REPO: join(home.path, 'none.git') })],
    ['sites_repo_rights', 'branch', /^SITES_BRANCH/, () => ({ SITES_BRANCH: 'none' })],
  ])('%s: %s', async (...row) => {
    await findsAndForgets(asHost, row);
  });

  test('an authority that can’t be reached is a finding until the setting is gone', async () => {
    const found = checkOf(await asHost({ ACME_DIRECTORY_URL: `https://${dead}/directory` }), 'acme');
    expect(findingOf(found, /^ACME_DIRECTORY_URL https.*can’t be reached/)).toBe('silent');
    expect((await asHost({})).some(({ name }) => name === 'acme')).toBe(false);
  });

  test('its own daemons hold its ports; another process on one is a finding', async () => {
    const ports = checkOf(await asHost({}), 'ports');
    expect(ports.detail).toContain(`PROVISIONER_PORT ${host.PROVISIONER_PORT} (in use by this installation)`);
    const state = join(home.path, 'other-state');
    mkdirSync(state);
    const taken = checkOf(await asHost({ STATE_DIR: state }), 'ports');
    expect(findingOf(taken, /^PROVISIONER_PORT: port \d+ is taken by process \d+/)).toBe('taken');
    const free = { PROVISIONER_PORT: '0', PROXY_HTTP_PORT: '0', PROXY_TLS_PORT: '0' };
    expect(checkOf(await asHost({ STATE_DIR: state, ...free }), 'ports')).toMatchObject({ status: 'passed' });
  });
});

describe('of management', () => {
  test('nothing is to fix as `npm start` sets it', async () => {
    const checks = await asManagement({});
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([]);
    expect(checkOf(checks, 'database')).toMatchObject({ status: 'skipped' });
  });

  test.each<readonly [Parameters<typeof checkOf>[1], string, RegExp, Break]>([
    ['provisioner', 'secret', /^INFRA_SECRET/, () => ({ INFRA_SECRET: 'wrong' })],
    ['provisioner', 'silent', /^INFRA_PROVISIONER_URL/, () => ({ INFRA_PROVISIONER_URL: `http://${dead}` })],
    ['provisioner', 'host', /^HOST_NAME: the provisioner is home/, () => ({ HOST_NAME: 'tag-9' })],
    ['provisioner', 'recipient', /^AGE_RECIPIENT/, () => ({ AGE_RECIPIENT: other })],
    [
      'verification',
      'secret',
      /^VERIFICATION_SECRET.*wrong_secret/,
      () => ({ VERIFICATION_SECRET: 'wrong' }),
    ],
    [
      'verification',
      'silent',
      /^VERIFICATION_WORKER_URL/,
      () => ({ VERIFICATION_WORKER_URL: `http://${dead}` }),
    ],
    ['sites_repo_rights', 'branch', /^SITES_BRANCH/, () => ({ SITES_BRANCH: 'none' })],
  ])('%s: %s', async (...row) => {
    await findsAndForgets(asManagement, row);
  });

  test('a stranger at the provisioner’s URL is a finding, and never gets the secret', async () => {
    const got: IncomingHttpHeaders[] = [];
    const stranger = createServer(({ headers }, response) => {
      got.push(headers);
      response.end('{}');
    });
    await new Promise<void>((done) => stranger.listen({ port: 0, host: '127.0.0.1' }, done));
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`; // it listens on TCP
    const checks = await asManagement({ INFRA_PROVISIONER_URL: url, VERIFICATION_WORKER_URL: url });
    await new Promise((done) => stranger.close(done));
    expect(findingOf(checkOf(checks, 'provisioner'), /^INFRA_PROVISIONER_URL: another server/)).toBe(
      'stranger',
    );
    expect(findingOf(checkOf(checks, 'verification'), /^VERIFICATION_WORKER_URL .*another server/)).toBe(
      'silent',
    );
    expect(got.length).toBeGreaterThan(1);
    expect(JSON.stringify(got)).not.toMatch(
      new RegExp(`${management.INFRA_SECRET}|${management.VERIFICATION_SECRET}`),
    );
  });

  test('a provisioner without INFRA_SECRET is a finding', async () => {
    const bare = createServer((_request, response) =>
      response
        .writeHead(403)
        .end('{"type":"urn:tagyard:problem:secret_not_configured","code":"secret_not_configured"}'),
    );
    await new Promise<void>((done) => bare.listen({ port: 0, host: '127.0.0.1' }, done));
    const url = `http://127.0.0.1:${(bare.address() as AddressInfo).port}`; // it listens on TCP
    const checks = await asManagement({ INFRA_PROVISIONER_URL: url });
    await new Promise((done) => bare.close(done));
    expect(findingOf(checkOf(checks, 'provisioner'), /^INFRA_SECRET: the provisioner has none/)).toBe(
      'unset',
    );
  });
});

/** Writes a file of settings, as a service reads it. */
function envFile(name: string, settings: Record<string, string>): string {
  const path = join(home.path, name);
  writeFileSync(
    path,
    Object.entries(settings)
      .map(([key, value]) => `${key}='${value}'\n`)
      .join(''),
  );
  return path;
}

const tagyard = (...args: string[]) => tagyardAt('', ...args);

/** `managementUrl`: empty for the instance's own. */
async function tagyardAt(managementUrl: string, ...args: string[]) {
  const { exitCode, stdout, stderr } = await execa(process.execPath, ['gitops/cli.ts', ...args], {
    reject: false,
    env: { TAGYARD_HOME: home.path, MANAGEMENT_URL: managementUrl },
  });
  return { exitCode, stdout: stripVTControlCharacters(stdout), stderr };
}

describe('the commands', () => {
  test('tagyard check checks each file of settings: exit code 0 if nothing is to fix, else 1', async () => {
    const files = [
      '--env-file',
      envFile('host.env', host),
      '--env-file',
      envFile('management.env', management),
    ];
    const well = await tagyard('check', ...files);
    expect(well).toMatchObject({ exitCode: 0, stderr: '' });
    expect(well.stdout).toMatch(/^\d+ checks: nothing to fix; not checked: edge, database$/m);
    const wrong = envFile('wrong.env', { ...management, INFRA_SECRET: 'wrong' });
    const { exitCode, stdout } = await tagyard('check', '--json', '--env-file', wrong);
    expect(exitCode).toBe(1);
    const { checks } = JSON.parse(stdout);
    expect(findingOf(checkOf(checks, 'provisioner'), /^INFRA_SECRET/)).toBe('secret');
  });

  test('tagyard check compares AGE_RECIPIENT of one file with the identity that another names', async () => {
    const free = { PROVISIONER_PORT: '0', PROXY_HTTP_PORT: '0', PROXY_TLS_PORT: '0' };
    const files = [
      envFile('host.env', { ...host, ...free, STATE_DIR: join(home.path, 'not-started') }),
      envFile('recipient.env', { ...management, AGE_RECIPIENT: other }),
    ];
    const { stdout } = await tagyard('check', '--json', ...files.flatMap((file) => ['--env-file', file]));
    const { checks } = JSON.parse(stdout);
    expect(findingOf(checkOf(checks, 'age_identity'), /^AGE_RECIPIENT/)).toBe('other');
  });

  test('tagyard check reads .env only where no file is named', async () => {
    const folder = join(home.path, 'folder');
    mkdirSync(folder);
    writeFileSync(join(folder, '.env'), 'AUTH_ISSUER=https://login.example\n');
    const parts = async (...args: string[]) => {
      const { stdout } = await execa(
        process.execPath,
        [resolve('gitops/cli.ts'), 'check', '--json', ...args],
        {
          reject: false,
          cwd: folder,
        },
      );
      return (JSON.parse(stdout).checks as { part: string }[]).map(({ part }) => part);
    };
    const file = envFile('x.env', { HOST_ADDRESS: 'x' });
    expect(await parts()).toEqual(['management']);
    expect(await parts('--env-file', file)).toEqual(['host']);
    expect(await parts(`--env-file=${file}`)).toEqual(['host']);
  });

  test('tagyard check names wrong settings of both parts', async () => {
    const files = [
      envFile('a.env', { ...host, HOST_ADDRESS: 'x' }),
      envFile('b.env', { ...management, SMTP_URL: 'x' }),
    ];
    const { exitCode, stdout } = await tagyard('check', ...files.flatMap((file) => ['--env-file', file]));
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(
      /^host\nfailed +settings .*HOST_ADDRESS[\s\S]*^management\nfailed +settings .*SMTP_URL/m,
    );
    expect(await tagyard('check')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('there are no settings of a host or of management to check'),
    });
  });

  test('the host tries its settings only where that is asked for: status and console wait for its answer', async () => {
    const { url, secret } = instance.run.provisioner;
    const names = async (path: string) => {
      const answer = await fetch(new URL(path, url), { headers: { 'x-secret': secret } });
      return healthSchema.parse(await answer.json()).checks.map(({ name }) => name);
    };
    const parts = await names('/health');
    expect(parts).toEqual(expect.arrayContaining(['disk', 'edge_routes', 'proxy']));
    const all = await names('/health?settings=true');
    expect(all.filter((name) => !parts.includes(name))).toEqual(
      expect.arrayContaining(['sites_repo_rights', 'cloudflare_token', 'age_identity']),
    );
  });

  test('tagyard doctor --host finds the same of the running daemons', async () => {
    const names = ({ stdout }: { stdout: string }) =>
      (JSON.parse(stdout).checks as PartCheck[]).map(({ name }) => name);
    const doctor = await tagyard('doctor', '--host', '--json');
    expect(doctor.exitCode).toBe(0);
    const check = await tagyard('check', '--json', '--env-file', envFile('host.env', host));
    // A daemon holds its ports, or hasn't started.
    expect(names(check).filter((name) => !names(doctor).includes(name))).toEqual(['ports']);
  });
});

describe('each start logs', () => {
  const summaries = (name: string) =>
    readFileSync(join(home.path, 'logs', `${name}.log`), 'utf8').match(/\d+ checks: [^"]*/g);

  test.each(['provisioner', 'management'])('what the checks of the %s have found', async (name) => {
    await eventually(() =>
      expect(summaries(name)).toEqual([expect.stringContaining('checks: nothing to fix')]),
    );
  });

  test('what has changed since, soon after a finding', async () => {
    const repo = join(home.path, 'later.git');
    const lines: string[] = [];
    const note = (_fields: object, message: string) => void lines.push(message);
    const settings = watchSettings(readEnvironment({ ...management, SITES_REPO: repo }), {
      firstMs: 0,
      wellMs: 10,
      failedMs: 10,
    });
    const rejected = [
      expect.stringMatching(/^SITES_REPO: /),
      '5 checks: to fix: sites_repo_rights; not checked: database',
    ];
    const well = ['5 checks: nothing to fix; not checked: database'];
    settings.start({ info: note, warn: note });
    try {
      await eventually(() => expect(settings.findings()).toEqual(['sites_repo_rights']));
      await execa('git', ['init', '--bare', repo]);
      await eventually(() => expect(settings.findings()).toEqual([]));
      rmSync(repo, { recursive: true });
      await eventually(() => expect(settings.findings()).toEqual(['sites_repo_rights']));
      expect(lines).toEqual([...rejected, ...well, ...rejected]);
    } finally {
      settings.stop();
    }
  });

  test('a wrong INFRA_SECRET as a warning with its fix, and management serves all the same', async () => {
    const state = join(home.path, 'second');
    const env = {
      ...process.env,
      ...management,
      INFRA_SECRET: 'wrong',
      MANAGEMENT_PORT: '0',
      STATE_DIR: state,
    };
    const second = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', 'management/main.ts'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    let log = '';
    second.stdout?.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
    try {
      const [{ url }] = (await once(second, 'message')) as [{ url: string }]; // the ready message
      await eventually(() =>
        expect(log).toMatch(/"level":40,.*INFRA_SECRET is not the provisioner’s\. Set the same/),
      );
      const doctor = await tagyardAt(url, 'doctor', '--host');
      expect(doctor).toMatchObject({ exitCode: 1 });
      expect(doctor.stdout).toMatch(/^failed +management .*its settings need a fix \(provisioner\)/m);
    } finally {
      const end = once(second, 'exit');
      second.disconnect();
      await end;
    }
    expect(existsSync(state)).toBe(true);
  });
});
