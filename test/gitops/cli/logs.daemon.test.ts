import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type EdgeHost, RAW_LOG_BUCKET, startEdgeHost } from '../../../edge/host.ts';
import { startUpstream, type Upstream } from '../../../edge/kit/upstream.ts';
import { Home } from '../../../gitops/cli/instance/home.ts';
import type { Run } from '../../../gitops/cli/instance/run-schema.ts';
import { program } from '../../../gitops/cli/program.ts';
import { accountId, openState } from '../../../sites/local/cloudflare/api/state.ts';
import { API_PREFIX, buildEmulator } from '../../../sites/local/cloudflare/emulator.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

const TOKEN = 'emulator-token';
const today = new Date().toISOString().slice(0, 10);

let home: string;
let upstream: Upstream;
let edge: EdgeHost;
let emulator: FastifyInstance;
let env: NodeJS.ProcessEnv;
let daemon: MemoryDaemon;

const startEdge = () =>
  startEdgeHost({
    port: 0,
    persistDir: join(home, 'edge'),
    vars: { HOP_SECRET: 'the-hop-secret' },
    egress: { host: '127.0.0.1', port: upstream.port },
  });

async function startEmulator(): Promise<void> {
  const db = openState(':memory:');
  const { rawLogs } = edge;
  emulator = buildEmulator({
    db,
    token: TOKEN,
    scripts: [],
    kv: () => {
      throw new Error('no namespace here');
    },
    buckets: { [RAW_LOG_BUCKET]: rawLogs },
    onRoutes: async () => undefined,
  });
  env = {
    TAGYARD_HOME: home,
    CLOUDFLARE_API_URL: `${await emulator.listen({ host: '127.0.0.1', port: 0 })}${API_PREFIX}`,
    CLOUDFLARE_API_TOKEN: TOKEN,
    CLOUDFLARE_ACCOUNT_ID: accountId(db),
    INFRA_PROVISIONER_URL: await daemon.app.listen({ host: '127.0.0.1', port: 0 }),
    INFRA_SECRET: SECRET,
  };
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tagyard-logs-'));
  upstream = await startUpstream();
  edge = await startEdge();
  for (const site of ['shop', 'other']) {
    const containerId = crypto.randomUUID();
    const document = { version: 1, siteId: site, containerId };
    await edge.kv.ROUTES.put(
      `${site}.localhost`,
      JSON.stringify({ ...document, origin: 'https://origin.test' }),
    );
    await edge.kv.SITE_REGISTRY.put(
      containerId,
      JSON.stringify({ ...document, domains: [], proxyPaths: [], consent: 'opt_out' }),
    );
  }
  await edge.setRoutes(['*.localhost/*']);
  for (const [name, site, path] of [
    ['first', 'shop', '/healthy'],
    ['second', 'shop', '/nothing-here'],
    ['third', 'shop', '/g/collect?v=2'],
    ['fourth', 'other', '/healthy'],
  ] as const) {
    names.set(await send(`${site}.localhost`, path), name);
  }
  await written(1);
  // Restart the runtime: the new one reads the objects that the old one wrote.
  await edge.close();
  edge = await startEdge();
  daemon = await memoryDaemon();
  await daemon.push('shop', daemon.manifest('shop', 1));
  await daemon.reaches('shop', 'Ready');
  await startEmulator();
});
afterAll(async () => {
  await daemon.close();
  await emulator.close();
  await edge.close();
  await upstream.close();
  await rm(home, { recursive: true });
});

const written = (objects: number) =>
  eventually(
    async () => {
      expect((await edge.rawLogs.list({})).objects).toHaveLength(objects);
    },
    { timeoutMs: 10_000 },
  );

/** Names of the requests, by the ids that the edge has given them. */
const names = new Map<string, string>();

/** Sends a request that states an id itself, always the same. Resolves to the id that the edge gives it. */
function send(host: string, path: string): Promise<string> {
  const { hostname, port } = edge.url;
  return new Promise((resolve, reject) => {
    request({ host: hostname, port, path, headers: { host, 'x-request-id': 'mine' } }, (response) => {
      const id = String(response.headers['x-tagyard-request-id']);
      response.resume().on('end', () => resolve(id));
    })
      .on('error', reject)
      .end();
  });
}

async function run(argv: readonly string[], environment = env): Promise<string[]> {
  const lines: string[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    lines.push(stripVTControlCharacters(String(text)).trim());
    return true;
  });
  try {
    await program(environment)
      .exitOverride()
      .parseAsync(['logs', ...argv], { from: 'user' });
    return lines;
  } finally {
    write.mockRestore();
  }
}

