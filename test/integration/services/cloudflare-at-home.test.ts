import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { freePort } from '../../../base/free-port.ts';
import { supervise } from '../../../gitops/appliers/containers/process/supervisor.ts';
import type { Applier } from '../../../gitops/appliers/contract.ts';
import { dnsApplier } from '../../../gitops/appliers/dns/applier.ts';
import { cloudflareDns } from '../../../gitops/appliers/dns/cloudflare.ts';
import { kvApplier } from '../../../gitops/appliers/edge/kv.ts';
import { routeApplier } from '../../../gitops/appliers/edge/route.ts';
import { edgeStore } from '../../../gitops/appliers/edge/store.ts';
import { cloudflareClient } from '../../../gitops/clients/cloudflare.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { eventually } from '../../support/eventually.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { runtimesOf } from '../../support/runtimes.ts';

const MAIN = fileURLToPath(new URL('../../../sites/local/cloudflare/main.ts', import.meta.url));
const TLS = new URL('../../support/tls/', import.meta.url);
const ready = z.object({
  type: z.literal('ready'),
  edge: z.url(),
  cloudflare: z.url(),
  accountId: z.string(),
  zoneId: z.string(),
});

const latest = z.object({ last: z.number() });

async function converge<Spec, Ref>(applier: Applier<Spec, Ref>, manifest: LoadedManifest): Promise<void> {
  const { signal } = new AbortController();
  const desired = applier.desired(manifest);
  const { changes } = applier.plan(desired, await applier.observe(desired, signal));
  await Promise.all(changes.map((change) => applier.apply(change, signal)));
}

