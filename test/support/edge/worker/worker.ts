import { WorkerEntrypoint } from 'cloudflare:workers';
import { buildEdge, type Edge } from '../../../../edge/app.ts';
import { archive, type RawBatch, rawLog } from '../../../../edge/logs/raw-log.ts';
import type { RequestRecord } from '../../../../edge/logs/request-record.ts';
import { PLUGINS } from '../../../../plugins/index.ts';

const NAMESPACES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG', 'COOKIES'] as const;
type Namespace = (typeof NAMESPACES)[number];

type Store = Namespace | 'RAW_LOG_QUEUE' | 'RAW_LOGS';

type Env = Record<Namespace, KVNamespace> & {
  readonly HOP_SECRET: string;
  readonly RAW_LOG_QUEUE: Queue<RawBatch>;
  readonly RAW_LOGS: R2Bucket;
};

/** `fail`: the store throws; `alternate`: at every second call; a number: it answers that many milliseconds late. */
type Fault = 'fail' | 'alternate' | number;

interface Event {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What a test can turn and read; the isolate is one, so it is the worker's own memory. */
const faults: Partial<Record<Store, Fault>> = {};
let calls = 0;
let clockOffset = 0;
let reads: string[] = [];
let writes: string[] = [];
let cacheMatches: string[] = [];
let events: Event[] = [];
let records: RequestRecord[] = [];

async function suffer(namespace: Store): Promise<void> {
  const fault = faults[namespace];
  calls += 1;
  if (fault === 'fail' || (fault === 'alternate' && calls % 2 === 0)) throw new Error(`${namespace} is down`);
  if (typeof fault === 'number') await scheduler.wait(fault);
}

/** The real binding, with the faults that a test asks for and a note of every call. */
function watched(namespace: Namespace, kv: KVNamespace) {
  return {
    async get(key: string) {
      reads.push(`${namespace}/${key}`);
      await suffer(namespace);
      return kv.get(key);
    },
    async put(key: string, value: string, options: { expirationTtl: number }) {
      writes.push(`${namespace}/${key}`);
      await suffer(namespace);
      return kv.put(key, value, options);
    },
    async delete(key: string) {
      writes.push(`${namespace}/${key}`);
      await suffer(namespace);
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
        await suffer('RAW_LOG_QUEUE');
        return env.RAW_LOG_QUEUE.send(batch, options);
      },
    },
    now,
    log,
  );
  const { default: cache } = caches;
  return buildEdge({
    plugins: TestWorker.plugins,
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
    configTtl: 60_000,
  });
}

let edge: Edge | undefined;

/** The edge with its real plugins and stores, whose faults and clock a test turns over RPC. */
export default class TestWorker extends WorkerEntrypoint<Env> {
  /** Another entry puts its own list here, before the first request. */
  static plugins = PLUGINS;

  override fetch(request: Request): Promise<Response> {
    edge ??= build(this.env);
    return edge(request, (work) => this.ctx.waitUntil(work));
  }

  override queue(batch: MessageBatch<RawBatch>): Promise<void> {
    const put = async (key: string, text: string) => {
      await suffer('RAW_LOGS');
      return this.env.RAW_LOGS.put(key, text);
    };
    return archive(batch, { put }, log);
  }

  fault(namespace: Store, fault: Fault | null): void {
    if (fault === null) delete faults[namespace];
    else faults[namespace] = fault;
  }

  /** Moves the edge's clock by so many milliseconds. */
  forward(ms: number): void {
    clockOffset += ms;
  }

  /** A new isolate's memory, with the same stores and data centre cache. */
  restart(): void {
    edge = undefined;
  }

  /** What has happened since the last call. */
  seen() {
    const seen = { reads, writes, cacheMatches, events, records };
    [reads, writes, cacheMatches, events, records] = [[], [], [], [], []];
    return seen;
  }
}
