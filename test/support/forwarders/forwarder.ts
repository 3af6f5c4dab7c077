import { mkdir, readFile, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import getPort from 'get-port';
import { createProxyServer } from 'httpxy';
import { Miniflare } from 'miniflare';
import { startEgress } from '../../../sites/local/egress.ts';
import type { LocalCa } from '../../../sites/local/local-ca.ts';
import { startTlsFront } from '../proxy/tls-front.ts';
import { CONFIGURATIONS, type Server } from './configurations.ts';
import { startServer } from './process.ts';

export const FORWARDERS = ['nginx', 'apache', 'caddy', 'haproxy', 'cloudflareWorker'] as const;
export type ForwarderKind = (typeof FORWARDERS)[number];

interface ForwarderOptions {
  /** A folder of its own. */
  readonly directory: string;
  /** The host of the pages. */
  readonly host: string;
  /** The edge hostname, which the snippet names. */
  readonly edgeHost: string;
  readonly snippet: string;
  readonly ca: Pick<LocalCa, 'pathsFor' | 'caFile'>;
  /** The port of the pages' own server on 127.0.0.1. */
  readonly pages: number;
}

/** A running server of a customer, at https://127.0.0.1:<port>. */
export interface RunningForwarder {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startForwarder(
  kind: ForwarderKind,
  options: ForwarderOptions,
): Promise<RunningForwarder> {
  await mkdir(options.directory, { recursive: true });
  return kind === 'cloudflareWorker' ? await startWorker(options) : await startReal(kind, options);
}

async function startReal(kind: Server, options: ForwarderOptions): Promise<RunningForwarder> {
  const { directory, host, edgeHost, ca } = options;
  const port = await getPort({ host: '127.0.0.1' });
  const { cert, key } = await ca.pathsFor(host);
  const pem = join(directory, 'site.pem');
  const parts = await Promise.all([readFile(cert, 'utf8'), readFile(key, 'utf8')]);
  await writeFile(pem, parts.join('\n'));
  const { files, argv } = CONFIGURATIONS[kind]({ ...options, port, pem });
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  const surroundings = { directory, hosts: [host, edgeHost], caFile: ca.caFile };
  const { stop } = await startServer(argv, port, surroundings);
  return { port, stop };
}

/** The place of the client that connects to Cloudflare, as the platform states it to the worker. */
export const WORKER_PLACE = { country: 'US', regionCode: 'CA' };

/**
 * The worker in workerd, behind a server that does what Cloudflare does in front of it: TLS, the visitor's address, and
 * the route of the path. Other paths are the pages'.
 */
async function startWorker(options: ForwarderOptions): Promise<RunningForwarder> {
  const { snippet, ca, pages } = options;
  const egress = await startEgress({ resolve: () => '127.0.0.1', ca: [await readFile(ca.caFile, 'utf8')] });
  const miniflare = new Miniflare({
    workers: [
      {
        name: 'forwarder',
        compatibilityDate: '2024-11-11',
        modules: [{ type: 'ESModule', path: 'worker.js', contents: snippet }],
        unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
        outboundService: { external: { address: `${egress.host}:${egress.port}`, http: { style: 1 } } },
      },
    ],
  });
  const worker = await miniflare.unsafeGetDirectURL('forwarder');
  const [, path] = /routes in the zone[^:]*: [^/]+(\/[^*]+)\*/.exec(snippet) ?? [];
  const relay = createProxyServer();
  relay.on('error', (_error, _request, response) => response?.destroy());
  const front = await startTlsFront(ca, () => (request, response) => {
    const isRouted = path !== undefined && request.url?.startsWith(path) === true;
    const target = isRouted ? worker.href : `http://127.0.0.1:${pages}`;
    const headers = {
      'cf-connecting-ip': request.socket.remoteAddress ?? '',
      'x-forwarded-proto': 'https',
      // The runtime reads `request.cf` from it.
      'mf-cf-blob': JSON.stringify(WORKER_PLACE),
    };
    void relay.web(request, response, { target, headers });
  });
  return {
    port: front.port,
    async stop() {
      await front.close();
      await miniflare.dispose();
      await egress.close();
    },
  };
}

/** The pages' own server: one page at `/`, which may change, as may the further headers of its answer. */
export async function startPages(
  html: string | (() => string),
  headers: () => Readonly<Record<string, string>> = () => ({}),
) {
  const server = http.createServer((request, response) => {
    if (request.url !== '/') return void response.writeHead(404).end();
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers() })
      .end(`<!doctype html>${typeof html === 'string' ? html : html()}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port, // it listens on TCP
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
