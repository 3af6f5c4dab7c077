import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxyBackend } from '../../../gitops/appliers/proxy/backend.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { runningMaster, stopNginx } from '../../../gitops/appliers/proxy/nginx/process.ts';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { ask, IDENTITY, proxyHome, put } from '../../support/proxy/proxy.ts';
import { signal as sendSignal } from '../../support/signal.ts';
import { startUpstream } from '../../support/upstream.ts';

describeWith('nginx', 'the tree of an nginx', () => {
  const { signal } = new AbortController();
  let home: Awaited<ReturnType<typeof proxyHome>>;
  let settings: NginxSettings;
  let cleanups: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    home = await proxyHome();
    const edge = await startUpstream({ name: 'edge' });
    const edgeUpstream = { scheme: 'http', address: edge.address, port: edge.port } as const;
    settings = { ...home.settings, edgeUpstream, ...NGINX_SETTINGS };
    cleanups = [() => edge.close(), () => home.remove()];
  });
  afterEach(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });

  async function start() {
    const backend = nginxBackend(settings);
    cleanups.push(() => backend.close());
    await backend.start();
    return backend;
  }
  const hostOf = (site: string) => `tags.${site}.example`;
  const install = async (backend: ProxyBackend, ...sites: string[]) => {
    const spec = (site: string): ProxySpec => ({
      site,
      vhosts: [{ kind: 'custom', host: hostOf(site), edgeHost: `${site}.example.net` }],
    });
    return await backend.install(sites.map((site) => put(`${site}/${hostOf(site)}`, spec(site))));
  };
  const statusOf = async (backend: ProxyBackend, site: string) =>
    (await ask(backend.endpoint(), { host: hostOf(site), servername: null })).status;
  const intact = async (backend: ProxyBackend) =>
    Object.fromEntries((await backend.installed()).map(({ key, intact }) => [key, intact]));
  const both = { [`acme/${hostOf('acme')}`]: true, [`beta/${hostOf('beta')}`]: true };
  const at = (...path: string[]) => join(settings.prefix, ...path);

  const DAMAGES: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['the link to it is removed', () => rm(at('current'))],
    [
      'a folder is in the place of the link',
      async () => {
        await rm(at('current'));
        await mkdir(at('current'));
      },
    ],
    ['its version is removed', () => rm(at('current', 'version'))],
    ['its record is removed', () => rm(at('current', 'record.json'))],
    ['its main configuration is garbage', () => writeFile(at('current', 'nginx.conf'), 'garbage {')],
    ['its main configuration is removed', () => rm(at('current', 'nginx.conf'))],
    ['its settings are garbage', () => writeFile(at('current', 'http', 'tagyard.conf'), '}')],
    ['its endpoint is removed', () => rm(at('current', 'http', 'version.conf'))],
    ['its vhosts are removed', () => rm(at('current', 'sites'), { recursive: true })],
    [
      'a vhost is a folder',
      async () => {
        const [name = ''] = await readdir(at('current', 'sites'));
        await rm(at('current', 'sites', name));
        await mkdir(at('current', 'sites', name));
      },
    ],
  ];

  describe.each(DAMAGES)('if %s', (_what, damage) => {
    test('the tree is restored while nginx serves every site, and no site counts as changed', async () => {
      const backend = await start();
      await install(backend, 'acme', 'beta');
      // Another generation with the same vhosts, so that the previous one still has what the newest one loses.
      await install(backend, 'gamma');
      await backend.install([put(`gamma/${hostOf('gamma')}`, null)]);
      await damage();
      expect(await intact(backend)).toEqual(both);
      const master = (await runningMaster(settings.prefix)) ?? 0;
      sendSignal(master, 'SIGKILL', settings.prefix);
      await eventually(async () => expect(await statusOf(backend, 'acme')).toBe(200));
      await eventually(async () => expect(await intact(backend)).toEqual(both));
      expect(await install(backend, 'acme', 'beta')).toEqual(
        Array(2).fill({ status: 'fulfilled', value: { changed: false } }),
      );
    });

    test('the next backend starts, whether nginx is running or not', async () => {
      const first = await start();
      await install(first, 'acme', 'beta');
      await install(first, 'gamma');
      await first.install([put(`gamma/${hostOf('gamma')}`, null)]);
      await first.close();
      for (const isRunning of [true, false]) {
        if (!isRunning) await stopNginx(settings.prefix);
        await damage();
        const backend = await start();
        expect(await statusOf(backend, 'acme')).toBe(200);
        expect(await intact(backend)).toEqual(both);
        await backend.close();
      }
    });
  });

  test('is written from git if nothing of it is left, and nginx keeps serving until then', async () => {
    const first = await start();
    await install(first, 'acme', 'beta');
    await first.close();
    const master = await runningMaster(settings.prefix);
    const ports = await readFile(at('ports.json'));
    await rm(settings.prefix, { recursive: true });
    await mkdir(settings.prefix);
    await writeFile(at('ports.json'), ports);
    const backend = await start();
    expect(await runningMaster(settings.prefix)).toBe(master);
    expect(await statusOf(backend, 'acme')).toBe(200);
    expect(await backend.installed()).toEqual([]);
    await install(backend, 'acme', 'beta');
    expect(await intact(backend)).toEqual(both);
    expect(await statusOf(backend, 'beta')).toBe(200);
    expect(await runningMaster(settings.prefix)).toBe(master);
  });

  test('moves a vhost that became garbage to the folder `refused`, and blocks no other site', async () => {
    const backend = await start();
    await install(backend, 'acme', 'beta');
    const [acme] = await backend.installed();
    await writeFile(acme?.path ?? '', 'garbage {');
    expect(await install(backend, 'gamma')).toEqual([{ status: 'fulfilled', value: { changed: true } }]);
    expect(await intact(backend)).toEqual({
      [`beta/${hostOf('beta')}`]: true,
      [`gamma/${hostOf('gamma')}`]: true,
    });
    expect(await backend.strangers?.()).toEqual([at('refused', `acme@${hostOf('acme')}.conf`)]);
    await install(backend, 'acme');
    expect(await statusOf(backend, 'acme')).toBe(200);
  });

  test('may contain foreign files: they are reported, and nginx doesn’t read them', async () => {
    const backend = await start();
    await install(backend, 'acme');
    expect(await backend.strangers?.()).toEqual([]);
    const server = `server { listen 127.0.0.1:${backend.endpoint().httpPort}; server_name x.example; return 200 x; }`;
    const [extra, note, copy, own] = [
      at('current', 'http', 'extra.conf'),
      at('note.txt'),
      at('current', 'sites', 'acme.conf.bak'),
      at('current', 'sites', 'by-hand.conf'),
    ];
    for (const path of [extra, note, copy]) await writeFile(path, server);
    await writeFile(own, '# by hand\n');
    const warnings: object[] = [];
    const applier = proxyApplier({
      backend,
      identity: IDENTITY,
      containers: { slots: new Slots('127.94'), originPort: 443 },
      certificates: home.ca,
      log: { info: () => undefined, warn: (fields) => warnings.push(fields) },
    });
    await applier.observe([], signal);
    await eventually(() => expect(warnings).toEqual([{ files: [copy, own, extra, note].sort() }]));
    await install(backend, 'beta');
    await expect(ask(backend.endpoint(), { host: 'x.example', servername: null })).rejects.toThrow(
      /hang up|reset/i,
    );
  });

  test('counts as intact while nginx hasn’t read it yet, so no site counts as changed', async () => {
    const backend = await start();
    const containers = { slots: new Slots('127.94'), originPort: backend.endpoint().tlsPort };
    const applier = proxyApplier({ backend, identity: IDENTITY, containers, certificates: home.ca });
    const manifests = ['acme-shop', 'beta-shop', 'gamma-shop'].map((site, index) =>
      loadedManifest(site, 700 + index, { customDomains: [hostOf(site)] }),
    );
    const desired = manifests.flatMap((manifest) => applier.desired(manifest));
    const changes = (site: string) =>
      applier.plan(desired, []).changes.filter((change) => change.site === site && change.key.includes('/'));
    await Promise.all(['acme-shop', 'beta-shop'].flatMap(changes).map((one) => applier.apply(one, signal)));

    const master = (await runningMaster(settings.prefix)) ?? 0;
    const known = desired.filter(({ key }) => key.includes('/'));
    const plan = async () => applier.plan(known, await applier.observe(known, signal)).changes;
    expect((await plan()).map(({ op, site }) => [op, site])).toEqual([['create', 'gamma-shop']]);
    sendSignal(master, 'SIGSTOP', settings.prefix);
    const before = await readFile(at('current', 'version'), 'utf8');
    const applied = Promise.all(changes('gamma-shop').map((one) => applier.apply(one, signal)));
    await eventually(async () => expect(await readFile(at('current', 'version'), 'utf8')).not.toBe(before));
    expect(await plan()).toEqual([]);
    sendSignal(master, 'SIGCONT', settings.prefix);
    await applied;
    expect(await plan()).toEqual([]);
  });
});