describe('Cloudflare at home', () => {
  const { signal } = new AbortController();
  const children: ChildProcess[] = [];
  const settings = () => ({
    EDGE_STATE_DIR: home,
    EDGE_DOMAIN: 'tagyard.localhost',
    CLOUDFLARE_API_TOKEN: 'a-token-for-tests',
    HOP_SECRET: 'a-hop-secret-for-tests',
    TAG_UPSTREAM: 'http://127.0.0.1:9',
    EGRESS_CA_FILE: fileURLToPath(new URL('localhost.cert.pem', TLS)),
  });
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'tagyard-edge-'));
  });
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    await rm(home, { recursive: true });
  });

  async function start({ port = 0, ...given }: { port?: number; CLOUDFLARE_EMULATOR?: 'real' } = {}) {
    const env = { ...process.env, ...settings(), EDGE_PORT: String(port), ...given };
    const child = fork(MAIN, { env });
    children.push(child);
    const [message] = await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]): never => {
        throw new Error(`it ended with code ${String(code)} before it was ready`);
      }),
    ]);
    const { edge, cloudflare, accountId, zoneId } = ready.parse(message);
    const client = clientOf({ cloudflare, accountId });
    /** A call of the API with the token, as a client makes it. */
    const call = (method: string, path: string, body?: object) =>
      fetch(`${cloudflare}${path}`, {
        method,
        headers: { authorization: 'Bearer a-token-for-tests', 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    return { child, edge, accountId, zoneId, client, call };
  }

  const clientOf = ({ cloudflare: url, accountId }: { cloudflare: string; accountId: string }) =>
    cloudflareClient({ url, token: 'a-token-for-tests', accountId, rate: 1000 });

  /** The process of the worker's runtime that a part has started. */
  const runtimeOf = ({ pid = 0 }: ChildProcess): number => {
    const [runtime, ...others] = runtimesOf(pid);
    if (runtime === undefined || others.length > 0) throw new Error('there must be exactly one runtime');
    return runtime;
  };

  async function askAt(edge: string, host: string, path = '/nothing-here') {
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    http.get(new URL(path, edge), { headers: { host }, agent: false }, resolve).once('error', reject);
    const response = await promise;
    return { status: response.statusCode, body: await text(response) };
  }
  const statusAt = async (...args: Parameters<typeof askAt>) => (await askAt(...args)).status;

  test('serves what was written through its API, and the same after a restart', async () => {
    const first = await start();
    const host = 'shop.tagyard.localhost';
    // Without a route, Cloudflare itself answers for the name (530); with one, the worker does.
    expect(await statusAt(first.edge, host)).toBe(530);
    await first.client.createRoute(first.zoneId, { pattern: `${host}/*`, script: 'tagyard-edge' }, signal);
    expect(await statusAt(first.edge, host)).not.toBe(530);
    expect(await statusAt(first.edge, `other.${host}`)).toBe(530);

    const routes = (await first.client.namespaces(signal)).find(
      ({ title }) => title === 'tagyard-edge-ROUTES',
    );
    await first.client.writeKv(
      routes?.id ?? '',
      [{ key: host, value: '{}', metadata: { mark: 'm' } }],
      signal,
    );

    first.child.kill('SIGTERM');
    expect(await once(first.child, 'exit')).toEqual([0, null]);

    const second = await start();
    expect([second.accountId, second.zoneId]).toEqual([first.accountId, first.zoneId]);
    expect(await statusAt(second.edge, host)).not.toBe(530);
    expect(await second.client.kvKeys(routes?.id ?? '', signal)).toMatchObject([
      { name: host, metadata: { mark: 'm' } },
    ]);
  });

  test('forwards a site’s request through route, worker, zone and TLS to its origin', async () => {
    const seen: { url: string | undefined; hop: unknown }[] = [];
    const pem = (name: string) => readFileSync(new URL(name, TLS), 'utf8');
    const origin = https.createServer(
      { cert: pem('localhost.cert.pem'), key: pem('localhost.key.pem') },
      (request, response) => {
        seen.push({ url: request.url, hop: request.headers['x-tagyard-hop-secret'] });
        response.writeHead(204).end();
      },
    );
    await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
    const { port: originPort } = origin.address() as AddressInfo; // a TCP server has one

    const { edge, zoneId, client } = await start();
    const identity = { instance: 'home', host: 'tag-1' };
    const store = edgeStore(client, 'tagyard-edge');
    const manifest = loadedManifest('shop', 0, {
      hostnames: {
        edge: 'shop.tagyard.localhost',
        origin: 'shop-origin.tagyard.localhost',
        preview: 'shop-preview.tagyard.localhost',
      },
    });
    const provider = cloudflareDns({ client, zoneId });
    await converge(kvApplier({ client, store, identity, settings: { originPort } }), manifest);
    const zone = 'tagyard.localhost';
    const routes = { client, store, identity, zoneId, scriptName: 'tagyard-edge', domain: zone };
    await converge(routeApplier({ ...routes, mode: 'auto', limit: 1_000 }), manifest);
    await converge(dnsApplier({ provider, identity, zone, hostAddress: '127.0.0.1' }), manifest);

    const collect = () => statusAt(edge, 'shop.tagyard.localhost', '/g/collect?v=2&en=page_view');
    // The worker sees a KV write later than the API confirms it; until then it sends requests to the name's own server.
    await eventually(async () => expect(await collect()).toBe(204), { timeoutMs: 60_000 });

    origin.closeAllConnections();
    origin.close();
    expect(seen).toEqual([{ url: '/g/collect?v=2&en=page_view', hop: 'a-hop-secret-for-tests' }]);
  });

  test('with CLOUDFLARE_EMULATOR=real has the limits and delays of the real one (docs/facts.md, Cloudflare API)', async () => {
    const { edge, accountId, zoneId, client, call } = await start({ CLOUDFLARE_EMULATOR: 'real' });
    const zone = `/zones/${zoneId}`;
    expect((await call('GET', zone)).headers.get('ratelimit-policy')).toBe('"default";q=1200;w=300');
    const record = (name: number) => ({ type: 'TXT', name: `t${name}.tagyard.localhost`, content: '"x"' });
    const posts = Array.from({ length: 200 }, (_, number) => record(number));
    expect((await call('POST', `${zone}/dns_records/batch`, { posts })).status).toBe(200);
    expect(await (await call('POST', `${zone}/dns_records`, record(200))).json()).toMatchObject({
      errors: [{ code: 81045 }],
    });

    // Once the worker has a host's routing entry, it answers unknown_container: no such container exists.
    await client.createRoute(zoneId, { pattern: '*.tagyard.localhost/*', script: 'tagyard-edge' }, signal);
    const hosts = Array.from({ length: 20 }, (_, number) => `shop-${number}.tagyard.localhost`);
    const entry = { version: 1, siteId: 'shop', containerId: 'none', origin: 'https://none.invalid' };
    const id =
      (await client.namespaces(signal)).find(({ title }) => title === 'tagyard-edge-ROUTES')?.id ?? '';
    const namespace = `/accounts/${accountId}/storage/kv/namespaces/${id}`;
    const pairs = hosts.map((key) => ({ key, value: JSON.stringify(entry) }));
    const writtenAt = Date.now();
    expect((await call('PUT', `${namespace}/bulk`, pairs)).status).toBe(200);
    expect(await client.kvKeys(id, signal)).toHaveLength(hosts.length);
    const known = async () => {
      const answers = await Promise.all(hosts.map((host) => askAt(edge, host)));
      return answers.filter(({ body }) => body.includes('"unknown_container"')).length;
    };
    expect(await known()).toBeLessThan(hosts.length);
    const state = new DatabaseSync(join(home, 'cloudflare.sqlite'), { readOnly: true });
    const { last } = latest.parse(state.prepare('SELECT max(due) AS last FROM kv_pending').get());
    state.close();
    // More than a second, the longest delay with `npm start`.
    expect(last - writtenAt).toBeGreaterThan(1000);
    expect(last - Date.now()).toBeLessThanOrEqual(60_000);
    await eventually(async () => expect(await known()).toBeGreaterThan(0), { timeoutMs: 90_000 });
  });

  test('ends with its parent', async () => {
    const { child } = await start();
    child.disconnect();
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  // Another process may take a port that was free a moment before; then the test is retried.
  test('keeps what it acknowledged when it is killed at any time', { retry: 2 }, async () => {
    const { child, edge, client, zoneId } = await start();
    await client.createRoute(zoneId, { pattern: 'shop.tagyard.localhost/*', script: 'tagyard-edge' }, signal);
    const before = runtimeOf(child);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await eventually(() => expect(isRunning(before)).toBe(false));
    const again = await start({ port: Number(new URL(edge).port) });
    expect(again.edge).toBe(edge);
    expect(await again.client.routes(again.zoneId, signal)).toHaveLength(1);
    expect(await statusAt(edge, 'shop.tagyard.localhost')).not.toBe(530);
  });

  test('as a part of an instance, ends its runtime at its end and starts again with its state', {
    retry: 2,
  }, async () => {
    const [port, apiPort] = [await freePort('127.0.0.1', 0), await freePort('127.0.0.1', 0)];
    const env = { ...settings(), EDGE_PORT: `${port}`, CLOUDFLARE_PORT: `${apiPort}` };
    const parts: ChildProcess[] = [];
    let last: number[] = [];
    const started: object[] = [];
    const supervised = supervise({
      spawn() {
        const part = fork(MAIN, { env: { ...process.env, ...env } });
        parts.push(part);
        return part;
      },
      onEnd: () => undefined,
      readiness: { timeoutMs: 60_000, onReady: (message) => started.push(message) },
    });
    try {
      await eventually(() => expect(started).toHaveLength(1), { timeoutMs: 60_000 });
      const { edge, cloudflare, accountId, zoneId } = ready.parse(started[0]);
      const client = clientOf({ cloudflare, accountId });
      await client.createRoute(
        zoneId,
        { pattern: 'shop.tagyard.localhost/*', script: 'tagyard-edge' },
        signal,
      );
      const [first] = parts;
      if (first === undefined) throw new Error('it was not started');
      const before = runtimeOf(first);
      // Ctrl-C reaches the group of this process, so the runtime has a group of its own.
      expect(groupOf(before)).toBe(before);
      first.kill('SIGKILL');
      await eventually(() => expect(isRunning(before)).toBe(false));
      await eventually(() => expect(started).toHaveLength(2), { timeoutMs: 60_000 });
      expect(started[1]).toEqual(started[0]);
      expect(await client.routes(zoneId, signal)).toHaveLength(1);
      expect(await statusAt(edge, 'shop.tagyard.localhost')).not.toBe(530);
      last = parts.slice(-1).map(runtimeOf);
    } finally {
      await supervised.stop(15_000);
    }
    expect(supervised.lastEnd()).toMatchObject({ code: 0, isStopped: true });
    expect(last.map(isRunning)).toEqual([false]);
  });
});

/** A field after the name in a process's stat (proc(5)); undefined if there is no such process. */
function statOf(pid: number, field: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[field];
  } catch {
    return undefined;
  }
}
const isRunning = (pid: number) => !['Z', undefined].includes(statOf(pid, 0));
const groupOf = (pid: number) => Number(statOf(pid, 2));
