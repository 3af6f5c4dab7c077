import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../base/clock.ts';
import { ANALYTICS_DATASET, type EdgeHost, startEdgeHost } from '../../edge/host.ts';
import { startUpstream, type Upstream } from '../../edge/kit/upstream.ts';
import { readPoints, writePoints } from '../../sites/local/cloudflare/api/points.ts';
import { openState } from '../../sites/local/cloudflare/api/state.ts';
import { endHungRuntimes } from '../../sites/local/cloudflare/hung-runtime.ts';
import { exchangeInPieces } from '../support/edge/streams.ts';
import { eventually } from '../support/eventually.ts';
import { runtimesOf } from '../support/runtimes.ts';
import { signal } from '../support/signal.ts';

const container = '3f0a6679-7425-40de-944b-e07fc1f90000';
const host = 'shop.tagyard.localhost';

const pointOf = z.object({ index: z.string(), blobs: z.array(z.string()), doubles: z.array(z.number()) });

let persistDir: string;
let upstream: Upstream;
let edge: EdgeHost;

const start = async (port = 0, options: Partial<Parameters<typeof startEdgeHost>[0]> = {}) =>
  startEdgeHost({
    port,
    persistDir,
    vars: { HOP_SECRET: 'the-hop-secret', CONFIG_TTL_SECONDS: '1', DETECTION_PATH: '/signals' },
    egress: { host: '127.0.0.1', port: upstream.port },
    ...options,
  });

const send = (path: string, headers: Record<string, string> = {}, at = host, body?: string) =>
  new Promise<number>((resolve, reject) => {
    const { hostname, port } = edge.url;
    const method = body === undefined ? 'GET' : 'POST';
    request({ host: hostname, port, path, method, headers: { host: at, ...headers } }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    })
      .on('error', reject)
      .end(body);
  });

const runtimes = () => runtimesOf(process.pid);

beforeEach(async () => {
  persistDir = await mkdtemp(join(tmpdir(), 'tagyard-edge-'));
  upstream = await startUpstream();
  edge = await start();
});
afterEach(async () => {
  await edge.close();
  await upstream.close();
  await rm(persistDir, { recursive: true });
});

async function putSite(): Promise<void> {
  const origin = 'https://shop-origin.tagyard.localhost:8443';
  await edge.kv.ROUTES.put(
    host,
    JSON.stringify({ version: 1, siteId: 'shop', containerId: container, origin }),
    {
      metadata: { mark: 'tgy1 home tag-1 shop 00000000' },
    },
  );
  await edge.kv.SITE_REGISTRY.put(
    container,
    JSON.stringify({
      version: 1,
      siteId: 'shop',
      containerId: container,
      domains: [],
      proxyPaths: [],
      consent: 'opt_out',
    }),
  );
}

