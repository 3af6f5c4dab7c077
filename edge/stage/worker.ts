import { WorkerEntrypoint } from 'cloudflare:workers';
import type { Plugin } from '../../plugins/contract.ts';
import { PLUGINS } from '../../plugins/index.ts';
import { buildEdge, type Edge } from '../app.ts';
import { refuseClashes } from '../claims.ts';
import { ORIGIN_TIMEOUT_MS } from '../http/origin.ts';
import { archive, ingest, type RawBatch, rawLog } from '../logs/raw-log.ts';
import type { RequestRecord } from '../logs/request-record.ts';

const NAMESPACES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG', 'COOKIES'] as const;
type Namespace = (typeof NAMESPACES)[number];

type Store = Namespace | 'RAW_LOG_QUEUE' | 'RAW_LOGS';

type Env = Record<Namespace, KVNamespace> & {
  readonly HOP_SECRET: string;
  readonly HOP_SECRET_PREVIOUS: string;
  readonly RAW_LOG_QUEUE: Queue<RawBatch>;
  readonly RAW_LOGS: R2Bucket;
};

/**
 * `fail`: every call throws; `alternate`: every second call throws, counted over all stores; `hold`: a call waits until
 * the fault is lifted; a number: a delay in milliseconds.
 */
type Fault = 'fail' | 'alternate' | 'hold' | number;

interface Event {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The state that tests set and read. A module's memory is enough, because there is one isolate. */
const faults: Partial<Record<Store, Fault>> = {};
let calls = 0;
let clockOffset = 0;
let reads: string[] = [];
let writes: string[] = [];
let cacheMatches: string[] = [];
let events: Event[] = [];
let records: RequestRecord[] = [];

async function applyFault(namespace: Store): Promise<void> {
  const fault = faults[namespace];
  calls += 1;
  if (fault === 'fail' || (fault === 'alternate' && calls % 2 === 0)) throw new Error(`${namespace} is down`);
  if (typeof fault === 'number') await scheduler.wait(fault);
  // Polled, because a request must not wait for a promise of another request.
  while (faults[namespace] === 'hold') await scheduler.wait(10);
}

/** The real binding, with a test's faults and a record of every call. */
function watched(namespace: Namespace, kv: KVNamespace) {
  return {
    async get(key: string) {
      reads.push(`${namespace}/${key}`);
      await applyFault(namespace);
      return kv.get(key);
    },
    async put(key: string, value: string, options: { expirationTtl: number }) {
      writes.push(`${namespace}/${key}`);
      await applyFault(namespace);
      return kv.put(key, value, options);
    },
    async delete(key: string) {
      writes.push(`${namespace}/${key}`);
      await applyFault(namespace);
      return kv.delete(key);
    },
  };
}

const log = (event: string, fields: Event['fields']) => events.push({ event, fields });

function build(env: Env): Edge {
  const now = () => Date.now() + clockOffset;
  const keep = rawLog(
    {
      async send(batch, options) {
        await applyFault('RAW_LOG_QUEUE');
        return env.RAW_LOG_QUEUE.send(batch, options);
      },
    },
    now,
    log,
  );
  const { default: cache } = caches;
  return buildEdge({
    plugins: StageWorker.plugins,
    namespaces: {
      ROUTES: watched('ROUTES', env.ROUTES),
      SITE_REGISTRY: watched('SITE_REGISTRY', env.SITE_REGISTRY),
      LOADER_TOKEN_MAP: watched('LOADER_TOKEN_MAP', env.LOADER_TOKEN_MAP),
      EDGE_CONFIG: watched('EDGE_CONFIG', env.EDGE_CONFIG),
      COOKIES: watched('COOKIES', env.COOKIES),
    },
    cache: {
      match(request, options) {
        cacheMatches.push(String(request));
        return cache.match(request, options);
      },
      put: (request, response) => cache.put(request, response),
      delete: (request, options) => cache.delete(request, options),
    },
    fetch: (input, init) => fetch(input, init),
    now,
    log,
    record(record, waitUntil) {
      records.push(record);
      keep(record, waitUntil);
    },
    vendor: 'https://vendor.test',
    variables: {},
    hopSecret: env.HOP_SECRET,
    previousHopSecret: env.HOP_SECRET_PREVIOUS,
    configTtl: 60_000,
    originTimeout: StageWorker.originTimeout,
  });
}

let edge: Edge | undefined;

/** The edge with its real plugins and stores. The stage controls faults and clock over RPC. */
export default class StageWorker extends WorkerEntrypoint<Env> {
  /** Another entry module sets its own list, before the first request. */
  static plugins: readonly Plugin[] = PLUGINS;
  static originTimeout: number = ORIGIN_TIMEOUT_MS;
  /** Where deliveries are sent; initially nowhere. */
  static ingest: Parameters<typeof ingest>[1] = {};

  override fetch(request: Request): Promise<Response> {
    edge ??= build(this.env);
    return edge(request, (work) => this.ctx.waitUntil(work));
  }

  override async queue(batch: MessageBatch<RawBatch>): Promise<void> {
    const put = async (key: string, text: string) => {
      await applyFault('RAW_LOGS');
      return this.env.RAW_LOGS.put(key, text);
    };
    await ingest(await archive(batch, { put }, log), StageWorker.ingest, log);
  }

  /** Which claims of the plugins clash; `null`: none. */
  clash(): string | null {
    try {
      refuseClashes(StageWorker.plugins);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  fault(namespace: Store, fault: Fault | null): void {
    if (fault === null) delete faults[namespace];
    else faults[namespace] = fault;
  }

  /** Sends each delivery to this URL, with this secret. */
  ingestTo(url: string, secret: string): void {
    StageWorker.ingest = { INGEST_URL: url, INGEST_SECRET: secret };
  }

  /** Advances the edge's clock. */
  forward(ms: number): void {
    clockOffset += ms;
  }

  /** Drops the isolate's memory, but not the stores and the data centre's cache. */
  restart(): void {
    edge = undefined;
  }

  /** Everything recorded since the last call. */
  seen() {
    const seen = { reads, writes, cacheMatches, events, records };
    [reads, writes, cacheMatches, events, records] = [[], [], [], [], []];
    return seen;
  }
}
