import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxyBackend } from '../../../gitops/appliers/proxy/backend.ts';
import type { CertificateSource } from '../../../gitops/appliers/proxy/certificates.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { runningMaster, stopNginx, workersOf } from '../../../gitops/appliers/proxy/nginx/process.ts';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import { OperatorFiles } from '../../../gitops/certificates/operator-files.ts';
import { containerSpecs } from '../../../sites/manifest/containers.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { ask, IDENTITY, plainFiles, proxyHome, put } from '../../support/proxy/proxy.ts';
import { signal as sendSignal } from '../../support/signal.ts';
import { startLoad } from '../../support/steady-load.ts';
import { startUpstream } from '../../support/upstream.ts';

describeWith('nginx', 'Tagyard’s own nginx', () => {
  const { signal } = new AbortController();
  let home: Awaited<ReturnType<typeof proxyHome>>;
  let edge: Awaited<ReturnType<typeof startUpstream>>;
  let settings: NginxSettings;
  let cleanups: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    home = await proxyHome();
    edge = await startUpstream({ name: 'edge' });
    const edgeUpstream = { scheme: 'http', address: edge.address, port: edge.port } as const;
    settings = { ...home.settings, edgeUpstream, ...NGINX_SETTINGS, reloadTimeoutMs: 3_000 };
    cleanups = [() => edge.close(), () => home.remove()];
  });
  afterEach(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });

  async function start(overrides: Partial<NginxSettings> = {}) {
    const backend = nginxBackend({ ...settings, ...overrides });
    cleanups.push(() => backend.close());
    return { backend, endpoint: await backend.start() };
  }

  const custom = (site: string): ProxySpec => ({
    site,
    vhosts: [{ kind: 'custom', host: `tags.${site}.example`, edgeHost: `${site}.example.net` }],
  });
  const install = async (backend: ProxyBackend, ...sites: string[]) =>
    await backend.install(sites.map((site) => put(`${site}/tags.${site}.example`, custom(site))));
  const serves = async (backend: ProxyBackend, site: string) => {
    const { status } = await ask(backend.endpoint(), { host: `tags.${site}.example`, servername: null });
    expect(status).toBe(200);
  };
  const master = async () => {
    const pid = await runningMaster(settings.prefix);
    if (pid === null) throw new Error('nginx does not run');
    return pid;
  };
  /** A site with its origin, whose upstream answers. */
  const origin = async (backend: ProxyBackend, site: string) => {
    const upstream = await startUpstream();
    cleanups.push(() => upstream.close());
    const { address, port } = upstream;
    const host = `${site}-origin.example.net`;
    const spec: ProxySpec = { site, vhosts: [{ kind: 'origin', host, upstreams: [{ address, port }] }] };
    return { endpoint: backend.endpoint(), change: put(site, spec) };
  };
  const current = () => readlink(join(settings.prefix, 'current'));
  const intact = async (backend: ProxyBackend) =>
    Object.fromEntries((await backend.installed()).map(({ key, intact }) => [key, intact]));

  test('does not reload for an unchanged configuration', async () => {
    const { backend } = await start();
    await install(backend, 'acme');
    const workers = await workersOf(await master());
    const generation = await current();
    expect(await install(backend, 'acme')).toEqual([{ status: 'fulfilled', value: { changed: false } }]);
    // There is no new worker. One that the first installation replaced may have ended meanwhile.
    expect(workers).toEqual(expect.arrayContaining(await workersOf(await master())));
    expect(await current()).toBe(generation);
  });

  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'loses none of 200 requests a second when the provisioner ends by %s, and is adopted by the next one',
    async (ending) => {
      const { backend: first } = await start();
      const { endpoint, change } = await origin(first, 'acme');
      await first.install([change]);
      await first.close();
      const pid = await master();
      const workers = await workersOf(pid);
      const entry = fileURLToPath(new URL('../../support/proxy/nginx-daemon.ts', import.meta.url));
      const json = JSON.stringify({ ...settings, certificates: undefined });
      const own = () =>
        spawn(process.execPath, [entry, json, join(home.directory, 'ca')], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
      const load = startLoad(endpoint, 'acme-origin.example.net', { perSecond: 200 });
      for (let restarts = 0; restarts < 2; restarts += 1) {
        const owner = own();
        await once(owner.stdout, 'data');
        owner.kill(ending);
        await once(owner, 'exit');
      }
      const { backend, endpoint: adopted } = await start();
      const report = await load.end();
      expect(report.failures).toEqual([]);
      expect(report.sent).toBeGreaterThan(0);
      expect(adopted).toEqual(endpoint);
      // Nothing was started or reloaded.
      expect(await master()).toBe(pid);
      // A worker that the first installation replaced may have ended meanwhile.
      expect(workers).toEqual(expect.arrayContaining(await workersOf(pid)));
      expect(await intact(backend)).toEqual({ acme: true });
      await install(backend, 'beta');
      expect(await master()).toBe(pid);
      await serves(backend, 'beta');
    },
  );

  test('ends when the embedded proxy takes over its ports', async () => {
    const { backend, endpoint } = await start();
    const { change } = await origin(backend, 'acme');
    await backend.install([change]);
    await backend.close();
    const embedded = embeddedBackend(settings);
    cleanups.push(() => embedded.close());
    expect(endpoint).toMatchObject(await embedded.start());
    await embedded.install([change]);
    const { headers } = await ask(endpoint, { host: 'acme-origin.example.net' });
    expect([headers.server, headers['x-upstream']]).toEqual([undefined, 'upstream']);
    expect(await runningMaster(settings.prefix)).toBeNull();
  });

  test.each(['the process that started it', 'a process that adopted it'])(
    'is started again after it was killed, and %s notices the loss',
    async (who) => {
      let { backend } = await start();
      await install(backend, 'acme');
      if (who === 'a process that adopted it') {
        await backend.close();
        ({ backend } = await start());
      }
      const event = backend.events(AbortSignal.timeout(15_000))[Symbol.asyncIterator]().next();
      sendSignal(await master(), 'SIGKILL', settings.prefix);
      expect(await event).toEqual({ done: false, value: undefined });
      // No site counts as repaired: three repairs in ten minutes would be a repair loop. A site also counts as intact
      // while nginx starts.
      await eventually(async () => expect(await intact(backend)).toEqual({ 'acme/tags.acme.example': true }));
      await eventually(() => serves(backend, 'acme'));
      expect(await install(backend, 'acme')).toEqual([{ status: 'fulfilled', value: { changed: false } }]);
    },
  );

  test('serves at once after a restart of the machine, on the same ports', async () => {
    const first = await start();
    await install(first.backend, 'acme');
    await first.backend.close();
    await stopNginx(settings.prefix);
    const second = await start();
    expect(second.endpoint).toEqual(first.endpoint);
    await serves(second.backend, 'acme');
  });

  test('reports files as outdated, not edited, if a newer release or setting writes other ones', async () => {
    const first = await start();
    await install(first.backend, 'acme', 'beta');
    const [acme] = await first.backend.installed();
    await first.backend.close();
    // A new upstream of custom domains changes each of their files, as a new template does.
    const { backend } = await start({ edgeUpstream: { scheme: 'http', address: '127.0.0.9', port: 9 } });
    const states = async () => (await backend.installed()).map(({ intact, outdated }) => [intact, outdated]);
    expect(await states()).toEqual([
      [false, true],
      [false, true],
    ]);
    const path = (await backend.installed()).find(({ key }) => key === acme?.key)?.path ?? '';
    await writeFile(path, (await readFile(path, 'utf8')).replace('return 421', 'return 200'));
    expect(await states()).toEqual([
      [false, false],
      [false, true],
    ]);
  });

  test('isolates one bad vhost among many: its site keeps its last file', async () => {
    const tls = join(home.directory, 'ca');
    const sites = Array.from({ length: 24 }, (_, index) => `site-${index}`);
    for (const site of sites) await home.ca.pathsFor(`tags.${site}.example`);
    const checked = await OperatorFiles.open({
      directory: tls,
      keptIn: join(home.directory, 'kept'),
      hasAuthority: false,
    });
    const bad = { cert: join(tls, 'new.site-7.example.pem'), key: join(tls, 'new.site-7.example.key') };
    // nginx can refuse what our own check accepts.
    const certificates: CertificateSource = {
      pathsFor: async (host) => (host === 'new.site-7.example' ? bad : await checked.pathsFor(host)),
      retain: async () => undefined,
    };
    const { backend } = await start({ certificates });
    await install(backend, 'site-7');

    const changed: ProxySpec = {
      site: 'site-7',
      vhosts: [{ kind: 'custom', host: 'new.site-7.example', edgeHost: 'site-7.example.net' }],
    };
    await writeFile(bad.cert, 'no certificate');
    await writeFile(bad.key, 'no key');
    await rm(join(tls, 'tags.site-9.example.key'));
    const outcomes = await backend.install(
      sites.map((site) => put(`${site}/tags.${site}.example`, site === 'site-7' ? changed : custom(site))),
    );
    const failed = outcomes.flatMap((outcome, index) =>
      outcome.status === 'rejected' ? [[sites[index], String(outcome.reason)]] : [],
    );
    expect(failed).toEqual([
      ['site-7', expect.stringContaining('nginx refuses it: cannot load certificate')],
      ['site-9', expect.stringContaining('tags.site-9.example.key is missing')],
    ]);
    for (const site of sites.filter((name) => name !== 'site-9')) await serves(backend, site);
  });

  test('starts without the site whose certificate is missing, and reports it', async () => {
    const tls = join(home.directory, 'ca');
    for (const site of ['acme', 'beta']) await home.ca.pathsFor(`tags.${site}.example`);
    const certificates = plainFiles(tls);
    const first = await start({ certificates });
    await install(first.backend, 'acme', 'beta');
    await first.backend.close();
    await stopNginx(settings.prefix);
    await rm(join(tls, 'tags.acme.example.pem'));
    const { backend } = await start({ certificates });
    expect(await intact(backend)).toEqual({ 'beta/tags.beta.example': true });
    await serves(backend, 'beta');
  });

  test('restores the previous tree when a new generation does not start', async () => {
    const { backend } = await start({ reloadTimeoutMs: 600 });
    await install(backend, 'acme');
    const before = await current();
    const pid = await master();
    sendSignal(pid, 'SIGSTOP', settings.prefix);
    const outcome = await install(backend, 'beta').catch((error: unknown) => error);
    sendSignal(pid, 'SIGCONT', settings.prefix);
    expect(outcome).toBeInstanceOf(RetryableError);
    expect(await current()).toBe(before);
    await eventually(async () => expect(await intact(backend)).toEqual({ 'acme/tags.acme.example': true }));
    await serves(backend, 'acme');
    expect(await install(backend, 'beta')).toEqual([{ status: 'fulfilled', value: { changed: true } }]);
    await serves(backend, 'beta');
  });

  test('detects a file edited by hand and a replaced certificate, and makes both vhosts intact', async () => {
    const { backend } = await start();
    await install(backend, 'acme', 'beta');
    const [acme] = await backend.installed();
    if (acme === undefined) throw new Error('nothing is installed');
    await writeFile(acme.path, (await readFile(acme.path, 'utf8')).replace('return 421', 'return 200'));
    await rm(join(home.directory, 'ca', 'tags.beta.example.pem'));
    await home.ca.pathsFor('tags.beta.example');
    expect(await intact(backend)).toEqual({
      'acme/tags.acme.example': false,
      'beta/tags.beta.example': false,
    });
    expect((await backend.installed()).map(({ outdated }) => outdated)).toEqual([false, true]);
    await install(backend, 'acme', 'beta');
    expect(await intact(backend)).toEqual({ 'acme/tags.acme.example': true, 'beta/tags.beta.example': true });
  });

  test('keeps three generations, and no query string in its logs', async () => {
    const { backend, endpoint } = await start();
    for (const site of ['one', 'two', 'three', 'four', 'five']) await install(backend, site);
    const names = await readdir(settings.prefix);
    expect(names.filter((name) => name.startsWith('sites.'))).toHaveLength(3);
    await edge.close();
    cleanups = cleanups.slice(1);
    const path = '/g/collect?secret-of-a-visitor=1';
    const answer = await ask(endpoint, { host: 'tags.one.example', servername: null, path });
    expect(answer.status).toBe(502);
    const access = await eventually(async () => {
      const text = await readFile(join(settings.prefix, 'logs', 'sites', 'one.log'), 'utf8');
      expect(text).toContain('"path":"/g/collect","status":502');
      return text;
    });
    const error = await readFile(join(settings.prefix, 'logs', 'error.log'), 'utf8');
    expect(`${access}${error}`).not.toContain('secret-of-a-visitor');
  });

  test('refuses a setting that is more than a word, without printing it', async () => {
    const refused = start({ hopSecret: 'top-secret-value; } include /etc/passwd;' });
    await expect(refused).rejects.toThrow(/settings can't be written.*hopSecret/);
    await expect(refused).rejects.not.toThrow(/passwd/);
  });

  test('reloads once for many sites; a site counts as applied only when its upstream answers', async () => {
    const { backend, endpoint } = await start();
    const containers = { slots: new Slots('127.92'), originPort: endpoint.tlsPort };
    const applier = proxyApplier({
      backend,
      identity: IDENTITY,
      containers,
      certificates: home.ca,
      probeTimeoutMs: 500,
    });
    const manifests = ['acme-shop', 'beta-shop', 'gamma-shop'].map((site, index) =>
      loadedManifest(site, 500 + index, { customDomains: [`tags.${site}.example`] }),
    );
    const [processing] = manifests.slice(0, 2).flatMap((manifest) => containerSpecs(manifest, containers));
    if (processing === undefined) throw new Error('a site has no container');
    const ready = await startUpstream({ address: processing.address, port: processing.port });
    cleanups.push(() => ready.close());

    const planNow = async () => {
      const desired = manifests.flatMap((manifest) => applier.desired(manifest));
      return applier.plan(desired, await applier.observe(desired, signal)).changes;
    };
    const number = async () => Number((await current()).split('.')[1]);
    const before = await number();
    const outcomes = await Promise.allSettled(
      (await planNow()).map((change) => applier.apply(change, signal)),
    );
    expect((await number()) - before).toBe(1);
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    // What isn't reachable yet is probed again, without a reload.
    const again = await planNow();
    expect(again.map(({ key, op }) => `${op} ${key}`)).toEqual(['update beta-shop', 'update gamma-shop']);
    const late = manifests.slice(1).flatMap((manifest) => containerSpecs(manifest, containers));
    for (const { role, address, port } of late) {
      if (role !== 'processing') continue;
      const upstream = await startUpstream({ address, port });
      cleanups.push(() => upstream.close());
    }
    await Promise.all(again.map((change) => applier.apply(change, signal)));
    expect(await planNow()).toEqual([]);
    expect((await number()) - before).toBe(1);
  });
});
