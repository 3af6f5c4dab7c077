import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { Miniflare } from 'miniflare';
import { request } from 'undici';
import { bundleEdge, bundleWorker, COMPATIBILITY_DATE } from '../../edge/bundle.ts';
import { HOST_NAMESPACES } from '../../edge/host.ts';
import { forwarderToken, prefixed, stated } from '../support/edge/forwarder.ts';
import { processTree } from './memory.ts';
import type { Shot } from './wrk.ts';

/** A script as large as the vendor's for a middling container, uncompressed. */
const SCRIPT = `/*${' '.repeat(100 * 1024)}*/`;
const HOST = 'site1.edge.test';
const CONTAINER = '3f0a6679-7425-40de-944b-e07fc1f90000';
const LOADER = 'lt_abcdefghijklmnop';
const PROFILE = '0123456789abcdef0123456789abcdef';

/** The headers of the bench's requests, as browsers send them. */
const browser = {
  // The name must be spelled like this; otherwise wrk adds a header of its own.
  Host: HOST,
  'user-agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  accept: '*/*',
  'accept-language': 'en-GB,en;q=0.9',
  referer: 'https://www.shop.example/',
  cookie: `_fpid=${PROFILE}; _ga=GA1.1.111111111.1700000000; _ga_ABCDEF1234=GS1.1.1700000000.1.1.1700000001.0.0.0`,
};
const PREFIX = '/m3trics1';
const TOKEN = forwarderToken('bench');
/** The headers of a browser's request as the domain's own server forwards it. */
const forwarded = { ...browser, ...stated(TOKEN, 'www.shop.example') };
const ORIGIN = 'https://www.shop.example';
const COOKIES = {
  _ga: 'GA1.1.111111111.1700000000',
  _ga_ABCDEF1234: 'GS1.1.1700000000.1.1.1700000001.0.0.0',
};
const fromPage = { origin: ORIGIN, 'content-type': 'text/plain;charset=UTF-8' };

/** The bootstrap of a known visitor's page, as the loader sends it; `session` is the token of the page before. */
const bootOf = (session: string | undefined) => ({
  method: 'POST',
  body: JSON.stringify({
    loader: LOADER,
    url: ORIGIN,
    fpid: PROFILE,
    session: session && { id: session },
    consent: {},
    cookies: COOKIES,
  }),
});

const shotsOf = (session?: string) => ({
  loader: { path: `/l/${LOADER}.js`, headers: browser },
  script: { path: '/c/ct_abcdefghijklmnop.js', headers: browser },
  boot: { ...bootOf(session), path: '/boot', headers: { ...browser, ...fromPage } },
  prefixedLoader: { path: `${PREFIX}/l/${LOADER}.js`, headers: forwarded },
  prefixedScript: { path: `${PREFIX}/c/ct_abcdefghijklmnop.js`, headers: forwarded },
  prefixedBoot: { ...bootOf(session), path: `${PREFIX}/boot`, headers: { ...forwarded, ...fromPage } },
  collect: {
    method: 'POST',
    path: '/g/collect?v=2&tid=G-ABCDEF1234&en=page_view',
    headers: browser,
    body: 'en=scroll',
  },
});

interface Known {
  readonly body: ArrayBuffer;
  readonly headers: [string, string][];
}

const MADE_BY_THE_RUNTIME: ReadonlySet<string> = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'date',
]);

type Contender = 'edge' | 'control' | 'flaky';

export interface Bed extends AsyncDisposable {
  /** Ports on 127.0.0.1 of the workers' own sockets. */
  readonly ports: Readonly<Record<Contender, number>>;
  /** The id of the one process in which all workers run. */
  readonly runtime: number;
  readonly shots: ReturnType<typeof shotsOf>;
  /** Makes the control answer as the edge does. */
  imitate(): Promise<void>;
  /** Throws if the status is 400 or above. */
  send(contender: Contender, shot: Shot): Promise<Known>;
}

