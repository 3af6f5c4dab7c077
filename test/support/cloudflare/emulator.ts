import { type Clock, systemClock } from '../../../base/clock.ts';
import { type CloudflareOptions, cloudflareClient } from '../../../gitops/clients/cloudflare.ts';
import { KV_NAMESPACES, type KvNamespace } from '../../../plugins/document.ts';
import type { EmulatorDeps } from '../../../sites/local/cloudflare/api/context.ts';
import { type ApiLimits, REAL_LIMITS } from '../../../sites/local/cloudflare/api/limits.ts';
import {
  accountId,
  ensureNamespace,
  ensureZone,
  openState,
} from '../../../sites/local/cloudflare/api/state.ts';
import { API_PREFIX, buildEmulator } from '../../../sites/local/cloudflare/emulator.ts';
import { delayedKv } from '../../../sites/local/cloudflare/kv/delayed.ts';
import { sqliteKvStore } from '../../../sites/local/cloudflare/kv/store.ts';
import { missing, REFERENCE } from '../components.ts';
import { type Exchange, openapiValidator } from '../openapi.ts';
import { CLOUDFLARE_OVERLAY } from './overlay.ts';
import { checkPermission } from './permissions.ts';

export const EMULATOR_TOKEN = 'emulator-token';
export const EMULATOR_SCRIPT = 'tagyard-edge';
export const EMULATOR_ZONE = 'example.net';

const MANY = Number.MAX_SAFE_INTEGER;
/** The limits in benches, whose thousands of sites need as much as several accounts allow. */
export const NO_LIMITS: ApiLimits = {
  calls: { calls: MANY, seconds: 300 },
  countsObjects: true,
  routes: MANY,
  customDomains: MANY,
  records: MANY,
  kvWriteMs: 0,
  kvDelayMs: 0,
  silenceMs: 0,
};

/** Without the document the traffic isn't checked, and the last lines of the run say so. */
const validate =
  missing('reference') === null
    ? openapiValidator(new URL('cloudflare-openapi-subset.json', REFERENCE), CLOUDFLARE_OVERLAY)
    : () => [];

/** Some keys have half of the delay, so keys arrive in another order than they were written, the same in each run. */
const delayOf = (key: string, longest: number) =>
  [...key].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 2 === 0 ? longest : longest / 2;

/**
 * An emulator with state in memory that checks its own traffic: `close` throws if any request or answer violated
 * Cloudflare's OpenAPI document. `calls` are the exchanges as `METHOD path`. The worker sees a write to KV after the
 * delay that the limits state, or half of it.
 */
export async function startEmulator({
  checked = true,
  address: host = '127.0.0.1',
  clock,
  lacking = [],
  ...overrides
}: Partial<EmulatorDeps> & {
  /** The groups of permissions that the token lacks, such as `Workers Scripts`. Default: it has all of them. */
  readonly lacking?: readonly string[];
  /** `false`: for as much traffic as a bench makes, or for answers that the document lacks. */
  readonly checked?: boolean;
  /** Where it listens, on a free port. Default: the loopback address. */
  readonly address?: string;
  /** The clock of the rate limits, of all dates and of KV's delays. */
  readonly clock?: Clock;
} = {}) {
  const now = overrides.now ?? clock?.date ?? (() => new Date());
  const { kvDelayMs } = overrides.limits ?? REAL_LIMITS;
  const db = overrides.db ?? openState(':memory:');
  const zone = ensureZone(db, EMULATOR_ZONE, now());
  const namespaces = new Map(
    KV_NAMESPACES.map((name) => [name, ensureNamespace(db, `${EMULATOR_SCRIPT}-${name}`)] as const),
  );
  const delayed = new Map(
    (kvDelayMs > 0 ? [...namespaces.values()] : []).map(({ id: namespace }) => [
      namespace,
      delayedKv({
        db,
        namespace,
        worker: sqliteKvStore(db, namespace, now),
        delayMs: (key) => delayOf(key, kvDelayMs),
        clock: clock ?? { ...systemClock, date: now },
      }),
    ]),
  );
  const routes: (readonly string[])[] = [];
  const app = buildEmulator({
    db,
    token: EMULATOR_TOKEN,
    scripts: [EMULATOR_SCRIPT],
    kv: ({ id }) => delayed.get(id)?.api ?? sqliteKvStore(db, id, now),
    async onRoutes(patterns) {
      routes.push(patterns);
    },
    ...overrides,
    now,
  });
  app.addHook('onRequest', async ({ routeOptions: { url = '' } }) => {
    checkPermission(url.slice(API_PREFIX.length), lacking);
  });
  const violations: string[] = [];
  const calls: string[] = [];
  let throttled = 0;
  app.addHook('onSend', async (request, reply, payload) => {
    const template = request.routeOptions.url?.replace(API_PREFIX, '').replace(/:([a-z_]+)/g, '{$1}');
    if (template === undefined) return;
    calls.push(`${request.method} ${template}`);
    if (reply.statusCode === 429) throttled += 1;
    if (!checked) return;
    const responseType = reply.getHeader('content-type');
    const exchange: Exchange = {
      method: request.method,
      path: template,
      query: request.query as Record<string, unknown>, // fastify's own parser answers an object
      requestType: request.headers['content-type'],
      requestBody: request.body,
      status: reply.statusCode,
      responseType: typeof responseType === 'string' ? responseType : undefined,
      responseBody: typeof payload === 'string' ? (JSON.parse(payload) as unknown) : payload,
    };
    violations.push(...validate(exchange));
  });
  await app.listen({ host, port: 0 });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('the emulator has no port');
  const url = `http://${host}:${address.port}${API_PREFIX}`;
  const account = accountId(db);

  return {
    app,
    db,
    url,
    account,
    zone,
    namespaces,
    routes,
    calls,
    /** What the worker reads of a namespace: as the API shows it, but later. */
    worker: (name: KvNamespace) => sqliteKvStore(db, namespaces.get(name)?.id ?? '', now),
    /** How many calls were refused because there were too many. */
    throttled: () => throttled,
    /** A client that isn't slowed down, for this emulator or (`url`) for something in front of it. */
    client: (options: Partial<CloudflareOptions> = {}) =>
      cloudflareClient({
        url,
        token: EMULATOR_TOKEN,
        accountId: account,
        rate: 1000,
        burst: 1000,
        ...options,
      }),
    /** A raw call, for requests that the client has no method for. */
    async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${EMULATOR_TOKEN}`,
          ...(body === undefined || headers['content-type'] ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const json = response.headers.get('content-type')?.includes('/json') ? JSON.parse(text) : null;
      return { status: response.status, headers: response.headers, text, json };
    },
    async close() {
      await app.close();
      for (const each of delayed.values()) await each.close();
      db.close();
      const broken = violations.splice(0);
      if (broken.length > 0) throw new Error(`traffic that Cloudflare doesn't know:\n${broken.join('\n')}`);
    },
  };
}

export type TestEmulator = Awaited<ReturnType<typeof startEmulator>>;
