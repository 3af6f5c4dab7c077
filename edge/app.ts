import type { Plugin, SharedBody } from '../plugins/contract.ts';
import { signer } from './base/signing.ts';
import { singleFlight } from './base/single-flight.ts';
import { contextFactory, textOf } from './context.ts';
import { dispatch, dispatchDynamic, type Handling } from './dispatch.ts';
import type { GuardDependencies } from './guard.ts';
import { endingAfter } from './http/body.ts';
import { allowOrigin } from './http/cors.ts';
import { EdgeError, toEdgeError, toResponse } from './http/errors.ts';
import { isFromProxy, readHop } from './http/hops.ts';
import { publicUrl } from './http/public-url.ts';
import type { EventLog, WaitUntil } from './logs/event-log.ts';
import type { RequestRecord } from './logs/request-record.ts';
import { buildRouter } from './router.ts';
import { siteResolver } from './site.ts';
import { bodyMemory } from './stores/body-memory.ts';
import { type ConfigNamespaces, configStores } from './stores/config-store.ts';
import { STALE_TIMEOUT_MS } from './stores/limits.ts';
import { type ProfileKv, profileStore } from './stores/profile-store.ts';

interface EdgeDependencies {
  readonly plugins: readonly Plugin[];
  readonly namespaces: ConfigNamespaces & { readonly COOKIES: ProfileKv };
  readonly cache: Pick<Cache, 'match' | 'put' | 'delete'>;
  readonly fetch: typeof fetch;
  readonly now: () => number;
  readonly log: EventLog;
  /** Takes the record of a finished request. Work that outlives the response is passed to `waitUntil`. */
  readonly record: (record: RequestRecord, waitUntil: WaitUntil) => void;
  /** Base URL of the vendor's scripts. */
  readonly vendor: string;
  /** The environment variables that the plugins declare. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly hopSecret: string | undefined;
  /** Milliseconds until an origin's answer must begin. */
  readonly originTimeout: number;
  /** How long a copy of a document is fresh, in milliseconds. */
  readonly configTtl: number;
}

/** Answers a request; never rejects. */
export type Edge = (request: Request, waitUntil: WaitUntil) => Promise<Response>;

/** The fields of a request's record that are collected while it is handled. */
type Notes = {
  -readonly [Field in 'route' | 'site' | 'container' | 'cache' | 'signals' | 'error']: RequestRecord[Field];
};

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Builds the edge, once per isolate. */
export function buildEdge(dependencies: EdgeDependencies): Edge {
  const { plugins, namespaces, now, log, hopSecret, cache } = dependencies;
  const router = buildRouter(plugins);
  const stores = configStores(namespaces, { cache, now, log, ttl: dependencies.configTtl });
  const resolveSite = siteResolver(plugins, stores, log);
  const services = {
    ...dependencies,
    stores,
    flight: singleFlight<SharedBody>(now),
    memory: bodyMemory(),
    sign: signer(hopSecret),
  };

  /** Decides how to answer a request: resolves its site and its route. */
  async function route(
    request: Request,
    waitUntil: WaitUntil,
    notes: Notes,
    guard: GuardDependencies,
  ): Promise<Handling> {
    const requested = new URL(request.url);
    const hop = readHop(request.headers, hopSecret);
    const scope = {
      waitUntil,
      cacheBase: `https://${requested.hostname}/.tagyard`,
      staleUntil: now() + STALE_TIMEOUT_MS,
    };
    const resolved = await resolveSite(requested.hostname, scope);
    const { site, enabled } = resolved;
    notes.site = site.siteId;
    notes.container = site.containerId;

    const contextOf = contextFactory(services, {
      request,
      url: publicUrl(requested, hop, resolved.ownHosts),
      resolved,
      hop,
      scope,
      guard,
      profiles: profileStore(namespaces.COOKIES, site.siteId, {
        waitUntil,
        now,
        log,
        writtenUntil: scope.staleUntil,
      }),
      record: (fields) => Object.assign(notes, fields),
    });
    const call = { request, site, ownHosts: resolved.ownHosts, enabled, contextOf, guard };
    const match = await router(requested.pathname);
    if (match !== undefined) notes.route = match.path;
    const handling = match === undefined ? dispatchDynamic(call, requested.pathname) : dispatch(call, match);
    if (handling === undefined) throw new EdgeError('not_found');
    return handling;
  }

  /**
   * A wildcard route also catches hosts of others: their requests reach their own servers untouched. `undefined`: this
   * request isn't one, or nothing answers there. Our proxy forwards requests for sites only.
   */
  async function passed(request: Request, { code }: EdgeError): Promise<Response | undefined> {
    if (code !== 'unknown_host' || isFromProxy(request.headers, hopSecret)) return undefined;
    return await dependencies.fetch(request).catch(() => undefined);
  }

  return async (request, waitUntil) => {
    const startedAt = now();
    const given = request.headers.get('x-request-id') ?? '';
    const requestId = REQUEST_ID.test(given) ? given : crypto.randomUUID();
    const notes: Notes = { route: '', site: null, container: null, cache: null, signals: null, error: null };
    const guard: GuardDependencies = { timings: {}, now, log };
    const fail = async (error: unknown) => {
      const failure = toEdgeError(error);
      notes.error = failure.code;
      if (failure.code === 'internal') log('internal', { requestId, error: String(failure.cause) });
      return endingAfter(request, toResponse(failure, requestId));
    };
    const routed = await route(request, waitUntil, notes, guard).catch(async (error: unknown) => {
      return (await passed(request, toEdgeError(error))) ?? { handle: () => fail(error) };
    });
    if (routed instanceof Response) return routed;
    const { cors, handle }: Handling = routed;
    const response = await handle().catch(fail);
    const final = request.method === 'HEAD' ? new Response(null, response) : response;
    const { cf } = request;
    const record: RequestRecord = {
      ...notes,
      time: new Date(startedAt).toISOString(),
      requestId,
      method: request.method,
      status: final.status,
      duration: now() - startedAt,
      plugins: guard.timings,
      colo: textOf(cf?.colo) ?? null,
      country: textOf(cf?.country) ?? null,
    };
    try {
      dependencies.record(record, waitUntil);
    } catch (error) {
      // The page gets its answer even if the record is lost.
      log('record_failed', { requestId, error: String(error) });
    }
    return withHeaders(final, (headers) => {
      headers.set('x-request-id', requestId);
      if (cors !== undefined) allowOrigin(headers, cors);
    });
  };
}

/** Changes a response's headers. If they are immutable, as in responses of `fetch` and the cache, changes a copy. */
function withHeaders(response: Response, change: (headers: Headers) => void): Response {
  try {
    change(response.headers);
    return response;
  } catch {
    return withHeaders(new Response(response.body, response), change);
  }
}
