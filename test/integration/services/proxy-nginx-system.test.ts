import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import getPort from 'get-port';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { runningMaster, stopNginx } from '../../../gitops/appliers/proxy/nginx/process.ts';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import { containerSpecs } from '../../../sites/manifest/containers.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';
import { NGINX, NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { ask, proxyHome, put } from '../../support/proxy/proxy.ts';
import { startUpstream } from '../../support/upstream.ts';

const CLI = fileURLToPath(new URL('../../../gitops/cli.ts', import.meta.url));
const TIMEOUT = { timeoutMs: 60_000, intervalMs: 200 };

describeWith('nginx', 'the system’s nginx', () => {
  let home: Awaited<ReturnType<typeof proxyHome>>;
  let upstream: Awaited<ReturnType<typeof startUpstream>>;
  let settings: NginxSettings;
  let system: string;
  let config: string;
  let operatorPort: number;
  let cleanups: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    home = await proxyHome();
    upstream = await startUpstream();
    system = join(home.directory, 'system');
    config = join(system, 'nginx.conf');
    operatorPort = await getPort({ host: '127.0.0.1' });
    await mkdir(join(system, 'temp'), { recursive: true });
    settings = {
      ...home.settings,
      edgeUpstream: { scheme: 'http', address: upstream.address, port: upstream.port },
      ...NGINX_SETTINGS,
      systemConfig: config,
      reloadTimeoutMs: 10_000,
    };
    cleanups = [() => upstream.close(), () => home.remove(), () => stopNginx(system)];
    await writeConfig('');
  });
  afterEach(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });

  /** The configuration of a distribution with a site of the operator's own. Adds `more` to the http block. */
  async function writeConfig(more: string): Promise<void> {
    const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${system}/temp/${name};`,
    );
    await writeFile(
      config,
      `worker_processes 1; pid ${system}/nginx.pid; error_log ${system}/error.log;
      events { worker_connections 768; }
      http {
        sendfile on; server_tokens off; ssl_protocols TLSv1.2 TLSv1.3; access_log ${system}/access.log;
        server_names_hash_bucket_size 128; client_max_body_size 1k; merge_slashes on; ${temp.join(' ')}
        server { listen 127.0.0.1:${operatorPort}; server_name operator.example; return 200 operator; }
        ${more}
      }`,
    );
  }
  async function startSystem(): Promise<void> {
    spawn(NGINX, ['-p', system, '-e', 'stderr', '-c', config, '-g', 'daemon on;'], { stdio: 'ignore' });
    await eventually(async () => expect(await operator()).toBe('operator'));
  }
  async function start() {
    const backend = nginxBackend(settings);
    cleanups.push(() => backend.close());
    await backend.start();
    return backend;
  }
  const operator = async () =>
    await (await fetch(`http://127.0.0.1:${operatorPort}/`, { headers: { connection: 'close' } })).text();
  const custom = (site: string, host = `tags.${site}.example`): ProxySpec => ({
    site,
    vhosts: [{ kind: 'custom', host, edgeHost: `${site}.example.net` }],
  });
  const includeLine = () => `include ${settings.prefix}/current/*/*.conf;`;

  test('is configured by one line, which is reported until it is there, and serves the sites beside its own', async () => {
    await startSystem();
    const before = await readFile(config, 'utf8');
    const backend = await start();
    await expect(backend.install([put('acme', custom('acme'))])).rejects.toThrow(
      `add to its http block the line "${includeLine()}"`,
    );
    expect(await readFile(config, 'utf8')).toBe(before);

    await writeConfig(includeLine());
    expect(await backend.install([put('acme', custom('acme'))])).toEqual([
      { status: 'fulfilled', value: { changed: true } },
    ]);
    // Our request settings apply to our names only: the operator's would merge these slashes and refuse this body.
    const asked = { host: 'tags.acme.example', path: '/g//collect', method: 'POST', body: 'x'.repeat(5_000) };
    const { status, body } = await ask(backend.endpoint(), asked);
    expect([status, JSON.parse(body).url, JSON.parse(body).bodyBytes]).toEqual([200, '/g//collect', 5_000]);
    expect(await operator()).toBe('operator');
    const installed = await backend.installed();
    expect(installed.map(({ key, intact }) => [key, intact])).toEqual([['acme', true]]);
    expect(await readFile(join(settings.prefix, 'logs', 'sites', 'acme.log'), 'utf8')).toContain(
      '/g//collect',
    );

    await backend.close();
    expect((await ask(backend.endpoint(), { host: 'tags.acme.example' })).status).toBe(200);
  });

  test('takes over from the provisioner’s own nginx, which ends', async () => {
    const { systemConfig: _, ...alone } = settings;
    const own = nginxBackend(alone);
    cleanups.push(() => own.close());
    const endpoint = await own.start();
    await own.install([put('acme', custom('acme'))]);
    await own.close();
    await startSystem();
    await writeConfig(includeLine());
    const backend = await start();
    expect(await runningMaster(settings.prefix)).toBeNull();
    await backend.install([put('acme', custom('acme')), put('beta', custom('beta'))]);
    expect(backend.endpoint()).toEqual(endpoint);
    expect((await ask(endpoint, { host: 'tags.acme.example' })).status).toBe(200);
  });

  test('is reported by doctor with the line to add; with that line added, doctor reports no problem', async () => {
    await startSystem();
    const backend = await start();
    const containers = { slots: new Slots('127.77'), originPort: 443 };
    const { identity, certificates } = settings;
    const applier = proxyApplier({ backend, identity, containers, certificates, probeTimeoutMs: 60_000 });
    const daemon = await memoryDaemon({}, [applier as never]); // an applier gets only its own changes
    cleanups.push(() => daemon.close());
    const manifest = daemon.manifest('acme', 1);
    const loaded = { ...manifestSchema.parse(manifest), config: new Secret(daemon.config) };
    for (const { address, port } of containerSpecs(loaded, containers)) {
      const one = await startUpstream({ address, port });
      cleanups.push(() => one.close());
    }
    const provisioner = await daemon.app.listen({ host: '127.0.0.1', port: 0 });
    const doctor = () =>
      execa(process.execPath, [CLI, 'doctor'], {
        reject: false,
        env: { INFRA_PROVISIONER_URL: provisioner, INFRA_SECRET: SECRET },
      });
    await daemon.push('acme', manifest);
    // While a retry runs, doctor doesn't report the line for a moment.
    const line = await eventually(async () => {
      const { stdout, exitCode } = await doctor();
      expect(exitCode).toBe(1);
      const line = /add to its http block the line "(.*)"$/m.exec(stdout)?.[1];
      expect(line).toBe(includeLine());
      return line ?? '';
    }, TIMEOUT);
    await writeConfig(line);
    await eventually(() => expect(daemon.loop.status('acme')).toMatchObject({ ready: true }), TIMEOUT);
    expect(await doctor()).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^1 of 1 site is/m),
    });
    expect(
      (await ask(backend.endpoint(), { host: 'acme-origin.example.net', path: '/healthz' })).status,
    ).toBe(200);
  });

  test('excludes a site that claims one of the operator’s names, and no other', async () => {
    await writeConfig('');
    await startSystem();
    const backend = await start();
    await writeConfig(includeLine());
    await backend.install([put('acme', custom('acme'))]);
    const { httpPort } = backend.endpoint();
    await writeConfig(
      `${includeLine()} server { listen 127.0.0.1:${httpPort}; server_name tags.taken.example; return 200 operator; }`,
    );
    expect(await backend.install([put('taken', custom('taken')), put('beta', custom('beta'))])).toEqual([
      {
        status: 'rejected',
        reason: expect.objectContaining({
          message: expect.stringContaining('conflicting server name "tags.taken.example" between'),
        }),
      },
      { status: 'fulfilled', value: { changed: true } },
    ]);
    const installed = await backend.installed();
    expect(installed.map(({ key, intact }) => [key, intact])).toEqual([
      ['acme', true],
      ['beta', true],
    ]);
    expect((await ask(backend.endpoint(), { host: 'tags.acme.example' })).status).toBe(200);
    expect(await operator()).toBe('operator');
  });

  test('excludes a site whose name is too long for the operator’s settings, and no other', async () => {
    await startSystem();
    const backend = await start();
    await writeConfig(includeLine());
    await backend.install([put('acme', custom('acme'))]);
    const label = 'x'.repeat(55);
    const long = `${label}.${label}.example`;
    expect(await backend.install([put('long', custom('long', long)), put('beta', custom('beta'))])).toEqual([
      {
        status: 'rejected',
        reason: expect.objectContaining({
          message: `${config} allows names of at most 110 characters: set server_names_hash_bucket_size 512 in its http block`,
        }),
      },
      { status: 'fulfilled', value: { changed: true } },
    ]);
    const edge = `${'x'.repeat(55)}.${'x'.repeat(46)}.example`;
    expect(edge).toHaveLength(110);
    expect(await backend.install([put('edge', custom('edge', edge))])).toEqual([
      { status: 'fulfilled', value: { changed: true } },
    ]);
    expect((await ask(backend.endpoint(), { host: edge })).status).toBe(200);
  });

  test('ignores the operator’s own conflicts; one with a site’s name blocks only that site', async () => {
    await startSystem();
    const backend = await start();
    await writeConfig(includeLine());
    await backend.install([put('acme', custom('acme'))]);
    const { httpPort } = backend.endpoint();
    const server = (name: string) =>
      `server { listen 127.0.0.1:${httpPort}; server_name ${name}; return 200 operator; }`;
    const own = [server('own.example'), server('own.example')];
    // The operator's file is newer than the site, and claims its name.
    await writeConfig([includeLine(), ...own, server('tags.acme.example')].join(' '));
    const done = { status: 'fulfilled', value: { changed: true } };
    expect(await backend.install([put('beta', custom('beta'))])).toEqual([done]);

    const { vhosts } = custom('acme');
    const grown = { site: 'acme', vhosts: [...vhosts, ...custom('acme', 'more.acme.example').vhosts] };
    expect(await backend.install([put('acme', grown), put('gamma', custom('gamma'))])).toEqual([
      {
        status: 'rejected',
        reason: expect.objectContaining({ message: expect.stringContaining('"tags.acme.example" between') }),
      },
      done,
    ]);
    const installed = await backend.installed();
    expect(installed.map(({ key, intact }) => [key, intact])).toEqual([
      ['acme', true],
      ['beta', true],
      ['gamma', true],
    ]);
    expect((await ask(backend.endpoint(), { host: 'tags.gamma.example' })).status).toBe(200);
  });

  test('keeps few generations, also after many rollbacks', async () => {
    await startSystem();
    const backend = await start();
    await writeConfig(includeLine());
    await backend.install([put('acme', custom('acme'))]);
    const { httpPort } = backend.endpoint();
    await writeConfig(
      `${includeLine()} server { listen 127.0.0.1:${httpPort}; server_name tags.taken.example; return 200 operator; }`,
    );
    for (let times = 0; times < 5; times += 1) await backend.install([put('taken', custom('taken'))]);
    const kept = (await readdir(settings.prefix)).filter((name) => name.startsWith('sites.'));
    expect(kept.length).toBeLessThanOrEqual(3);
  });

  test('is never started by the backend, which says so', async () => {
    const backend = await start();
    await writeConfig(includeLine());
    await expect(backend.install([put('acme', custom('acme'))])).rejects.toThrow('isn’t running');
  });
});