const ids = (lines: readonly string[]) =>
  lines.map((line) => JSON.parse(line)).map(({ requestId, route }) => [names.get(requestId), route]);

describe('tagyard logs', () => {
  test('prints a site’s requests of today in order', async () => {
    expect(await run(['shop'])).toEqual([
      expect.stringMatching(/^\S+T\S+Z {2}200 {2}GET +\/healthy +\d+ ms$/),
      expect.stringMatching(/^\S+T\S+Z {2}404 {2}GET +\d+ ms {2}not_found$/),
      expect.stringMatching(/^\S+T\S+Z {2}200 {2}GET +\/g\/collect +\d+ ms$/),
    ]);
    expect(ids(await run(['shop', '--json']))).toEqual([
      ['first', '/healthy'],
      ['second', ''],
      ['third', '/g/collect'],
    ]);
    expect(ids(await run(['other', '--json']))).toEqual([['fourth', '/healthy']]);
  });

  test.each([
    [['shop', '--status', '404'], ['second']],
    [
      ['shop', '--status', '2xx'],
      ['first', 'third'],
    ],
    [['shop', '--status', '5xx'], []],
    [
      ['shop', '--day', today],
      ['first', 'second', 'third'],
    ],
    [['shop', '--day', '2020-02-29'], []],
  ])('%j prints the requests %j', async (argv, expected) => {
    expect(ids(await run([...argv, '--json'])).map(([id]) => id)).toEqual(expected);
  });

  test.each([
    [['shop', '--status', '9xx'], '--status'],
    [['shop', '--status', '4'], '--status'],
    [['shop', '--day', 'yesterday'], '--day'],
    [['shop', '--day', '2026-02-30'], '--day'],
  ])('%j is refused', async (argv, message) => {
    await expect(run(argv)).rejects.toThrow(message);
  });

  test('refuses a site that neither the logs nor the provisioner know', async () => {
    await expect(run(['nosuch'])).rejects.toThrow('no such site');
  });

  test('reports a bucket that can’t be read', async () => {
    await expect(run(['shop'], { ...env, CLOUDFLARE_API_TOKEN: 'wrong' })).rejects.toThrow('status 401');
    const elsewhere = { ...env, CLOUDFLARE_ACCOUNT_ID: '0'.repeat(32) };
    await expect(run(['shop'], elsewhere)).rejects.toThrow('status 403');
  });

  test('reads the logs of this home’s instance if no settings are given', async () => {
    const { CLOUDFLARE_API_URL: url = '', CLOUDFLARE_ACCOUNT_ID: account = '' } = env;
    const away = { url: 'http://127.0.0.1:1' };
    const running: Run = {
      pid: process.pid,
      management: away,
      provisioner: { ...away, secret: '' },
      edge: away,
      verification: away,
      cloudflare: { url, accountId: account },
      proxy: away,
      sitesRepo: '',
      database: '',
      drivers: { dns: '', edge: '', proxy: '', containers: '' },
      demo: { clientId: '', token: '', container: '', pageUrl: '' },
    };
    await writeFile(join(home, 'run.json'), JSON.stringify(running));
    const own = new Home(home);
    await own.save({ ...(await own.instance()), cloudflareToken: TOKEN });
    expect(await run(['shop'], { TAGYARD_HOME: home })).toHaveLength(3);
  });
});

describe('R2 objects in Cloudflare’s API', () => {
  test('are listed by pages', async () => {
    await edge.setRoutes(['*.localhost/*']);
    await send('shop.localhost', '/healthy');
    await written(2);
    const list = async (query: string) => {
      const path = `${API_PREFIX}/accounts/${env.CLOUDFLARE_ACCOUNT_ID}/r2/buckets/${RAW_LOG_BUCKET}/objects`;
      const headers = { authorization: `Bearer ${TOKEN}` };
      return (await emulator.inject({ url: `${path}?${query}`, headers })).json();
    };
    const first = await list('per_page=1&prefix=raw/');
    expect(first).toMatchObject({
      success: true,
      result: [{ key: expect.stringContaining(`raw/dt=${today}/`), size: expect.any(Number) }],
      result_info: { per_page: 1, is_truncated: true, cursor: expect.any(String) },
    });
    const second = await list(
      `per_page=1&prefix=raw/&cursor=${encodeURIComponent(first.result_info.cursor)}`,
    );
    expect(second.result[0].key).not.toBe(first.result[0].key);
    expect(second.result_info).toEqual({ per_page: 1, is_truncated: false });
    expect(await list('prefix=other/')).toMatchObject({ result: [] });
  });
});
