import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxyBackend } from '../../../gitops/appliers/proxy/backend.ts';
import type { CertificateSource } from '../../../gitops/appliers/proxy/certificates.ts';
import type { ProxySpec } from '../../../gitops/appliers/proxy/desired.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { runningMaster, stopNginx, workersOf } from '../../../gitops/appliers/proxy/nginx/process.ts';
import type { NginxSettings } from '../../../gitops/appliers/proxy/nginx/settings.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { NGINX, NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { type Ask, ask, IDENTITY, proxyHome, put } from '../../support/proxy/proxy.ts';
import { startUpstream } from '../../support/upstream.ts';

const KIB = 1024;
const TIMEOUT = { timeoutMs: 60_000 };

describeWith('nginx', 'nginx at its limits', () => {
  let home: Awaited<ReturnType<typeof proxyHome>>;
  let settings: NginxSettings;
  let cleanups: (() => Promise<unknown>)[] = [];

  beforeEach(async () => {
    home = await proxyHome();
    settings = { ...home.settings, ...NGINX_SETTINGS };
    cleanups = [() => home.remove()];
  });
  afterEach(async () => {
    for (const cleanup of cleanups.toReversed()) await cleanup();
  });

  async function start(overrides: Partial<NginxSettings> = {}) {
    const backend = nginxBackend({ ...settings, ...overrides });
    cleanups.push(() => backend.close());
    await backend.start();
    return backend;
  }
  async function upstream(options: Parameters<typeof startUpstream>[0] = {}) {
    const server = await startUpstream(options);
    cleanups.push(() => server.close());
    return server;
  }

  const hostOf = (site: string) => `${site}-origin.example.net`;
  const origin = (site: string, { address, port }: { address: string; port: number }): ProxySpec => ({
    site,
    vhosts: [{ kind: 'origin', host: hostOf(site), upstreams: [{ address, port }] }],
  });
  const get = async (backend: ProxyBackend, site: string, more: Partial<Ask> = {}) =>
    await ask(backend.endpoint(), { host: hostOf(site), ...more });

  test('isolates one bad vhost among 1,000 in at most 2·log2(N)+2 tests, and serves all others', async () => {
    // Domains that wait for their certificate need no key: 1,000 keys would take most of this test's time.
    const certificates: CertificateSource = { ...home.ca, pathsFor: async () => null };
    const runs = join(home.directory, 'runs');
    const bin = join(home.directory, 'counting-nginx');
    await writeFile(bin, `#!/bin/sh\necho "$1" >> '${runs}'\nexec ${NGINX} "$@"\n`);
    await chmod(bin, 0o755);
    const edge = await upstream();
    const edgeUpstream = { scheme: 'http', address: edge.address, port: edge.port } as const;
    const backend = await start({ bin, certificates, edgeUpstream });
    const custom = (site: string, host: string) =>
      put(`${site}/${host}`, {
        site,
        vhosts: [{ kind: 'custom', host, tls: 'acme', edgeHost: `${site}.example.net` }],
      });
    await backend.install([custom('holder', 'taken.example')]);

    const sites = Array.from({ length: 1_000 }, (_, index) => `site-${String(index).padStart(4, '0')}`);
    const bad = 'site-0617';
    // nginx only warns about a name that is taken, and names no file.
    const changes = sites.map((site) =>
      custom(site, site === bad ? 'taken.example' : `tags.${site}.example`),
    );
    await writeFile(runs, '');
    const outcomes = await backend.install(changes);
    const tests = (await readFile(runs, 'utf8')).split('\n').filter((argument) => argument === '-t');

    const refused = outcomes.flatMap((outcome, index) =>
      outcome.status === 'rejected' ? [[sites[index], String(outcome.reason)]] : [],
    );
    expect(refused).toEqual([[bad, expect.stringContaining('conflicting server name "taken.example"')]]);
    expect(tests.length).toBeGreaterThan(1);
    expect(tests.length).toBeLessThanOrEqual(2 * Math.log2(1_000) + 2);
    const installed = await backend.installed();
    expect(installed.filter(({ intact }) => intact)).toHaveLength(1_000);
    for (const site of ['site-0000', 'site-0616', 'site-0618', 'site-0999']) {
      const { status } = await ask(backend.endpoint(), { host: `tags.${site}.example`, servername: null });
      expect(status).toBe(200);
    }
  });

  test.each(['origin', 'preview'] as const)(
    'removes headers by which a direct request could choose the address that a template calls: %s',
    async (kind) => {
      const server = await upstream();
      const backend = await start();
      const { address, port } = server;
      const vhost = { kind, host: hostOf('acme'), upstreams: [{ address, port }] };
      await backend.install([put('acme', { site: 'acme', vhosts: [vhost] })]);
      const preview = {
        'x-gtm-server-preview': 'ZW52LTE',
        'x-gtm-auth': 'a',
        'x-gtm-preview': 'p',
        'x-gtm-debug': 'd',
      };
      const headers = {
        ...preview,
        cookie: '_ga=1',
        forwarded: 'host=visited.example',
        'x-gtm-identifier': 'evil',
        'X-GTM-Default-Domain': 'evil.example',
        'x-gtm-api-key': 'evil',
        'x-gtm-of-tomorrow': 'evil',
        x_gtm_identifier: 'evil',
        x_real_ip: 'evil',
        x_forwarded_for: 'evil',
        'x-nf-geo': 'evil',
        'x-azure-socketip': 'evil',
      };
      for (const method of ['GET', 'POST']) {
        const body = 'x'.repeat(method === 'POST' ? 100_000 : 0);
        const { status } = await get(backend, 'acme', {
          headers,
          method,
          body,
          path: '/g/collect?a=%2F&b=1',
        });
        expect(status).toBe(200);
        expect(server.seen.at(-1)).toMatchObject({
          method,
          url: '/g/collect?a=%2F&b=1',
          bodyBytes: body.length,
        });
        const arrived = server.seen.at(-1)?.headers ?? {};
        expect(arrived).toMatchObject({ ...preview, cookie: '_ga=1' });
        // Pages of the preview need the visited host.
        expect(arrived.forwarded).toBe(kind === 'preview' ? 'host=visited.example' : undefined);
        expect(JSON.stringify(arrived)).not.toContain('evil');
      }
    },
  );

  test.each(['origin', 'preview'] as const)(
    'lets no stranger choose the server that a container’s template calls: %s',
    async (kind) => {
      // Answers with the address that a widely used template would call.
      const container = await upstream({
        handle({ headers }, response) {
          const text = (name: string, otherwise: string) => String(headers[name] ?? otherwise);
          const domain = text('x-gtm-default-domain', 'own.example');
          response.end(
            `https://${text('x-gtm-identifier', 'own')}.${domain}/${text('x-gtm-api-key', 'own')}`,
          );
          return true;
        },
      });
      const backend = await start();
      const { address, port } = container;
      const vhost = { kind, host: hostOf('acme'), upstreams: [{ address, port }] };
      await backend.install([put('acme', { site: 'acme', vhosts: [vhost] })]);
      const headers = {
        'X-Gtm-Identifier': 'evil',
        'x-gtm-default-domain': 'evil.example',
        'x-gtm-api-key': 'evil',
      };
      for (const path of ['/g/collect', '/gtm/debug']) {
        const { body } = await get(backend, 'acme', { headers, path });
        expect(body).toBe('https://own.own.example/own');
      }
    },
  );

  test('serves the longest names that a manifest can have, over TLS, and removes them again', async () => {
    const edge = await upstream();
    const edgeUpstream = { scheme: 'http', address: edge.address, port: edge.port } as const;
    const backend = await start({ edgeUpstream });
    const containers = { slots: new Slots('127.94'), originPort: backend.endpoint().tlsPort };
    const applier = proxyApplier({ backend, identity: IDENTITY, containers, certificates: home.ca });
    const { signal } = new AbortController();
    const site = 'shop';
    const label = 'x'.repeat(57);
    // A manifest's hostnames have at most 238 characters.
    const hosts = [230, 234, 238].map((length) => {
      const rest = `.${label}.${label}.${label}.${site}.example`;
      return `${'y'.repeat(length - rest.length)}${rest}`;
    });
    expect(hosts.map((host) => host.length)).toEqual([230, 234, 238]);
    const manifest = loadedManifest(site, 720, { customDomains: hosts });
    const desired = applier.desired(manifest).filter(({ key }) => key.includes('/'));
    const plan = async (wanted = desired) =>
      applier.plan(wanted, await applier.observe(wanted, signal)).changes;
    const applyAll = async (wanted = desired) =>
      await Promise.all((await plan(wanted)).map((change) => applier.apply(change, signal)));
    await applyAll();
    for (const host of hosts) expect((await ask(backend.endpoint(), { host })).status).toBe(200);
    expect(await plan()).toEqual([]);
    await applyAll([]);
    expect(await backend.installed()).toEqual([]);
  });

  test('keeps a flood of requests to one site from the others', async () => {
    const server = await upstream();
    const backend = await start({ limits: { requestsPerSecond: 1, connections: 500 } });
    await backend.install([put('flooded', origin('flooded', server)), put('quiet', origin('quiet', server))]);
    const flood = await Promise.all(Array.from({ length: 60 }, () => get(backend, 'flooded')));
    const statuses = new Set(flood.map(({ status }) => status));
    expect(statuses).toEqual(new Set([200, 429]));
    expect((await get(backend, 'quiet')).status).toBe(200);
    const log = await eventually(async () => {
      const text = await readFile(join(settings.prefix, 'logs', 'sites', 'flooded.log'), 'utf8');
      expect(text.trim().split('\n')).toHaveLength(60);
      return text;
    }, TIMEOUT);
    expect(log).toContain('"limited":"REJECTED');
  });

  test('limits no requests of the edge, which has the visitors of a whole campaign', async () => {
    const server = await upstream();
    const backend = await start({ limits: { requestsPerSecond: 1, connections: 500 } });
    await backend.install([put('busy', origin('busy', server))]);
    const headers = { 'x-tagyard-hop-secret': settings.hopSecret };
    const hits = await Promise.all(Array.from({ length: 60 }, () => get(backend, 'busy', { headers })));
    expect(new Set(hits.map(({ status }) => status))).toEqual(new Set([200]));
    expect((await get(backend, 'busy', { headers: { 'x-tagyard-hop-secret': 'guess' } })).status).toBe(200);
  });

  /** An upstream that answers nothing until it is told to. */
  async function hanging() {
    const held: ServerResponse[] = [];
    const server = await upstream({
      handle(_request, response) {
        held.push(response);
        return true;
      },
    });
    const release = () => {
      for (const response of held.splice(0)) response.end();
    };
    return { server, held, release };
  }

  test('limits the connections of strangers to a name, and not those of the edge, which share the proxy', async () => {
    const { server, held, release } = await hanging();
    const limits = { requestsPerSecond: 1_000, connections: 2, all: 9 };
    const backend = await start({ limits });
    const other = await upstream();
    await backend.install([put('busy', origin('busy', server)), put('quiet', origin('quiet', other))]);
    const headers = { 'x-tagyard-hop-secret': settings.hopSecret };
    const asked = (count: number, more: Partial<Ask>) =>
      Array.from({ length: count }, () => get(backend, 'busy', more));
    const strangers = asked(2, {});
    await eventually(() => expect(held).toHaveLength(2), TIMEOUT);
    expect((await get(backend, 'busy', { headers: { 'x-tagyard-hop-secret': 'guess' } })).status).toBe(503);
    const edge = asked(7, { headers });
    await eventually(() => expect(held).toHaveLength(9), TIMEOUT);
    // No name may take the whole proxy, whoever asks.
    expect((await get(backend, 'busy', { headers })).status).toBe(503);
    expect((await get(backend, 'quiet', { headers })).status).toBe(200);
    release();
    const answers = await Promise.all([...strangers, ...edge]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('limits the connections of each visitor of a custom domain, and not of all of them together', async () => {
    const { server, held, release } = await hanging();
    const edgeUpstream = { scheme: 'http', address: server.address, port: server.port } as const;
    const limits = { requestsPerSecond: 1_000, connections: 2, all: 6 };
    const backend = await start({ edgeUpstream, limits });
    const host = 'metrics.acme.example';
    const vhost = { kind: 'custom', host, edgeHost: 'acme.example.net' } as const;
    await backend.install([put(`acme/${host}`, { site: 'acme', vhosts: [vhost] })]);
    const from = (last: number) => ask(backend.endpoint(), { host, from: `127.0.1.${last}` });
    const campaign = [1, 1, 2, 2, 3].map(from);
    await eventually(() => expect(held).toHaveLength(5), TIMEOUT);
    expect((await from(1)).status).toBe(503);
    const last = from(4);
    await eventually(() => expect(held).toHaveLength(6), TIMEOUT);
    expect((await from(5)).status).toBe(503);
    release();
    const answers = await Promise.all([...campaign, last]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('limits each visitor of a custom domain, and not all of them together', async () => {
    const edge = await upstream();
    const edgeUpstream = { scheme: 'http', address: edge.address, port: edge.port } as const;
    const backend = await start({ edgeUpstream, limits: { requestsPerSecond: 1, connections: 500 } });
    const host = 'metrics.acme.example';
    const vhost = { kind: 'custom', host, edgeHost: 'acme.example.net' } as const;
    await backend.install([put(`acme/${host}`, { site: 'acme', vhosts: [vhost] })]);
    const from = (last: number) => ask(backend.endpoint(), { host, from: `127.0.1.${last}` });
    const campaign = await Promise.all(Array.from({ length: 60 }, (_, index) => from(index + 1)));
    expect(new Set(campaign.map(({ status }) => status))).toEqual(new Set([200]));
    const flood = await Promise.all(Array.from({ length: 60 }, () => from(1)));
    expect(new Set(flood.map(({ status }) => status))).toEqual(new Set([200, 429]));
  });

  test('speaks HTTP/2 for custom domains', async () => {
    const edge = await upstream();
    const edgeUpstream = { scheme: 'http', address: edge.address, port: edge.port } as const;
    const backend = await start({ edgeUpstream });
    const host = 'metrics.acme.example';
    const vhost = { kind: 'custom', host, edgeHost: 'acme.example.net' } as const;
    await backend.install([
      put('acme', origin('acme', edge)),
      put(`acme/${host}`, { site: 'acme', vhosts: [vhost] }),
    ]);
    const { address, tlsPort } = backend.endpoint();
    const session = connect(`https://${address}:${tlsPort}`, { servername: host, rejectUnauthorized: false });
    const exchange = async (authority: string, sent: string) => {
      const stream = session.request({
        ':method': 'POST',
        ':authority': authority,
        ':path': '/g/collect?v=2',
        cookie: '_ga=1',
      });
      const headers = once(stream, 'response');
      stream.end(sent);
      const answer = await text(stream);
      const [{ ':status': status }] = await headers;
      return { status, answer };
    };
    const hits = await Promise.all(Array.from({ length: 20 }, () => exchange(host, 'en=x'.repeat(20_000))));
    expect(new Set(hits.map(({ status }) => status))).toEqual(new Set([200]));
    expect(edge.seen.at(-1)).toMatchObject({ method: 'POST', bodyBytes: 80_000 });
    expect(edge.seen.at(-1)?.headers).toMatchObject({ 'x-forwarded-host': host, cookie: '_ga=1' });
    // A browser may reuse the connection for another name of the same certificate.
    expect((await exchange(hostOf('acme'), '')).status).toBe(421);
    session.close();
  });

  test('lets a site whose server hangs use up only its own connections', async () => {
    const held: ServerResponse[] = [];
    const hanging = await upstream({
      handle(_request, response) {
        held.push(response);
        return true;
      },
    });
    const backend = await start({ limits: { requestsPerSecond: 1_000, connections: 3 } });
    const other = await upstream();
    await backend.install([put('hanging', origin('hanging', hanging)), put('quiet', origin('quiet', other))]);
    const held3 = [1, 2, 3].map(() => get(backend, 'hanging'));
    await eventually(() => expect(held).toHaveLength(3), TIMEOUT);
    expect((await get(backend, 'hanging')).status).toBe(503);
    expect((await get(backend, 'quiet')).status).toBe(200);
    for (const response of held) response.end('at last');
    expect((await Promise.all(held3)).map(({ body }) => body)).toEqual(['at last', 'at last', 'at last']);
  });

  test('accepts what GA4 sends, and answers 414, 400 and 413 to what no client sends', async () => {
    const server = await upstream();
    const backend = await start();
    await backend.install([put('acme', origin('acme', server))]);
    const url = (bytes: number) => `/g/collect?v=2&dl=${'u'.repeat(bytes)}`;
    const cookie = (bytes: number) => ({ cookie: `_ga=${'c'.repeat(bytes)}` });
    const post = (bytes: number): Partial<Ask> => ({ method: 'POST', body: Buffer.alloc(bytes, 'e') });
    const cases: [Partial<Ask>, number][] = [
      [{ path: url(60 * KIB), headers: cookie(60 * KIB) }, 200],
      [{ path: url(70 * KIB) }, 414],
      [{ headers: cookie(70 * KIB) }, 400],
      [post(8 * KIB * KIB), 200],
      [post(8 * KIB * KIB + 1), 413],
    ];
    for (const [asked, expected] of cases) {
      // nginx answers before it has read the whole body and then closes; the client may see the close first.
      const answer = await get(backend, 'acme', asked).catch((error: NodeJS.ErrnoException) => error.code);
      const status = typeof answer === 'object' ? answer.status : answer;
      if (expected === 413) expect([413, 'EPIPE', 'ECONNRESET']).toContain(status);
      else expect(status).toBe(expected);
    }
    expect(server.seen).toHaveLength(2);
    expect(server.seen.at(-1)?.bodyBytes).toBe(8 * KIB * KIB);
  });

  test('holds a long poll of 20 s through a reload, and closes an idle connection before the tag server would', async () => {
    const ends: string[] = [];
    const watch = (socket: Socket) => {
      socket.once('end', () => ends.push('nginx closed it'));
    };
    const preview = await upstream({
      // Longer than nginx's own limit, so that nginx closes the connection.
      keepAliveMs: 60_000,
      handle(request, response) {
        if (request.url !== '/gtm/get_memo') return false;
        // The real server answers 204 after 20 s; the client below waits longer.
        setTimeout(() => response.writeHead(204).end(), 20_000);
        return true;
      },
      onConnection: watch,
    });
    const backend = await start();
    await backend.install([put('acme', origin('acme', preview))]);
    const poll = get(backend, 'acme', { path: '/gtm/get_memo', timeoutMs: 120_000 });
    expect((await get(backend, 'acme')).status).toBe(200);
    const [old] = await workersOf((await runningMaster(settings.prefix)) ?? 0);
    await eventually(() => expect(ends).toEqual(['nginx closed it']), TIMEOUT);
    await backend.install([put('beta', origin('beta', preview))]);
    expect((await poll).status).toBe(204);
    expect(old).toBeDefined();
  });

  test('ends connections of an old generation that outlast their time', async () => {
    const hanging = await upstream({ handle: () => true });
    const backend = await start({ shutdownSeconds: 1 });
    await backend.install([put('acme', origin('acme', hanging))]);
    const cut = expect(get(backend, 'acme')).rejects.toThrow(/hang up|reset/i);
    const master = (await runningMaster(settings.prefix)) ?? 0;
    const [old = 0] = await workersOf(master);
    await backend.install([put('beta', origin('beta', hanging))]);
    await cut;
    await eventually(async () => expect(await workersOf(master)).not.toContain(old), TIMEOUT);
  });

  test('tries a request on the other replica where one is down', async () => {
    const alive = await upstream({ name: 'alive' });
    const backend = await start();
    const spec: ProxySpec = {
      site: 'acme',
      vhosts: [
        {
          kind: 'origin',
          host: hostOf('acme'),
          upstreams: [
            { address: '127.0.0.1', port: 9 },
            { address: alive.address, port: alive.port },
          ],
        },
      ],
    };
    await backend.install([put('acme', spec)]);
    for (let number = 0; number < 6; number += 1) {
      const body = Buffer.from('event');
      const { status } = await get(backend, 'acme', { method: 'POST', body });
      expect(status).toBe(200);
    }
    expect(alive.seen.map(({ bodyBytes }) => bodyBytes)).toEqual([5, 5, 5, 5, 5, 5]);
  });

  test('writes valid JSON to each site’s log, without query strings and visitors’ addresses', async () => {
    const server = await upstream();
    const backend = await start();
    await backend.install([put('acme', origin('acme', server)), put('beta', origin('beta', server))]);
    const paths = [
      '/g/collect?secret=1',
      '/a%22%2C%22b%22%3A%0A%5C?secret=2',
      '/%ff%e2%80%a8',
      '/\'"\\?secret',
    ];
    for (const path of paths) await get(backend, 'acme', { path, headers: { 'user-agent': '","x":"' } });
    const file = (site: string) => join(settings.prefix, 'logs', 'sites', `${site}.log`);
    const lines = await eventually(async () => {
      const text = await readFile(file('acme'), 'utf8');
      expect(text.trim().split('\n')).toHaveLength(paths.length);
      return text.trim().split('\n');
    }, TIMEOUT);
    const records = lines.map((line) => JSON.parse(line));
    expect(records.map(({ path }) => path)).toEqual(paths.map((path) => path.split('?')[0]));
    expect(records[0]).toMatchObject({
      host: hostOf('acme'),
      method: 'GET',
      status: 200,
      limited: 'PASSEDPASSED',
    });
    expect(lines.join()).not.toContain('secret');
    expect(lines.join().replaceAll(`${server.address}:${server.port}`, '')).not.toContain('127.0.0.1');
    expect(await readFile(file('beta'), 'utf8')).toBe('');
  });

  test('rotates a full log without losing a line', async () => {
    const server = await upstream();
    const backend = await start({ rotationMs: 20 });
    await backend.install([put('acme', origin('acme', server))]);
    const file = join(settings.prefix, 'logs', 'sites', 'acme.log');
    await truncate(file, 65 * KIB * KIB);
    await eventually(async () => expect((await stat(`${file}.1`)).size).toBe(65 * KIB * KIB), TIMEOUT);
    let asked = 0;
    await eventually(async () => {
      asked += 1;
      expect((await get(backend, 'acme', { path: `/number-${asked}` })).status).toBe(200);
      expect(await readFile(file, 'utf8')).toContain(`/number-${asked}`);
    }, TIMEOUT);
    const [aside, now] = await Promise.all([readFile(`${file}.1`, 'utf8'), readFile(file, 'utf8')]);
    for (let number = 1; number <= asked; number += 1) expect(aside + now).toContain(`/number-${number}"`);
  });

  test('loads a tested tree after a power failure at any step of a change', async () => {
    const tls = join(home.directory, 'ca');
    const copies = join(home.directory, 'copies');
    await mkdir(copies);
    const server = await upstream();
    for (const site of ['acme', 'beta', 'gone']) await home.ca.pathsFor(hostOf(site));
    const change = (site: string, spec: ProxySpec | null) => put(site, spec);
    const second = await upstream({ name: 'second' });
    const batches = [
      [change('acme', origin('acme', server)), change('gone', origin('gone', server))],
      [change('acme', origin('acme', second)), change('beta', origin('beta', server)), change('gone', null)],
    ];
    const entry = fileURLToPath(new URL('../../support/proxy/nginx-boundaries.ts', import.meta.url));
    const plain = JSON.stringify({ ...settings, certificates: undefined });
    const { stdout } = await execa(process.execPath, [entry, plain, tls, copies, JSON.stringify(batches)]);
    // nginx outlives the process that started it, and holds the ports.
    await stopNginx(settings.prefix);
    const report = JSON.parse(stdout);
    expect(report.outcomes).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(report.copies).toBeGreaterThan(10);

    const ports = JSON.parse(await readFile(join(settings.prefix, 'ports.json'), 'utf8'));
    const endpoint = { address: '127.0.0.1', ...ports };
    const seen = new Set<string>();
    for (const name of await readdir(copies)) {
      const prefix = join(copies, name);
      const nginx = spawn(NGINX, ['-p', prefix, '-e', 'stderr', '-c', 'current/nginx.conf'], {
        stdio: 'inherit',
      });
      cleanups.push(async () => nginx.kill('SIGKILL'));
      const version = await eventually(
        async () => {
          expect(nginx.exitCode, `copy ${name}`).toBeNull();
          const url = `http://127.0.0.1:${ports.statusPort}/generation`;
          return await (await fetch(url, { headers: { connection: 'close' } })).text();
        },
        { ...TIMEOUT, until: () => nginx.exitCode !== null },
      );
      expect(version).toBe(await readFile(join(prefix, 'current', 'version'), 'utf8'));
      // Either tree, but never a mixture.
      const { headers } = await ask(endpoint, { host: hostOf('acme') });
      const isServed = async (site: string) =>
        await ask(endpoint, { host: hostOf(site) }).then(
          ({ status }) => status === 200,
          () => false,
        );
      const state = [headers['x-upstream'], await isServed('beta'), await isServed('gone')].join();
      expect(['upstream,false,true', 'second,true,false']).toContain(state);
      seen.add(state);
      await stopNginx(prefix);
    }
    expect(seen.size).toBe(2);
  });
});
