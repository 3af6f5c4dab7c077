import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { MiniflareOptions } from 'miniflare';
import { KV_NAMESPACES, type KvNamespace } from '../plugins/document.ts';
import {
  bundleAnalytics,
  bundleControl,
  bundleEdge,
  bundleFront,
  bundleVerification,
  COMPATIBILITY_DATE,
} from './bundle.ts';
import type { HostPoint } from './front/host-point.ts';
import {
  controlOf,
  type HostKv,
  type HostObjects,
  hostKv,
  hostObjects,
  newControlSecret,
} from './host-control.ts';

/** The namespaces that gitops writes, and the edge's own one. */
export const HOST_NAMESPACES = [...KV_NAMESPACES, 'COOKIES'] as const;
type HostNamespace = KvNamespace | 'COOKIES';

interface EdgeHostOptions {
  /** Port on 127.0.0.1; 0 picks a free one. */
  readonly port: number;
  /** The directory that keeps KV, the cache and the raw logs between runs. */
  readonly persistDir: string;
  /**
   * The worker's variables and secrets: `HOP_SECRET`, `HOP_SECRET_PREVIOUS`, `TAG_UPSTREAM`, `CONFIG_TTL_SECONDS`, `INGEST_URL`,
   * `INGEST_SECRET`, and those of the plugins.
   */
  readonly vars: Readonly<Record<string, string>>;
  /** A forward proxy for all fetches of the worker, with absolute request targets (RFC 9112, 3.2.2). */
  readonly egress?: { readonly host: string; readonly port: number };
  /** Gets the data points of Analytics Engine, several in one call. Absent: the worker has no dataset. */
  readonly onPoints?: (points: readonly HostPoint[]) => void;
  /** Also runs the verification worker in the same runtime; port 0 picks a free one on 127.0.0.1. */
  readonly verification?: { readonly port: number; readonly secret: string };
}

