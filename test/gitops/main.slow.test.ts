import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { shownSiteSchema } from '../../gitops/report/report.ts';
import { ensureLocalCa } from '../../sites/local/local-ca.ts';
import { formatManifest } from '../../sites/manifest/load.ts';
import { encryptSecret } from '../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../sites/repo/sites-repo.ts';
import {
  EMULATOR_SCRIPT,
  EMULATOR_TOKEN,
  EMULATOR_ZONE,
  startEmulator,
  type TestEmulator,
} from '../support/cloudflare/emulator.ts';
import { eventually } from '../support/eventually.ts';
import { manifestInput } from '../support/manifest.ts';
import { containerConfig } from '../support/tag-server.ts';

const MAIN = new URL('../../gitops/main.ts', import.meta.url);
const DEADLINE = { timeoutMs: 60_000 };

let dir: string;
let emulator: TestEmulator;
let env: NodeJS.ProcessEnv;
const children: ChildProcess[] = [];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'tagyard-main-'));
  emulator = await startEmulator();
  await initSitesRepo(join(dir, 'sites.git'));
  writeFileSync(join(dir, 'identity'), await keygenFile());
  env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    TAGYARD_INSTANCE: 'wired',
    HOST_NAME: 'tag-9',
    HOST_ADDRESS: '198.51.100.9',
    SITES_REPO: join(dir, 'sites.git'),
    STATE_DIR: join(dir, 'state'),
    AGE_IDENTITY_FILE: join(dir, 'identity'),
    INFRA_SECRET: 'new-secret',
    INFRA_SECRET_PREVIOUS: 'old-secret',
    HOP_SECRET: 'a-hop-secret-of-a-test',
    PROVISIONER_PORT: '0',
    // After the start, no check unless a test triggers one.
    RECONCILE_INTERVAL_SECONDS: '3600',
    CLOUDFLARE_API_URL: emulator.url,
    CLOUDFLARE_API_TOKEN: EMULATOR_TOKEN,
    CLOUDFLARE_ACCOUNT_ID: emulator.account,
    CLOUDFLARE_ZONE_ID: emulator.zone.id,
    EDGE_DOMAIN: EMULATOR_ZONE,
    EDGE_SCRIPT_NAME: EMULATOR_SCRIPT,
    PROXY_DRIVER: 'embedded',
    PROXY_LISTEN: '127.0.0.1',
    PROXY_HTTP_PORT: '0',
    PROXY_TLS_PORT: '0',
    EDGE_UPSTREAM: 'http://127.0.0.1:9',
    LOCAL_CA_DIR: join(dir, 'ca'),
    CONTAINERS_DRIVER: 'process',
    LOG_LEVEL: 'warn',
  };
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await emulator.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

/** A key file in the format of age-keygen. */
async function keygenFile(): Promise<string> {
  const identity = await generateIdentity();
  const recipient = await identityToRecipient(identity);
  return `# created: 2026-11-22T07:00:00Z\n# public key: ${recipient}\n${identity}\n`;
}

function start(extra: NodeJS.ProcessEnv = {}) {
  const child = fork(MAIN, { env: { ...env, ...extra }, silent: true });
  children.push(child);
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  child.stdout?.resume();
  const exited = once(child, 'exit').then(([code]) => ({ code, errors }));
  const ready = async () => {
    const [message] = await Promise.race([
      once(child, 'message'),
      exited.then((end) => Promise.reject(new Error(JSON.stringify(end)))),
    ]);
    expect(message).toMatchObject({ type: 'ready' });
    const { url } = message;
    const call = async (method: 'GET' | 'POST', path: string, secret = 'new-secret') => {
      const answer = await fetch(`${url}${path}`, { method, headers: { 'x-secret': secret } });
      return { status: answer.status, text: await answer.text() };
    };
    const passes = async () =>
      Number(/^tagyard_passes_total (\d+)$/m.exec((await call('GET', '/metrics')).text)?.[1]);
    await eventually(async () => expect(await passes()).toBeGreaterThan(0), DEADLINE);
    return { call };
  };
  return { child, exited, ready };
}

/** A record that this host made for a site that git doesn't have. */
async function plantGhost(): Promise<void> {
  const comment = 'tgy1 wired tag-9 ghost 0123abcd';
  const record = { type: 'A', name: 'ghost', content: '198.51.100.9', comment };
  const { status } = await emulator.call('POST', `/zones/${emulator.zone.id}/dns_records`, record);
  expect(status).toBe(200);
}

