import '../../../base/runtime/disposable-stack.ts';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { demandInstalled } from '../../../base/runtime/optional.ts';
import {
  ANALYTICS_DATASET,
  HOST_NAMESPACES,
  RAW_LOG_BUCKET,
  RAW_LOG_QUEUE,
  startEdgeHost,
} from '../../../edge/host.ts';
import { startEgress } from '../egress.ts';
import { routePatterns } from './api/context.ts';
import { type ApiLimits, HOME_LIMITS, REAL_LIMITS } from './api/limits.ts';
import { writePoints } from './api/points.ts';
import { accountId, ensureNamespace, ensureZone, openState } from './api/state.ts';
import { zoneResolver } from './dns/resolver.ts';
import { API_PREFIX, buildEmulator } from './emulator.ts';
import { endHungRuntimes } from './hung-runtime.ts';
import { delayedKv } from './kv/delayed.ts';
import { sqliteKvStore } from './kv/store.ts';
import { bindRuntime } from './runtime.ts';
import { emulatorSettings } from './settings.ts';

const port = z.coerce.number().int().min(0).max(65_535);
const environment = z.object({
  EDGE_PORT: port.default(8787),
  CLOUDFLARE_PORT: port.default(0),
  EDGE_STATE_DIR: z.string().min(1),
  EDGE_DOMAIN: z.string().min(1),
  EDGE_SCRIPT_NAME: z.string().min(1).default('tagyard-edge'),
  CLOUDFLARE_API_TOKEN: z.string().min(1),
  ...emulatorSettings.shape,
  HOP_SECRET: z.string().min(1),
  HOP_SECRET_PREVIOUS: z.string().default(''),
  TAG_UPSTREAM: z.url(),
  CONFIG_TTL_SECONDS: z.string().default('60'),
  /** Where the raw logs are sent, and the secret that is sent with them. Unset: nowhere. */
  INGEST_URL: z.string().default(''),
  INGEST_SECRET: z.string().default(''),
  EGRESS_CA_FILE: z.string().optional(),
  VERIFICATION_PORT: port.default(0),
  /** Unset: no verification worker is started. */
  VERIFICATION_SECRET: z.string().optional(),
});

function limitsOf(env: z.infer<typeof environment>): ApiLimits {
  const limits = env.CLOUDFLARE_EMULATOR === 'real' ? REAL_LIMITS : HOME_LIMITS;
  const calls = { ...limits.calls, calls: env.CLOUDFLARE_EMULATOR_CALLS };
  return { ...limits, calls, records: env.CLOUDFLARE_EMULATOR_RECORDS };
}