describe('the embedded edge', () => {
  test('serves the hostnames that routes match, from the stores that its host writes', async () => {
    await putSite();
    expect(await send('/g/collect')).toBe(530);
    await edge.setRoutes([`${host}/*`]);
    expect(await send('/g/collect')).toBe(200);
    expect(await send('/g/collect', {}, 'other.tagyard.localhost')).toBe(530);
    await edge.setRoutes([]);
    expect(await send('/g/collect')).toBe(530);
  });

  test('writes a data point for each request, which the emulated Cloudflare keeps', async () => {
    await edge.close();
    const db = openState(':memory:');
    edge = await start(0, { onPoints: (points) => writePoints(db, points, new Date()) });
    await putSite();
    await edge.setRoutes([`${host}/*`]);
    expect(await send('/g/collect?v=2&en=page_view')).toBe(200);
    expect(await send('/l/nothing.js')).toBe(404);
    await eventually(() => {
      const points = readPoints(db, ANALYTICS_DATASET).map((point) => pointOf.parse(point));
      expect(points.map(({ index, blobs, doubles }) => [index, blobs[1], blobs[8], doubles[0]])).toEqual([
        ['shop', '/g/collect', container, 200],
        ['shop', '/l/:token.js', container, 404],
      ]);
    });
    db.close();
  });

  test('passes a request for a foreign host on once, and ends a request that comes back', async () => {
    const other = 'other.tagyard.localhost';
    await edge.setRoutes(['*.tagyard.localhost/*']);
    expect(await send('/page', {}, other)).toBe(200);
    expect(upstream.received.map(({ url }) => url)).toEqual([`http://${other}/page`]);
    const { 'cf-ew-via': via } = upstream.received[0]?.headers ?? {};
    expect(await send('/page', { 'cf-ew-via': String(via) }, other)).toBe(530);
    expect(upstream.received).toHaveLength(1);
  });

  test('reaches origins through the egress, with the peer’s address and without the client’s claims', async () => {
    await putSite();
    await edge.setRoutes([`${host}/*`]);
    await send('/g/collect?v=2', {
      'cf-connecting-ip': '6.6.6.6',
      'mf-cf-blob': '{"clientIp":"6.6.6.6:1","country":"XX","regionCode":"X6"}',
    });
    expect(upstream.received).toHaveLength(1);
    expect(upstream.received[0]).toMatchObject({
      url: 'https://shop-origin.tagyard.localhost:8443/g/collect?v=2',
      headers: { 'x-forwarded-for': '127.0.0.1', 'x-tagyard-hop-secret': 'the-hop-secret' },
    });
    expect(JSON.stringify(upstream.received[0]?.headers)).not.toMatch(/6\.6\.6\.6|XX|X6/);
  });

  test('streams bodies in both directions', async () => {
    await putSite();
    await edge.setRoutes([`${host}/*`]);
    await exchangeInPieces(upstream, Number(edge.url.port), host);
  });

  test('passes a setting to the plugin that declares it: signals are sent to DETECTION_PATH', async () => {
    await putSite();
    const loader = 'lt_abcdefghijklmnop';
    await edge.kv.LOADER_TOKEN_MAP.put(loader, JSON.stringify({ version: 1, containerId: container }));
    await edge.setRoutes([`${host}/*`]);
    const mark = { loader, session: { id: 'e'.repeat(32) }, signals: { adblock: true } };
    expect(await send('/mark-session-detection', {}, host, JSON.stringify(mark))).toBe(202);
    await expect
      .poll(() => upstream.received.map(({ url }) => url))
      .toEqual(['https://shop-origin.tagyard.localhost:8443/signals']);
  });

  test('keeps its stores over a restart, but not its routes', async () => {
    await putSite();
    const { port } = edge.url;
    await edge.close();
    edge = await start(Number(port));
    expect(edge.url.port).toBe(port);
    expect(await send('/g/collect')).toBe(530);
    await edge.setRoutes([`${host}/*`]);
    expect(await send('/g/collect')).toBe(200);
  });

  test('whose runtime is killed serves the same routes again, from the same stores', async () => {
    const { port } = edge.url;
    await edge.close();
    edge = await start(Number(port));
    await putSite();
    await edge.setRoutes([`${host}/*`]);
    expect(await send('/g/collect')).toBe(200);
    const killed = runtimes();
    expect(killed).toHaveLength(1);
    for (const pid of killed) signal(pid, 'SIGKILL');
    await eventually(async () => expect(await send('/g/collect')).toBe(200));
    expect(runtimes()).not.toEqual(killed);
    expect((await edge.kv.ROUTES.list()).keys).toHaveLength(1);
  });

  test('whose runtime hangs gets another one', async () => {
    await putSite();
    await edge.setRoutes([`${host}/*`]);
    expect(await send('/g/collect')).toBe(200);
    const hung = runtimes();
    const ended = new AbortController();
    const often = { sleep: (_: number, options?: object) => systemClock.sleep(100, options) };
    const watching = endHungRuntimes(edge.url, ended.signal, often);
    for (const pid of hung) signal(pid, 'SIGSTOP');
    await eventually(() => expect(runtimes()).not.toEqual(hung));
    await eventually(async () => expect(await send('/g/collect')).toBe(200));
    ended.abort();
    await watching;
  });

  test('refuses a port that is in use', async () => {
    await expect(start(Number(edge.url.port))).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test('lists keys by prefix and page, with metadata and expiry', async () => {
    const { kv } = edge;
    for (const key of ['a1', 'a2', 'a3', 'b1']) await kv.COOKIES.put(key, key, { metadata: { key } });
    await kv.COOKIES.put('c1', '', { expirationTtl: 3600 });
    const first = await kv.COOKIES.list({ prefix: 'a', limit: 2 });
    expect(first).toMatchObject({
      keys: [{ name: 'a1', metadata: { key: 'a1' } }, { name: 'a2' }],
      complete: false,
    });
    const rest = await kv.COOKIES.list({
      prefix: 'a',
      limit: 2,
      ...(first.cursor && { cursor: first.cursor }),
    });
    expect(rest).toEqual({ keys: [{ name: 'a3', metadata: { key: 'a3' } }], complete: true });
    const [expiring] = (await kv.COOKIES.list({ prefix: 'c' })).keys;
    expect(expiring?.expiration).toBeGreaterThan(Date.now() / 1000 + 3500);
    expect([await kv.COOKIES.get('c1'), await kv.COOKIES.get('none')]).toEqual(['', null]);
    await kv.COOKIES.delete('a1');
    await kv.COOKIES.delete('a1');
    expect(await kv.COOKIES.get('a1')).toBeNull();
  });
});
