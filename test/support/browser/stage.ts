import { createHash, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { createProxyServer } from 'httpxy';
import { type EdgeHost, startEdgeHost } from '../../../edge/host.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { renderSnippet, type SnippetOptions } from '../../../plugins/custom_loader/snippet.ts';
import { buildVendor } from '../../../sites/local/demo/vendor/app.ts';
import type { WebContainer } from '../../../sites/local/demo/vendor/google-tag.ts';
import { startEgress } from '../../../sites/local/egress.ts';
import type { LocalCa } from '../../../sites/local/local-ca.ts';
import { kvDocuments } from '../../../sites/manifest/documents.ts';
import { type Manifest, type ManifestInput, manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../manifest.ts';
import { HOP_SECRET, proxyHome, put } from '../proxy/proxy.ts';
import { startTlsFront } from '../proxy/tls-front.ts';
import { startTagServer } from '../tag-server.ts';
import type { LaunchOptions } from './chromium.ts';

/** A fault of the edge hostname: `refuse` breaks the connection, `hold` waits for `release`, `fail` answers 503. */
type Fault = 'refuse' | 'hold' | 'fail';

export interface BrowserSite {
  readonly manifest: Manifest;
  /** Base URLs of a page's host on the first domain, of the edge hostname and of the first custom domain. */
  readonly url: { readonly shop: string; readonly edge: string; readonly custom: string };
  /** The snippet of one of the site's domains. */
  snippet(options?: Partial<SnippetOptions> & { readonly domain?: number }): string;
  /** The profile's record in the edge's cookie store; `null` if there is none. */
  profile(id: string | undefined): Promise<unknown>;
  /** The keys of all records that the store has of the site's visitors. */
  profiles(): Promise<string[]>;
}

/** A request that the edge hostname, the shop's pages or the vendor received. */
interface Asked {
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface BrowserStage {
  /** Options for `launchChromium`: every name resolves to the stage, and its CA is trusted. */
  readonly browser: Pick<LaunchOptions, 'hosts' | 'trustedKey'>;
  /** The certificate authority of all hosts of the stage. */
  readonly ca: Pick<LocalCa, 'pathsFor' | 'caFile'>;
  /** The port on 127.0.0.1 of all hosts except the custom domains. */
  readonly port: number;
  readonly tagServerUrl: string;
  readonly edge: Pick<EdgeHost, 'kv'>;
  /** Creates a site `shop<n>` at edge and proxy. Its custom domains begin with `metrics.`. */
  site(manifest?: Partial<ManifestInput>): Promise<BrowserSite>;
  /** Serves a page at a path of every host except edge, vendor and custom domains. */
  serve(path: string, html: string, headers?: Readonly<Record<string, string>>): void;
  /** Chooses the fault of a request to the edge hostname. Unset: none. */
  fault: (path: string) => Fault | undefined;
  /** Where the visitors of an edge hostname are, as the hop before the edge states it. Unset: it states nothing. */
  placeOf: (host: string) => { readonly country: string; readonly region: string } | undefined;
  /** The number of held requests. */
  held(): number;
  /** Forwards the held requests to the edge. */
  release(): void;
  asked(): readonly Asked[];
  /** What a web container has. Unset: no Google tag, so that nothing follows `gtm.js`. */
  webContainer: (id: string) => WebContainer;
  /** The number of browsers' requests to the vendor for `gtm.js`, the snippet's fallback. */
  direct(): number;
  /** Bodies of the detection signals that the edge forwarded to the tag servers. */
  detections(): Promise<unknown[]>;
  close(): Promise<void>;
}

const VENDOR = 'www.googletagmanager.com';
/** The vendor's second name, to which hits without a server container are sent. */
const ANALYTICS = 'www.google-analytics.com';
const EDGE_ZONE = 'example.net';

/**
 * https hosts for a real browser: the edge in workerd with documents from a manifest, and the embedded proxy with the
 * custom domain and the origin. Behind the proxy is a simulated tag server. A simulated vendor has the real vendor's
 * name, and any other host has pages.
 */
export async function startBrowserStage(): Promise<BrowserStage> {
  const home = await proxyHome();
  const tagServer = await startTagServer();
  const vendor = buildVendor({
    publicUrl: `https://${VENDOR}`,
    analyticsUrl: `https://${ANALYTICS}`,
    containerOf: (id) => stage.webContainer(id),
  });
  await vendor.ready();
  const pages = new Map<string, { html: string; headers: Readonly<Record<string, string>> }>();
  const held: (() => void)[] = [];
  const relay = createProxyServer();
  relay.on('error', (_error, _request, response) => response?.destroy());

  /** Replaces Cloudflare's TLS termination: passes host and scheme of the request on to the worker. */
  const toEdge: RequestListener = (request, response) => {
    const fault = stage.fault(request.url ?? '');
    if (fault === 'refuse') return void request.socket.destroy();
    if (fault === 'fail') return void response.writeHead(503).end();
    const place = stage.placeOf((request.headers.host ?? '').replace(/:\d+$/, ''));
    const proxied = {
      'x-tagyard-hop-secret': HOP_SECRET,
      'x-forwarded-proto': 'https',
      ...(place && { 'x-forwarded-country': place.country, 'x-forwarded-region': place.region }),
    };
    // If a request has the hop secret, the edge ignores what a domain's own server states. So a request with a
    // forwarder token gets no hop secret.
    const headers = 'x-tagyard-forwarder-token' in request.headers ? {} : proxied;
    const go = () => void relay.web(request, response, { target: edge.url.href, headers });
    if (fault === 'hold') held.push(go);
    else go();
  };
  const toPage: RequestListener = (request, response) => {
    const page = pages.get(new URL(request.url ?? '/', 'https://page').pathname);
    if (page === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...page.headers }).end(page.html);
  };
  const front = await startTlsFront(home.ca, (host) => {
    if (host === VENDOR || host === ANALYTICS)
      return (request, response) => vendor.routing(request, response);
    return host.endsWith(`.${EDGE_ZONE}`) ? toEdge : toPage;
  });

  const ca = await readFile(home.ca.caFile, 'utf8');
  const egress = await startEgress({ resolve: () => '127.0.0.1', ca: [ca] });
  const edge = await startEdgeHost({
    port: 0,
    persistDir: join(home.directory, 'edge'),
    vars: { HOP_SECRET, TAG_UPSTREAM: `https://${VENDOR}:${front.port}`, CONFIG_TTL_SECONDS: '2' },
    egress,
  });
  const proxy = embeddedBackend({
    ...home.settings,
    edgeUpstream: { scheme: 'http', address: '127.0.0.1', port: Number(edge.url.port) },
  });
  const { tlsPort } = await proxy.start();
  await edge.setRoutes([`*.${EDGE_ZONE}/*`]);
  const { port: tagServerPort } = new URL(tagServer.url);
  const upstreams = [{ address: '127.0.0.1', port: Number(tagServerPort) }];
  let sites = 0;

  const stage: BrowserStage = {
    browser: {
      hosts: { 'metrics.*': `127.0.0.1:${tlsPort}`, '*': `127.0.0.1:${front.port}` },
      trustedKey: keyHash(ca),
    },
    ca: home.ca,
    port: front.port,
    tagServerUrl: tagServer.url,
    edge,
    fault: () => undefined,
    placeOf: () => undefined,
    webContainer: () => ({ googleTag: null, destinations: [], serverContainerUrl: null }),
    async site(input = {}) {
      sites += 1;
      const name = `shop${sites}`;
      const customDomains = [`metrics.${name}.example`];
      const manifest = manifestSchema.parse(manifestInput(name, sites, { customDomains, ...input }));
      const { hostnames, site } = manifest;
      for (const { namespace, key, value } of kvDocuments(manifest, { originPort: tlsPort })) {
        await edge.kv[namespace].put(key, JSON.stringify(value));
      }
      const outcomes = await proxy.install([
        put(site, { site, vhosts: [{ kind: 'origin', host: hostnames.origin, upstreams }] }),
        ...manifest.customDomains.map((host) =>
          put(`${site}/${host}`, { site, vhosts: [{ kind: 'custom', host, edgeHost: hostnames.edge }] }),
        ),
      ]);
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
      return browserSite(manifest, edge);
    },
    serve: (path, html, headers = {}) => pages.set(path, { html: `<!doctype html>${html}`, headers }),
    held: () => held.length,
    release() {
      for (const go of held.splice(0)) go();
    },
    asked: () =>
      front.seen.map(({ headers, method = '', url = '' }) => ({
        host: (headers.host ?? '').replace(/:\d+$/, ''),
        method,
        path: url,
        headers,
      })),
    direct: () =>
      front.seen.filter(
        ({ headers, url }) =>
          headers.host === VENDOR &&
          headers['sec-fetch-dest'] === 'script' &&
          url?.startsWith('/gtm.js') === true,
      ).length,
    async detections() {
      const response = await fetch(`${tagServer.url}/tagyard-demo/events`);
      const { events } = (await response.json()) as { events: { path: string; body: string }[] }; // its documented shape
      return events
        .filter(({ path }) => path === '/tagyard/detection')
        .map(({ body }) => JSON.parse(body) as unknown);
    },
    async close() {
      stage.release();
      await edge.close();
      await Promise.all([proxy.close(), egress.close(), front.close(), vendor.close()]);
      await tagServer[Symbol.asyncDispose]();
      await home.remove();
    },
  };
  return stage;
}

function browserSite(manifest: Manifest, edge: EdgeHost): BrowserSite {
  const { site, hostnames, domains, customDomains, loaderToken } = manifest;
  const url = {
    shop: `https://www.${domains[0]?.domain}`,
    edge: `https://${hostnames.edge}`,
    custom: `https://${customDomains[0]}`,
  };
  return {
    manifest,
    url,
    snippet: ({ domain = 0, ...options } = {}) =>
      renderSnippet({
        edgeUrl: url.edge,
        loaderToken,
        webTagId: domains[domain]?.webTagId ?? '',
        ...options,
      }),
    async profile(id) {
      const record = await edge.kv.COOKIES.get(`${site}:${id}`);
      return record === null ? null : JSON.parse(record);
    },
    async profiles() {
      const { keys } = await edge.kv.COOKIES.list({ prefix: `${site}:` });
      return keys.map(({ name }) => name);
    },
  };
}

/** The hash by which Chromium identifies a trusted key. */
function keyHash(certificate: string): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(key).digest('base64');
}