/** Cloudflare at home: its API, and the worker that serves the routes, values and records written through it. */
async function start(env: z.infer<typeof environment>) {
  await using stack = new AsyncDisposableStack();
  demandInstalled('miniflare');
  await mkdir(env.EDGE_STATE_DIR, { recursive: true, mode: 0o700 });
  await bindRuntime(env.EDGE_STATE_DIR, process.env);
  const db = openState(join(env.EDGE_STATE_DIR, 'cloudflare.sqlite'));
  stack.defer(() => db.close());
  const zone = ensureZone(db, env.EDGE_DOMAIN, new Date());

  const ca = env.EGRESS_CA_FILE === undefined ? [] : [await readFile(env.EGRESS_CA_FILE, 'utf8')];
  let edgePort = env.EDGE_PORT;
  const egress = await startEgress({
    resolve: zoneResolver(db),
    ca,
    edgePort: () => edgePort,
    silenceMs: limitsOf(env).silenceMs,
  });
  stack.defer(() => egress.close());

  const limits = limitsOf(env);
  const edge = await startEdgeHost({
    port: env.EDGE_PORT,
    persistDir: join(env.EDGE_STATE_DIR, 'edge'),
    vars: {
      HOP_SECRET: env.HOP_SECRET,
      HOP_SECRET_PREVIOUS: env.HOP_SECRET_PREVIOUS,
      TAG_UPSTREAM: env.TAG_UPSTREAM,
      CONFIG_TTL_SECONDS: env.CONFIG_TTL_SECONDS,
      INGEST_URL: env.INGEST_URL,
      INGEST_SECRET: env.INGEST_SECRET,
    },
    egress,
    onPoints: (points) => writePoints(db, points, new Date()),
    ...(env.VERIFICATION_SECRET === undefined
      ? {}
      : { verification: { port: env.VERIFICATION_PORT, secret: env.VERIFICATION_SECRET } }),
  });
  stack.defer(() => edge.close());
  edgePort = Number(edge.url.port);
  const ending = new AbortController();
  stack.defer(() => ending.abort());
  void endHungRuntimes(edge.url, ending.signal);
  await edge.setRoutes(...routePatterns(db, [env.EDGE_SCRIPT_NAME]));

  // The titles that `wrangler` gives.
  const namespaceOf = (name: string) => ensureNamespace(db, `${env.EDGE_SCRIPT_NAME}-${name}`).id;
  const bound = new Map(
    HOST_NAMESPACES.map((name) => {
      const namespace = namespaceOf(name);
      const delayMs = () => Math.round(Math.random() * limits.kvDelayMs);
      const delayed = delayedKv({ db, namespace, worker: edge.kv[name], delayMs });
      stack.defer(() => delayed.close());
      return [namespace, delayed.api];
    }),
  );
  const emulator = buildEmulator({
    db,
    token: env.CLOUDFLARE_API_TOKEN,
    limits,
    scripts: [env.EDGE_SCRIPT_NAME],
    worker: {
      bindings: [
        ...HOST_NAMESPACES.map((name) => ({
          name,
          type: 'kv_namespace',
          namespace_id: namespaceOf(name),
        })),
        { name: 'RAW_LOGS', type: 'r2_bucket', bucket_name: RAW_LOG_BUCKET },
        { name: 'RAW_LOG_QUEUE', type: 'queue', queue_name: RAW_LOG_QUEUE },
        { name: 'ANALYTICS', type: 'analytics_engine', dataset: ANALYTICS_DATASET },
        { name: 'HOP_SECRET', type: 'secret_text' },
        { name: 'INGEST_SECRET', type: 'secret_text' },
        { name: 'INGEST_URL', type: 'plain_text', text: env.INGEST_URL },
        { name: 'TAG_UPSTREAM', type: 'plain_text', text: env.TAG_UPSTREAM },
        { name: 'CONFIG_TTL_SECONDS', type: 'plain_text', text: env.CONFIG_TTL_SECONDS },
      ],
      // workerd on this machine writes no log of requests.
      settings: { logpush: false, observability: { enabled: false } },
    },
    kv: ({ id }) => bound.get(id) ?? sqliteKvStore(db, id, () => new Date()),
    buckets: { [RAW_LOG_BUCKET]: edge.rawLogs },
    onRoutes: (patterns, elsewhere) => edge.setRoutes(patterns, elsewhere),
  });
  stack.defer(() => emulator.close());
  const api = await emulator.listen({ host: '127.0.0.1', port: env.CLOUDFLARE_PORT });

  const running = stack.move();
  return {
    edge: edge.url.origin,
    cloudflare: `${api}${API_PREFIX}`,
    accountId: accountId(db),
    zoneId: zone.id,
    stop: () => running.disposeAsync(),
  };
}

let started: Awaited<ReturnType<typeof start>> | undefined;
let isEnding = false;
async function end(): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  await started?.stop();
  process.exit(0);
}
// The parent has ended.
process.once('disconnect', end);

try {
  started = await start(environment.parse(process.env));
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // Miniflare's own handler would exit before the sockets and the database are closed.
    process.removeAllListeners(signal);
    process.once(signal, end);
  }
  const { stop: _, ...addresses } = started;
  const ready = { type: 'ready', ...addresses };
  if (process.send !== undefined) process.send(ready);
  else console.log(`Cloudflare's API on ${addresses.cloudflare}, the edge on ${addresses.edge}`);
} catch (error) {
  const reason =
    error instanceof z.ZodError
      ? error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
      : String(error);
  process.stderr.write(`edge: ${reason}\n`);
  process.exit(1);
}