/** A first revision, without any site. */
async function pushNothing(): Promise<void> {
  const repo = await openSitesRepo({ url: join(dir, 'sites.git'), cacheDir: dir });
  const author = { name: 'Op', email: 'op@example.test' };
  await repo.commit({ site: 'none', edit: () => null, subject: 'Begin', author, trailers: {} });
}

describe('the provisioner’s own process', () => {
  test('checks everything on SIGHUP, and stops cleanly on SIGTERM or with its parent', async () => {
    await pushNothing();
    for (const stop of [
      (child: ChildProcess) => child.kill('SIGTERM'),
      (child: ChildProcess) => child.disconnect(),
    ]) {
      const { child, exited, ready } = start();
      await ready();
      const listings = () =>
        emulator.calls.filter((call) => call === 'GET /zones/{zone_id}/dns_records').length;
      const before = listings();
      child.kill('SIGHUP');
      await eventually(() => expect(listings()).toBeGreaterThan(before), DEADLINE);
      stop(child);
      expect(await exited).toMatchObject({ code: 0 });
    }
  });

  test('does not start with a damaged age identity, and names its file', async () => {
    writeFileSync(join(dir, 'identity'), '# public key: age1\nAGE-SECRET-KEY-1DAMAGED\n');
    expect(await start().exited).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/AGE_IDENTITY_FILE .*identity: its identity 1 is damaged/),
    });
  });

  test('survives a SIGHUP during its start', async () => {
    const { child, ready } = start();
    await eventually(() => expect(existsSync(join(dir, 'state', 'lock'))).toBe(true), {
      ...DEADLINE,
      intervalMs: 1,
    });
    child.kill('SIGHUP');
    await ready();
  });

  test('accepts both secrets, and reports which removals its policy blocks', async () => {
    await pushNothing();
    await plantGhost();
    const { ready } = start({ RECONCILE_POLICY: 'upsert_only' });
    const { call } = await ready();
    expect((await call('GET', '/sites', 'old-secret')).status).toBe(200);
    expect((await call('GET', '/sites', 'no-secret')).status).toBe(401);
    const plan = JSON.parse((await call('POST', '/plan')).text);
    expect(plan.changes).toMatchObject([{ site: 'ghost', target: 'dns', op: 'delete' }]);
    expect(plan.blocked.map(({ reason }: { reason: string }) => reason)).toContain('upsert_only');
  });

  test('changes nothing while the freeze file exists, and treats another host’s things as foreign', async () => {
    await pushNothing();
    await plantGhost();
    const frozen = start();
    const { call } = await frozen.ready();
    writeFileSync(join(dir, 'state', 'freeze'), 'maintenance until noon');
    expect((await call('POST', '/plan')).text).toContain('maintenance until noon');
    frozen.child.kill('SIGTERM');
    await frozen.exited;

    const other = await start({ HOST_NAME: 'tag-8' }).ready();
    expect(JSON.parse((await other.call('POST', '/plan')).text).changes).toEqual([]);
  });

  test('names the missing files of a certificate and their folder, and serves the name once they exist', async () => {
    const ageIdentity = readFileSync(join(dir, 'identity'), 'utf8').trim().split('\n').at(-1) ?? '';
    const recipient = await identityToRecipient(ageIdentity);
    const cipher = await encryptSecret(recipient, containerConfig());
    const manifest = manifestInput('acme', 96, { host: 'tag-9', containerConfig: cipher });
    const repo = await openSitesRepo({ url: join(dir, 'sites.git'), cacheDir: dir });
    const edit = () => formatManifest(manifest);
    await repo.commit({
      site: 'acme',
      edit,
      subject: 'By hand',
      author: { name: 'Op', email: 'op@example.test' },
      trailers: {},
    });
    const tls = join(dir, 'tls');
    mkdirSync(tls);
    // Nothing is ordered, so no authority needs to answer.
    const authority = { ACME_DIRECTORY_URL: 'https://127.0.0.1:9/directory' };
    const { ready } = start({ LOCAL_CA_DIR: '', TLS_DIR: tls, LOOPBACK_SUBNET: '127.96', ...authority });
    const { call } = await ready();
    expect(JSON.parse((await call('GET', '/sites')).text)).toMatchObject({ hasAuthority: true });
    const certificate = async () => {
      const { resources } = shownSiteSchema.parse(JSON.parse((await call('GET', '/sites/acme')).text));
      return resources.find(
        ({ target, key }) => target === 'certificate' && key === 'acme-origin.example.net',
      );
    };
    const reason = expect.stringMatching(
      /^set tls to acme \(.*, or put .*acme-origin\.example\.net\.key, or .* and _\.example\.net\.key into \//,
    );
    await eventually(
      async () => expect(await certificate()).toMatchObject({ state: 'pending_certificate', reason }),
      DEADLINE,
    );
    const pair = await (await ensureLocalCa(join(dir, 'ca'))).pathsFor('*.example.net');
    copyFileSync(pair.cert, join(tls, '_.example.net.pem'));
    copyFileSync(pair.key, join(tls, '_.example.net.key'));
    await eventually(async () => {
      await call('POST', '/sync');
      expect(await certificate()).toMatchObject({ state: 'live', reason: '' });
    }, DEADLINE);
    const kept = () => readdirSync(join(dir, 'state', 'tls-served'));
    await eventually(() => expect(kept()).toHaveLength(1), DEADLINE);
  });

  test('starts while git and Docker are away, and makes its passes once git is back', async () => {
    const bare = join(dir, 'sites.git');
    renameSync(bare, `${bare}.away`);
    const { child } = start({
      ...{ SITES_REPO: pathToFileURL(bare).href, SITES_POLL_SECONDS: '0.2' },
      ...{ CONTAINERS_DRIVER: 'docker', DOCKER_HOST: `unix://${dir}/docker.sock`, CONTAINER_FIREWALL: 'off' },
    });
    const [message] = await once(child, 'message');
    const readiness = async () => {
      const answer = await fetch(`${message.url}/readyz`, { headers: { 'x-secret': 'new-secret' } });
      return await answer.json();
    };
    expect(await readiness()).toMatchObject({ revision: null });
    renameSync(`${bare}.away`, bare);
    const repo = await openSitesRepo({ url: bare, cacheDir: dir });
    const made = await repo.commit({
      site: 'acme',
      edit: () => formatManifest(manifestInput('acme', 0, { host: 'tag-9' })),
      subject: 'By hand',
      author: { name: 'Op', email: 'op@example.test' },
      trailers: {},
    });
    await eventually(
      async () => expect(await readiness()).toMatchObject({ revision: made.revision }),
      DEADLINE,
    );
  });

  test('takes its port before it starts nginx, and says who has it', async () => {
    const calls = join(dir, 'nginx-calls');
    const bin = join(dir, 'nginx');
    writeFileSync(bin, `#!/bin/sh\necho "$@" >> ${calls}\nexit 1\n`, { mode: 0o755 });
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo; // a TCP server's address is never a string
    const nginx = {
      PROXY_DRIVER: 'nginx',
      NGINX_BIN: bin,
      PROXY_HTTP_PORT: '18080',
      PROXY_TLS_PORT: '18443',
    };
    const { code, errors } = await start({ ...nginx, PROVISIONER_PORT: String(port) }).exited;
    other.close();
    expect(code).toBe(1);
    expect(errors).toMatch(
      new RegExp(
        `^provisioner: port ${port} is taken by process ${process.pid} \\(.+\\); set PROVISIONER_PORT to another one, or to 0\n$`,
      ),
    );
    expect(existsSync(calls)).toBe(false);
  });

  test.each<[string, NodeJS.ProcessEnv, string]>([
    ['an unknown drift mode', { DRIFT_MODES: 'dns=maybe' }, 'DRIFT_MODES'],
    [
      'an unknown target',
      { DRIFT_MODES: 'tape=warn' },
      'DRIFT_MODES: tape is not one of the targets network, policy, containers, proxy, kv, route, dns',
    ],
    ['an unknown policy', { RECONCILE_POLICY: 'yolo' }, 'RECONCILE_POLICY'],
    ['a rate of 0', { CLOUDFLARE_RATE: '0' }, 'CLOUDFLARE_RATE'],
    ['an empty HOP_SECRET', { HOP_SECRET: '' }, 'HOP_SECRET'],
    ['a missing identity file', { AGE_IDENTITY_FILE: '/nowhere/identity' }, '/nowhere/identity'],
    ['a missing repository', { SITES_REPO: '/nowhere/sites.git' }, '/nowhere/sites.git'],
  ])('reports %s in one line, and ends', async (_what, extra, word) => {
    const { exited } = start(extra);
    const { code, errors } = await exited;
    expect(code).toBe(1);
    expect(errors.trim().split('\n')).toHaveLength(1);
    expect(errors).toContain(word);
  });
});
