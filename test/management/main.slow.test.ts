import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatManifest } from '../../sites/manifest/load.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../sites/repo/sites-repo.ts';
import { eventually } from '../support/eventually.ts';
import { manifestInput } from '../support/manifest.ts';

const MAIN = new URL('../../management/main.ts', import.meta.url);

let dir: string;
let env: NodeJS.ProcessEnv;
const children: ChildProcess[] = [];
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'tagyard-main-'));
  await initSitesRepo(join(dir, 'sites.git'));
  env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    MANAGEMENT_PORT: '0',
    STATE_DIR: join(dir, 'state'),
    SITES_REPO: join(dir, 'sites.git'),
    INFRA_PROVISIONER_URL: 'http://127.0.0.1:9',
    INFRA_SECRET: 'infra-s3cret',
    AUTH_JWKS_URL: 'http://127.0.0.1:9/jwks.json',
    AUTH_ISSUER: 'https://login.example.test/',
    AUTH_AUDIENCE: 'tagyard',
    AGE_RECIPIENT: await identityToRecipient(await generateIdentity()),
    EDGE_DOMAIN: 'edge.example.net',
    ORIGIN_DOMAIN: 'origin.example.net',
    TAG_SERVER_IMAGE: `sha256:${'a'.repeat(64)}`,
  };
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(dir, { recursive: true, force: true });
});

function start(extra: NodeJS.ProcessEnv = {}) {
  const child = fork(MAIN, { env: { ...env, ...extra }, silent: true });
  children.push(child);
  let errors = '';
  child.stderr?.on('data', (chunk) => {
    errors += String(chunk);
  });
  child.stdout?.resume();
  const exited = once(child, 'exit').then(([code]) => ({ code, errors }));
  return { child, exited };
}

async function ready(child: ChildProcess): Promise<string> {
  const [message] = await once(child, 'message');
  expect(message).toMatchObject({ type: 'ready', url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
  return message.url;
}

test('management reports that it is ready, keeps its database over a restart, and stops cleanly', async () => {
  for (const stop of [
    (child: ChildProcess) => child.kill('SIGTERM'),
    (child: ChildProcess) => child.disconnect(),
  ]) {
    const { child, exited } = start();
    const url = await ready(child);
    await eventually(async () => {
      const answer = await fetch(`${url}/readyz`);
      expect([answer.status, await answer.json()]).toEqual([
        200,
        {
          ...{ service: 'management', status: 'ready', database: true },
          ...{ sitesRepo: true, sitesRepoSeconds: expect.any(Number), findings: expect.any(Array) },
        },
      ]);
    });
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^tagyard_ports_free 500$/m);
    stop(child);
    expect(await exited).toEqual({ code: 0, errors: '' });
  }
});

test('management follows the configured branch, and polls a remote at the configured interval', {
  timeout: 90_000,
}, async () => {
  const bare = join(dir, 'sites.git');
  const SITES_REPO = pathToFileURL(bare).href;
  const { child } = start({ SITES_REPO, SITES_BRANCH: 'production', SITES_POLL_SECONDS: '0.1' });
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += String(chunk);
  });
  await ready(child);
  for (const branch of ['main', 'production']) {
    const repo = await openSitesRepo({ url: bare, cacheDir: dir, branch });
    const commit = (site: string) =>
      repo.commit({
        site,
        edit: () => formatManifest(manifestInput(site)),
        subject: 'By hand',
        author: { name: 'Op', email: 'op@example.test' },
        trailers: {},
      });
    if (branch === 'production') execFileSync('git', ['-C', bare, 'branch', branch, 'main']);
    await commit(`on-${branch}`);
  }
  const unknown = 'git holds a site of an unknown client';
  await eventually(() => expect(output).toMatch(new RegExp(`on-production.*${unknown}`)), {
    timeoutMs: 60_000,
  });
});

test.each<[string, () => NodeJS.ProcessEnv, RegExp]>([
  [
    'a setting is missing',
    () => ({ AUTH_AUDIENCE: '' }),
    /^management: the environment is wrong: AUTH_AUDIENCE: isn’t set\. .*\n$/,
  ],
  [
    'a setting is invalid',
    () => ({ PORT_POOL: '20-30' }),
    /^management: the environment is wrong: PORT_POOL: .*\n$/,
  ],
  [
    'the sites repo is not a repository',
    () => ({ SITES_REPO: join(dir, 'nowhere') }),
    /neither a bare git repository.*\n$/,
  ],
])('management exits with a message of one line if %s', async (_what, extra, line) => {
  const { code, errors } = await start(extra()).exited;
  expect(code).toBe(1);
  expect(errors).toMatch(line);
  expect(errors.trim().split('\n')).toHaveLength(1);
});

test('management listens on the address that the settings name', async () => {
  const { child } = start({ MANAGEMENT_ADDRESS: '127.0.0.2' });
  const [{ url }] = await once(child, 'message');
  expect(new URL(url).hostname).toBe('127.0.0.2');
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});

test('management exits with a message of one line if its port is taken', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo; // a TCP server's address is never a string
  const { code, errors } = await start({ MANAGEMENT_PORT: String(port) }).exited;
  other.close();
  expect(code).toBe(1);
  expect(errors).toMatch(
    new RegExp(
      `^management: port ${port} is taken by process ${process.pid} \\(.+\\); set MANAGEMENT_PORT to another one, or to 0\n$`,
    ),
  );
});

test('management exits with a message if its age recipient is damaged', async () => {
  const { exited } = start({ AGE_RECIPIENT: `${env.AGE_RECIPIENT?.slice(0, -4)}qqqq` });
  expect(await exited).toMatchObject({
    code: 1,
    errors: expect.stringContaining('AGE_RECIPIENT: it is damaged'),
  });
});