export interface EdgeHost {
  readonly url: URL;
  /** The URL of the verification worker; `null` if it does not run. */
  readonly verificationUrl: URL | null;
  readonly kv: Readonly<Record<HostNamespace, HostKv>>;
  /** The bucket of the raw logs. */
  readonly rawLogs: HostObjects;
  /**
   * Replaces the Workers routes, which decide the hosts and paths that reach the worker. Initially there are none.
   * `elsewhere`: the routes without a script or with another one; where they are more specific, nothing answers here.
   */
  setRoutes(patterns: readonly string[], elsewhere?: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** The same names as in wrangler.jsonc; a test compares both. */
export const RAW_LOG_BUCKET = 'tagyard-raw-logs';
export const RAW_LOG_QUEUE = 'tagyard-raw-log';
export const ANALYTICS_DATASET = 'tagyard_requests';

/** The verification worker's flags, as in its wrangler.jsonc: every fetch is routed like a visitor's request. */
export const VERIFICATION_FLAGS = ['global_fetch_strictly_public'] as const;

/** Miniflare's number for absolute request targets (`HttpOptions.Style` in workerd.capnp). */
const PROXY_STYLE = 1;

/**
 * Starts the edge worker in workerd on this machine. Rejects if the port is in use. The front has a socket of its own:
 * Miniflare's would cost two thirds of the throughput.
 */
export async function startEdgeHost(options: EdgeHostOptions): Promise<EdgeHost> {
  for (const port of [options.port, options.verification?.port ?? 0]) if (port !== 0) await assertFree(port);
  const secret = newControlSecret();
  const runtime = await runtimeOptions(options, secret);
  const { Miniflare } = loadMiniflare();
  let routes: Parameters<EdgeHost['setRoutes']> = [[]];
  // A runtime that has ended by itself is started again, with the same stores.
  const miniflare = new Miniflare({ ...runtime, unsafeHandleRuntimeRestart: () => setRoutes(...routes) });
  const call = controlOf(miniflare, secret);
  async function setRoutes(patterns: readonly string[], elsewhere: readonly string[] = []): Promise<void> {
    routes = [patterns, elsewhere];
    await call({ op: 'setRoutes', patterns, elsewhere });
  }
  try {
    await miniflare.ready;
    const url = await miniflare.unsafeGetDirectURL('front');
    return {
      url,
      verificationUrl:
        options.verification === undefined ? null : await miniflare.unsafeGetDirectURL('verification'),
      kv: Object.fromEntries(HOST_NAMESPACES.map((name) => [name, hostKv(call, name)])) as EdgeHost['kv'], // every name
      rawLogs: hostObjects(call),
      setRoutes,
      close: () => miniflare.dispose(),
    };
  } catch (error) {
    await miniflare.dispose().catch(() => undefined);
    throw error;
  }
}

/**
 * Loads Miniflare only when it is needed, because an installation without the embedded edge lacks it. It is loaded by
 * `require`: `import` would keep its four megabytes of source twice.
 */
function loadMiniflare() {
  return createRequire(import.meta.url)('miniflare') as typeof import('miniflare');
}

/**
 * Rejects with the system's error (`EADDRINUSE`, `EACCES`) if the port can't be used. Checked here because the
 * runtime would just exit.
 */
async function assertFree(port: number): Promise<void> {
  // Not the probe of base: the edge imports nothing of gitops, and callers need the listen error itself.
  const probe = createServer().listen(port, '127.0.0.1');
  await once(probe, 'listening');
  probe.close();
  await once(probe, 'close');
}

const STORES = {
  kvNamespaces: Object.fromEntries(HOST_NAMESPACES.map((name) => [name, name])),
  r2Buckets: { RAW_LOGS: RAW_LOG_BUCKET },
};

async function runtimeOptions(options: EdgeHostOptions, controlSecret: string): Promise<MiniflareOptions> {
  const { onPoints } = options;
  const [analytics, control, edge, front, verification] = await Promise.all([
    onPoints === undefined ? null : bundleAnalytics(),
    bundleControl(),
    bundleEdge(),
    bundleFront(),
    options.verification === undefined ? null : bundleVerification(),
  ]);
  const worker = (name: string, contents: string) => ({
    name,
    compatibilityDate: COMPATIBILITY_DATE,
    modules: [{ type: 'ESModule' as const, path: `${name}.js`, contents }],
  });
  return {
    host: '127.0.0.1',
    port: 0,
    kvPersist: join(options.persistDir, 'kv'),
    cachePersist: join(options.persistDir, 'cache'),
    r2Persist: join(options.persistDir, 'r2'),
    workers: [
      // Must be first: the runtime's own socket leads to it.
      {
        ...worker('control', control),
        bindings: { CONTROL_SECRET: controlSecret },
        serviceBindings: { FRONT: 'front' },
        ...STORES,
      },
      {
        ...worker('front', front),
        serviceBindings: { EDGE: 'edge' },
        unsafeDirectSockets: [{ host: '127.0.0.1', port: options.port }],
      },
      {
        ...worker('edge', edge),
        bindings: { ...options.vars },
        ...STORES,
        queueProducers: { RAW_LOG_QUEUE: { queueName: RAW_LOG_QUEUE } },
        // Deliver at once: the worker sends full batches, and a stop would lose batches that wait in memory.
        queueConsumers: { [RAW_LOG_QUEUE]: { maxBatchTimeout: 0, maxRetries: 100 } },
        ...outbound(options),
        ...(onPoints === undefined
          ? {}
          : {
              wrappedBindings: {
                ANALYTICS: { scriptName: 'analytics', bindings: { DATASET: ANALYTICS_DATASET } },
              },
            }),
      },
      ...(analytics === null || onPoints === undefined ? [] : [pointsWorker(analytics, onPoints)]),
      ...(verification === null || options.verification === undefined
        ? []
        : [
            {
              ...worker('verification', verification),
              compatibilityFlags: [...VERIFICATION_FLAGS],
              bindings: {
                VERIFICATION_SECRET: options.verification.secret,
                HOP_SECRET: options.vars.HOP_SECRET ?? '',
              },
              unsafeDirectSockets: [{ host: '127.0.0.1', port: options.verification.port }],
              ...outbound(options),
            },
          ]),
    ],
  };
}

/** A binding, not a worker: it has no compatibility date of its own. */
function pointsWorker(contents: string, onPoints: NonNullable<EdgeHostOptions['onPoints']>) {
  return {
    name: 'analytics',
    modules: [{ type: 'ESModule' as const, path: 'analytics.js', contents }],
    serviceBindings: {
      async HOST(request: Request) {
        onPoints((await request.json()) as HostPoint[]); // of front/analytics.ts
        return new Response(null, { status: 204 });
      },
    },
  };
}

function outbound({ egress }: EdgeHostOptions) {
  if (egress === undefined) return {};
  const address = `${egress.host}:${egress.port}`;
  return { outboundService: { external: { address, http: { style: PROXY_STYLE } } } };
}
