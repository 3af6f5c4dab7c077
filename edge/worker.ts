import { PLUGINS } from '../plugins/index.ts';
import { buildEdge, type Edge } from './app.ts';
import { ORIGIN_TIMEOUT_MS } from './http/origin.ts';
import { consoleLog } from './logs/event-log.ts';
import { archive, ingest, type RawBatch, rawLog } from './logs/raw-log.ts';
import { dataPoint } from './logs/request-record.ts';

interface Env {
  readonly ROUTES: KVNamespace;
  readonly SITE_REGISTRY: KVNamespace;
  readonly LOADER_TOKEN_MAP: KVNamespace;
  readonly EDGE_CONFIG: KVNamespace;
  readonly COOKIES: KVNamespace;
  /** Analytics Engine and the queue of the raw logs. Each gets every record, if it is bound. */
  readonly ANALYTICS?: AnalyticsEngineDataset;
  readonly RAW_LOG_QUEUE?: Queue<RawBatch>;
  /** The archive that the queue's consumer writes batches to. */
  readonly RAW_LOGS: R2Bucket;
  readonly HOP_SECRET?: string;
  readonly HOP_SECRET_PREVIOUS?: string;
  /** The URL at which management accepts the queue's deliveries, for its live views, and the secret for it. */
  readonly INGEST_URL?: string;
  readonly INGEST_SECRET?: string;
  readonly TAG_UPSTREAM?: string;
  /** Seconds. */
  readonly CONFIG_TTL_SECONDS?: string;
}

const DEFAULT_VENDOR = 'https://www.googletagmanager.com';
const DEFAULT_TTL_SECONDS = 60;

/** Built once per isolate, with all its caches: the bindings are the same for every request. */
let edge: Edge | undefined;

function edgeOf(env: Env): Edge {
  const { RAW_LOG_QUEUE: queue } = env;
  const enqueue = queue && rawLog(queue, Date.now, consoleLog);
  return buildEdge({
    plugins: PLUGINS,
    namespaces: env,
    cache: caches.default,
    fetch: (input, init) => fetch(input, init),
    now: Date.now,
    log: consoleLog,
    record(record, waitUntil) {
      env.ANALYTICS?.writeDataPoint(dataPoint(record));
      enqueue?.(record, waitUntil);
    },
    vendor: env.TAG_UPSTREAM || DEFAULT_VENDOR,
    variables: declaredVariables(env),
    hopSecret: env.HOP_SECRET,
    previousHopSecret: env.HOP_SECRET_PREVIOUS,
    originTimeout: ORIGIN_TIMEOUT_MS,
    configTtl: ttlSeconds(env.CONFIG_TTL_SECONDS) * 1000,
  });
}

/** Only the variables that plugins declare: they must not see the hop secret. */
function declaredVariables(env: Env): Record<string, string> {
  const declared = new Set(PLUGINS.flatMap(({ variables }) => variables ?? []));
  return Object.fromEntries(Object.entries(env).filter(([name]) => declared.has(name)));
}

/** A setting that is not a number of seconds counts as unset. */
function ttlSeconds(setting: string | undefined): number {
  const seconds = Number(setting || DEFAULT_TTL_SECONDS);
  return seconds >= 0 ? seconds : DEFAULT_TTL_SECONDS;
}

export default {
  fetch(request, env, context) {
    edge ??= edgeOf(env);
    return edge(request, (work) => context.waitUntil(work));
  },
  queue: async (batch, env) => ingest(await archive(batch, env.RAW_LOGS, consoleLog), env, consoleLog),
} satisfies ExportedHandler<Env, RawBatch>;
