import { randomUUID } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type {
  ConsentSettings,
  EdgeConfigDocument,
  KvNamespace,
  RegistryDocument,
  RegistryDomain,
} from '../../plugins/document.ts';
import { bundleStage, COMPATIBILITY_DATE } from '../bundle.ts';
import type { RawBatch } from '../logs/raw-log.ts';
import type { ArchivedRecord, RequestRecord } from '../logs/request-record.ts';
import { startUpstream, type Upstream } from './upstream.ts';

export const HOP_SECRET = 'a-hop-secret-for-the-tests-of-the-edge';
/** The second secret that the edge accepts from the proxy. */
export const HOP_SECRET_PREVIOUS = 'the-hop-secret-before-it';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read any answer and assert on it.
  readonly json: any;
}

export interface Sending {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** A site in the edge's stores. `host` is the edge hostname, `<id>.edge.test`. */
export interface StagedSite {
  readonly id: string;
  readonly host: string;
  readonly container: string;
  readonly loader: string;
  readonly domains: readonly RegistryDomain[];
}

export interface SiteOptions {
  readonly features?: EdgeConfigDocument['features'];
  readonly modules?: EdgeConfigDocument['modules'];
  /** What the registry has of plugins that fail closed. */
  readonly closed?: RegistryDocument['closed'];
  readonly consent?: EdgeConfigDocument['consent'];
  /** Further rules of consent, for the registry and `EDGE_CONFIG`. */
  readonly rules?: Partial<ConsentSettings>;
  readonly domains?: readonly Partial<RegistryDomain>[];
  readonly proxyPaths?: readonly string[];
  /** The edge answers nothing of the site. */
  readonly off?: true;
  readonly dataLayers?: readonly string[];
  readonly until?: string;
}

type StagedStore = KvNamespace | 'COOKIES' | 'RAW_LOG_QUEUE' | 'RAW_LOGS';

/** The worker's RPC methods; see `edge/stage/worker.ts`. */
interface Control {
  clash(): Promise<string | null>;
  fault(namespace: StagedStore, fault: 'fail' | 'alternate' | 'hold' | number | null): Promise<void>;
  forward(ms: number): Promise<void>;
  ingestTo(url: string, secret: string): Promise<void>;
  restart(): Promise<void>;
  seen(): Promise<{
    reads: string[];
    writes: string[];
    cacheMatches: string[];
    events: { event: string; fields: Record<string, unknown> }[];
    records: RequestRecord[];
  }>;
}

export interface Stage extends Control {
  readonly upstream: Upstream;
  /** The worker's port on 127.0.0.1. */
  readonly port: number;
  /** Creates a site: writes its documents to the stores. */
  site(options?: SiteOptions): Promise<StagedSite>;
  put(namespace: KvNamespace | 'COOKIES', key: string, value: unknown): Promise<void>;
  get(namespace: KvNamespace | 'COOKIES', key: string): Promise<unknown>;
  remove(namespace: KvNamespace, key: string): Promise<void>;
  /** When the key expires, in seconds since the epoch. */
  expiration(namespace: KvNamespace | 'COOKIES', key: string): Promise<number | undefined>;
  send(host: string, path: string, sending?: Sending): Promise<Answer>;
  /** All objects of the raw logs, by key. */
  rawLogs(): Promise<Record<string, ArchivedRecord[]>>;
  /** Delivers batches to the queue's consumer at once. Returns the delay in seconds, if the consumer retries the first. */
  deliver(batches: RawBatch | readonly RawBatch[], attempts?: number): Promise<number | undefined>;
  /** POST /boot of a page on the site's primary domain. */
  boot(site: StagedSite, body?: object, headers?: Record<string, string>): Promise<Answer>;
  close(): Promise<void>;
}

const NAMESPACES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG', 'COOKIES'];

interface StageSettings {
  /** Modules whose default export is a plugin or a list of plugins, which run after Tagyard's own. */
  readonly plugins?: readonly URL[];
}

/**
 * The edge in workerd with its real plugins and those of `plugins`, real stores in memory, and one real upstream. Throws
 * if the plugins' claims clash, or if Miniflare or esbuild is missing; the message then says what to install.
 *
 * @example
 * const stage = await startStage({ plugins: [new URL('./greeting.ts', import.meta.url)] });
 * const { host } = await stage.site({ features: { greeting: true } });
 * const { status } = await stage.send(host, '/greeting');
 * await stage.close();
 */
export async function startStage({ plugins = [] }: StageSettings = {}): Promise<Stage> {
  const stage = await startStageOf(await bundleStage(plugins.map((url) => fileURLToPath(url))));
  const clash = await stage.clash();
  if (clash === null) return stage;
  await stage.close();
  throw new Error(clash);
}

/** Like `startStage`, with another worker: the text of one module, which has the methods of `edge/stage/worker.ts`. */
export async function startStageOf(contents: string): Promise<Stage> {
  const { Miniflare } = await import('miniflare').catch(missing);
  const upstream = await startUpstream();
  const miniflare = new Miniflare({
    workers: [
      {
        name: 'edge',
        compatibilityDate: COMPATIBILITY_DATE,
        modules: [{ type: 'ESModule', path: 'worker.js', contents }],
        bindings: { HOP_SECRET, HOP_SECRET_PREVIOUS },
        kvNamespaces: NAMESPACES,
        r2Buckets: ['RAW_LOGS'],
        queueProducers: { RAW_LOG_QUEUE: 'raw-log' },
        queueConsumers: { 'raw-log': { maxBatchTimeout: 0, maxRetries: 100 } },
        unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
        outboundService: { external: { address: `127.0.0.1:${upstream.port}`, http: { style: 1 } } },
      },
    ],
  });
  await miniflare.ready;
  const base = await miniflare.unsafeGetDirectURL('edge');
  const stub = await miniflare.getWorker('edge');
  const control = stub as unknown as Control; // an RPC stub, typed as a Fetcher
  const kv = (namespace: string) => miniflare.getKVNamespace(namespace, 'edge');
  let sites = 0;

  const stage: Stage = {
    upstream,
    port: Number(base.port),
    clash: () => control.clash(),
    fault: (namespace, fault) => control.fault(namespace, fault),
    forward: (ms) => control.forward(ms),
    ingestTo: (url, secret) => control.ingestTo(url, secret),
    restart: () => control.restart(),
    seen: () => control.seen(),
    async put(namespace, key, value) {
      await (await kv(namespace)).put(key, typeof value === 'string' ? value : JSON.stringify(value));
    },
    async get(namespace, key) {
      return (await kv(namespace)).get(key, 'json');
    },
    async remove(namespace, key) {
      await (await kv(namespace)).delete(key);
    },
    async expiration(namespace, key) {
      const { keys } = await (await kv(namespace)).list({ prefix: key });
      return keys.find(({ name }) => name === key)?.expiration;
    },
    async rawLogs() {
      const bucket = await miniflare.getR2Bucket('RAW_LOGS', 'edge');
      const { objects } = await bucket.list();
      const read = async ({ key }: { key: string }) => {
        const text = (await (await bucket.get(key))?.text()) ?? '';
        return [key, text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))];
      };
      return Object.fromEntries(await Promise.all(objects.map(read)));
    },
    async deliver(batches, attempts = 1) {
      const messages = [batches].flat().map((body) => ({
        id: randomUUID(),
        timestamp: new Date(),
        attempts,
        body,
      }));
      const { retryMessages } = await stub.queue('raw-log', messages);
      return retryMessages.find(({ msgId }) => msgId === messages[0]?.id)?.delaySeconds;
    },
    async site(options = {}) {
      sites += 1;
      const site = describeSite(sites, options);
      const { id: siteId, container: containerId } = site;
      const until = options.until === undefined ? {} : { until: options.until };
      await Promise.all([
        stage.put('ROUTES', site.host, {
          version: 1,
          siteId,
          containerId,
          origin: `https://${siteId}-origin.test:8443`,
        }),
        stage.put('SITE_REGISTRY', containerId, {
          version: 1,
          siteId,
          containerId,
          domains: site.domains,
          proxyPaths: options.proxyPaths ?? [],
          ...(options.off && { off: true }),
          ...(options.dataLayers === undefined ? {} : { dataLayers: options.dataLayers }),
          ...(options.closed && { closed: options.closed }),
          consent: options.consent ?? 'opt_out',
          ...options.rules,
        }),
        stage.put('LOADER_TOKEN_MAP', site.loader, { version: 1, containerId, ...until }),
        stage.put('EDGE_CONFIG', containerId, {
          version: 2,
          module: 'tagyard',
          features: options.features ?? {},
          modules: options.modules ?? {},
          consent: options.consent ?? 'opt_out',
          ...options.rules,
        }),
      ]);
      return site;
    },
    async send(host, path, { method = 'GET', headers = {}, body } = {}) {
      // Not fetch, which would not send a given host, hop-by-hop headers or unnormalized paths.
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request(
          { host: base.hostname, port: base.port, path, method, headers: { host, ...headers } },
          resolve,
        )
          .on('error', reject)
          .end(body);
      });
      const text = await readText(response);
      const isJson = text !== '' && /json/.test(response.headers['content-type'] ?? '');
      const json = isJson ? JSON.parse(text) : undefined;
      return { status: response.statusCode ?? 0, headers: response.headers, text, json };
    },
    boot(site, body = {}, headers = {}) {
      const domain = site.domains[0]?.domain ?? '';
      return stage.send(site.host, '/boot', {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: `https://www.${domain}`, ...headers },
        body: JSON.stringify({ loader: site.loader, url: `https://www.${domain}/page?x=1`, ...body }),
      });
    },
    async close() {
      await miniflare.dispose();
      await upstream.close();
    },
  };
  return stage;
}

function missing(cause: unknown): never {
  throw new Error('a stage needs the package miniflare: npm install --include=optional tagyard', { cause });
}

function describeSite(number: number, { domains = [{}] }: SiteOptions): StagedSite {
  const digits = String(number).padStart(4, '0');
  const id = `site${number}`;
  return {
    id,
    host: `${id}.edge.test`,
    container: randomUUID(),
    loader: `lt_loader0token0${digits}`,
    domains: domains.map((domain, index) => ({
      domain: `${id}-${index}.example`,
      webTagId: `GTM-ABC${digits}${index}`,
      token: `ct_container0${index}tok${digits}`,
      cookieDomain: domain.domain ?? `${id}-${index}.example`,
      active: true,
      ...domain,
    })),
  };
}
