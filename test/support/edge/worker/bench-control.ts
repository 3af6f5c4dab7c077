import { WorkerEntrypoint } from 'cloudflare:workers';
import { archive, type RawBatch, rawLog } from '../../../../edge/logs/raw-log.ts';
import { dataPoint, type RequestRecord } from '../../../../edge/logs/request-record.ts';

interface Env {
  readonly ROUTES: KVNamespace;
  readonly SITE_REGISTRY: KVNamespace;
  readonly LOADER_TOKEN_MAP: KVNamespace;
  readonly EDGE_CONFIG: KVNamespace;
  readonly COOKIES: KVNamespace;
  readonly ANALYTICS: AnalyticsEngineDataset;
  readonly RAW_LOG_QUEUE: Queue<RawBatch>;
  readonly RAW_LOGS: R2Bucket;
}

interface Known {
  readonly body: ArrayBuffer;
  readonly headers: [string, string][];
}

/** The edge's answers, by path. */
const known = new Map<string, { readonly body: ArrayBuffer; readonly headers: Record<string, string> }>();
const ORIGIN = 'https://site1-origin.test:8443';
const CONTAINER = '3f0a6679-7425-40de-944b-e07fc1f90000';
const LOADER = 'lt_abcdefghijklmnop';
/** The same as the edge's in the bench: a deployment's default. */
const CONFIG_TTL_MS = 60_000;
type Noted = Pick<RequestRecord, 'route' | 'plugins' | 'cache' | 'consent' | 'events'>;
const NOTHING: Noted = {
  route: '/g/collect',
  plugins: { server_proxy: 0 },
  cache: null,
  consent: null,
  events: {},
};
/** What the edge adds to a request's record: records without it would be smaller, and cheaper to send. */
const NOTED: readonly (readonly [path: RegExp, noted: Noted])[] = [
  [/\/l\/[^/]+$/, { ...NOTHING, route: '/l/:token.js', plugins: { custom_loader: 0 } }],
  [/\/c\/[^/]+$/, { ...NOTHING, route: '/c/:token.js', cache: 'hit' }],
  [
    /\/boot$/,
    { ...NOTHING, route: '/boot', plugins: { custom_loader: 0, cookie_restoration: 0 }, consent: 'all' },
  ],
  [/\/g\/collect$/, { ...NOTHING, events: { page_view: 1, scroll: 1 } }],
];
const noted = new Map<string, Noted>();

/** Searched once per path: a bare worker would know its routes without a search. */
function notedOf(pathname: string): Noted {
  const own = noted.get(pathname) ?? NOTED.find(([path]) => path.test(pathname))?.[1] ?? NOTHING;
  noted.set(pathname, own);
  return own;
}

/** When the site's documents are read again. */
let readUntil = 0;
const log = (event: string) => console.warn(event);
let keep: ReturnType<typeof rawLog> | undefined;

/**
 * The baseline for the edge's benchmark: a worker that does the minimum of each route. It reads the same keys of KV as
 * often as the edge does, and parses the body of a bootstrap, which names a key. It answers the same octets and headers,
 * ready-made, and writes the same logs. It checks, decides and signs nothing.
 */
export default class Control extends WorkerEntrypoint<Env> {
  override async fetch(request: Request): Promise<Response> {
    const began = Date.now();
    const { pathname } = new URL(request.url);
    const response = await this.answer(pathname, request);
    const { method } = request;
    this.record(notedOf(pathname), {
      method,
      status: response.status,
      began,
      bytesOut: known.get(pathname)?.body.byteLength ?? null,
    });
    return response;
  }

  private async answer(pathname: string, request: Request): Promise<Response> {
    if (pathname === '/g/collect')
      return fetch(ORIGIN + request.url.slice(new URL(request.url).origin.length), request);
    if (Date.now() >= readUntil) await this.readDocuments(new URL(request.url).hostname);
    if (pathname.endsWith('/boot')) {
      // The body names the key.
      const { fpid } = await request.json<{ fpid: string }>();
      await this.env.COOKIES.get(`site1:${fpid}`);
    }
    const answer = known.get(pathname);
    return answer === undefined ? new Response(null, { status: 404 }) : new Response(answer.body, answer);
  }

  /** The KV reads that the edge needs for a site: every document once in the time that a copy is fresh. */
  private async readDocuments(host: string): Promise<void> {
    const { ROUTES, SITE_REGISTRY, LOADER_TOKEN_MAP, EDGE_CONFIG } = this.env;
    await Promise.all([
      ROUTES.get(host),
      SITE_REGISTRY.get(CONTAINER),
      LOADER_TOKEN_MAP.get(LOADER),
      EDGE_CONFIG.get(CONTAINER),
    ]);
    readUntil = Date.now() + CONFIG_TTL_MS;
  }

  private record(
    { route, plugins, cache, consent, events }: Noted,
    {
      method,
      status,
      began,
      bytesOut,
    }: Pick<RequestRecord, 'method' | 'status' | 'bytesOut'> & { readonly began: number },
  ): void {
    keep ??= rawLog(this.env.RAW_LOG_QUEUE, Date.now, log);
    const record = {
      time: new Date(began).toISOString(),
      requestId: crypto.randomUUID(),
      method,
      route,
      status,
      duration: Date.now() - began,
      site: 'site1',
      container: CONTAINER,
      plugins,
      cache,
      colo: null,
      country: null,
      signals: null,
      error: null,
      cause: null,
      bytesIn: 0,
      bytesOut,
      bot: false,
      consent,
      events,
      webContainerVersion: null,
      counters: {},
      probe: false,
    };
    this.env.ANALYTICS.writeDataPoint(dataPoint(record));
    keep(record, (work) => this.ctx.waitUntil(work));
  }

  override async queue(batch: MessageBatch<RawBatch>): Promise<void> {
    await archive(batch, this.env.RAW_LOGS, log);
  }

  /** Sets the answer of `path`. */
  learn(path: string, { body, headers }: Known): void {
    // Headers as an object, as workers usually give them: the runtime reads a list of pairs three times as slowly.
    const joined: Record<string, string> = {};
    for (const [name, value] of headers) {
      if (name === 'set-cookie') throw new Error('an answer sets a cookie: an object can hold only one');
      joined[name] = joined[name] === undefined ? value : `${joined[name]}, ${value}`;
    }
    known.set(path, { body, headers: joined });
  }
}