/** The edge, its control and a flaky edge in one workerd, on sockets of their own, with one upstream for all. */
export async function startBed(): Promise<Bed> {
  const upstream = createServer({ requireHostHeader: false }, (incoming, outgoing) => {
    incoming.resume().on('end', () => {
      if (!incoming.url?.includes('/gtm.js')) return outgoing.writeHead(204).end();
      return outgoing.writeHead(200, { 'content-type': 'application/javascript' }).end(SCRIPT);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as AddressInfo; // a TCP server's address is never a string

  const bundle = (name: string) =>
    bundleWorker(fileURLToPath(new URL(`../support/edge/worker/${name}.ts`, import.meta.url)));
  const worker = (name: Contender, contents: string) => ({
    name,
    compatibilityDate: COMPATIBILITY_DATE,
    modules: [{ type: 'ESModule' as const, path: `${name}.js`, contents }],
    bindings: {
      HOP_SECRET: 'a-hop-secret',
      TAG_UPSTREAM: 'http://vendor.test',
      // The edge keeps documents as long as a deployment does by default. If it kept them for one second, Miniflare's
      // cache, a worker in the same process, would answer and store each document every second. The flaky edge keeps
      // them for one second, so that it needs its stores often.
      ...(name === 'flaky' && { CONFIG_TTL_SECONDS: '1' }),
    },
    kvNamespaces: [...HOST_NAMESPACES],
    r2Buckets: ['RAW_LOGS'],
    analyticsEngineDatasets: { ANALYTICS: { dataset: 'requests' } },
    queueProducers: { RAW_LOG_QUEUE: name },
    queueConsumers: { [name]: { maxBatchTimeout: 0 } },
    unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
    outboundService: { external: { address: `127.0.0.1:${port}`, http: { style: 1 as const } } },
  });
  const miniflare = new Miniflare({
    // The flaky edge logs every failure of its stores; the figures would be lost in that output.
    handleRuntimeStdio(stdout: Readable, stderr: Readable) {
      stdout.resume();
      stderr.resume();
    },
    workers: [
      worker('edge', await bundleEdge()),
      worker('control', await bundle('bench-control')),
      worker('flaky', await bundle('bench-flaky')),
    ],
  });
  await miniflare.ready;
  const portOf = async (name: Contender) => Number((await miniflare.unsafeGetDirectURL(name)).port);
  const ports = {
    edge: await portOf('edge'),
    control: await portOf('control'),
    flaky: await portOf('flaky'),
  };
  const runtime = processTree(process.pid).find(
    (pid) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'workerd\n',
  );
  if (runtime === undefined) throw new Error('there is no workerd among this process’s children');

  const put = async (namespace: string, key: string, value: object) =>
    (await miniflare.getKVNamespace(namespace, 'edge')).put(key, JSON.stringify(value));
  const site = { version: 1, siteId: 'site1', containerId: CONTAINER };
  await put('ROUTES', HOST, { ...site, origin: 'https://site1-origin.test:8443' });
  const domain = { domain: 'shop.example', webTagId: 'GTM-ABC1234', token: 'ct_abcdefghijklmnop' };
  await put('SITE_REGISTRY', CONTAINER, {
    ...site,
    domains: [{ ...domain, cookieDomain: 'shop.example', active: true, sameOrigin: prefixed(PREFIX, TOKEN) }],
    proxyPaths: [],
    consent: 'opt_out',
  });
  await put('LOADER_TOKEN_MAP', LOADER, { version: 1, containerId: CONTAINER });
  await put('EDGE_CONFIG', CONTAINER, {
    version: 2,
    module: 'tagyard',
    features: { cookie_restoration: true },
    modules: {},
    consent: 'opt_out',
  });

  const [setAt, expiresAt] = [Date.now() - 86_400_000, Date.now() + 300 * 86_400_000];
  await put('COOKIES', `site1:${PROFILE}`, {
    version: 1,
    session: null,
    cookies: Object.entries(COOKIES).map(([name, value]) => ({ name, value, setAt, expiresAt })),
    startedAt: setAt,
  });

  const control = (await miniflare.getWorker('control')) as unknown as {
    learn(path: string, answer: Known): Promise<void>; // an RPC stub, typed as a Fetcher
  };
  const send: Bed['send'] = async (contender, { path, ...shot }) => {
    const { statusCode, headers, body } = await request(`http://127.0.0.1:${ports[contender]}${path}`, shot);
    const octets = await body.arrayBuffer();
    if (statusCode >= 400) throw new Error(`${contender} ${path}: ${statusCode} ${Buffer.from(octets)}`);
    const own = Object.entries(headers).flatMap(([name, value = []]) =>
      MADE_BY_THE_RUNTIME.has(name) ? [] : [value].flat().map((one): [string, string] => [name, one]),
    );
    return { body: octets, headers: own };
  };
  const { body: first } = await send('edge', shotsOf().boot);
  const { session } = JSON.parse(Buffer.from(first).toString());
  const shots = shotsOf(session.token);
  return {
    ports,
    runtime,
    shots,
    send,
    async imitate() {
      const { collect: _, ...answered } = shots;
      for (const shot of Object.values(answered)) {
        await control.learn(shot.path, await send('edge', shot));
      }
    },
    async [Symbol.asyncDispose]() {
      await miniflare.dispose();
      upstream.closeAllConnections();
      upstream.close();
    },
  };
}
