import type { Plugin, SharedBody } from '../plugins/contract.ts';
import { singleFlight } from './base/single-flight.ts';
import { contextFactory, textOf } from './context.ts';
import { type Call, dispatch, dispatchDynamic } from './dispatch.ts';
import type { GuardDependencies } from './guard.ts';
import { drain } from './http/body.ts';
import { shareWith } from './http/cors.ts';
import { EdgeError, toEdgeError, toResponse } from './http/errors.ts';
import { publicUrl, readHop } from './http/hops.ts';
import type { EventLog, RequestRecord, WaitUntil } from './logs/request-record.ts';
import { buildRouter } from './router.ts';
import { siteResolver } from './site.ts';
import { bodyMemory } from './stores/body-memory.ts';
import { type ConfigNamespaces, configStores } from './stores/config-store.ts';
import { type ProfileKv, profileStore } from './stores/profile-store.ts';

export interface EdgeDependencies {
  readonly plugins: readonly Plugin[];
  readonly namespaces: ConfigNamespaces & { readonly COOKIES: ProfileKv };
  readonly cache: Pick<Cache, 'match' | 'put' | 'delete'>;
  readonly fetch: typeof fetch;
  readonly now: () => number;
  readonly log: EventLog;
  /** Takes the record of a request that is over, and may go on after its answer. */
  readonly record: (record: RequestRecord, waitUntil: WaitUntil) => void;
  /** Base URL of the vendor's scripts. */
  readonly vendor: string;
  /** The environment's variables that the plugins declare. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly hopSecret: string | undefined;
  /** How long a document is believed, in milliseconds. */
  readonly configTtl: number;
}

/** Answers one request and never rejects. */
export type Edge = (request: Request, waitUntil: WaitUntil) => Promise<Response>;

/** What is found out about a request on its way, for its record. */
type Notes = {
  -readonly [Field in 'route' | 'site' | 'container' | 'cache' | 'signals' | 'error']: RequestRecord[Field];
};

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The edge: one instance an isolate. */
export function buildEdge(dependencies: EdgeDependencies): Edge {
  const { plugins, namespaces, now, log, hopSecret, cache } = dependencies;
  const router = buildRouter(plugins);
  const stores = configStores(namespaces, { cache, now, log, ttl: dependencies.configTtl });
  const resolveSite = siteResolver(plugins, stores, log);
  const services = { ...dependencies, stores, flight: singleFlight<SharedBody>(now), memory: bodyMemory() };

  async function answer(
    request: Request,
    waitUntil: WaitUntil,
    notes: Notes,
    guard: GuardDependencies,
    share: Call['share'],
  ): Promise<Response> {
    const requested = new URL(request.url);
    const hop = readHop(request.headers, hopSecret);
    const trip = { waitUntil, cacheBase: `https://${requested.hostname}/.tagyard` };
    const resolved = await resolveSite(requested.hostname, trip);
    const { site, enabled } = resolved;
    notes.site = site.siteId;
    notes.container = site.containerId;

    const contextOf = contextFactory(services, {
      request,
      url: publicUrl(requested, hop, resolved.ownHosts),
      resolved,
      hop,
      trip,
      guard,
      profiles: profileStore(namespaces.COOKIES, site.siteId, waitUntil, log),
      record: (fields) => Object.assign(notes, fields),
    });
    const call = { request, site, enabled, contextOf, guard, share };
    const match = await router(requested.pathname);
    if (match !== undefined) notes.route = match.path;
    const response =
      (match === undefined ? undefined : await dispatch(call, match)) ??
      (await dispatchDynamic(call, requested.pathname));
    if (response === undefined) throw new EdgeError('not_found');
    return response;
  }

  return async (request, waitUntil) => {
    const began = now();
    const given = request.headers.get('x-request-id') ?? '';
    const requestId = REQUEST_ID.test(given) ? given : crypto.randomUUID();
    const notes: Notes = { route: '', site: null, container: null, cache: null, signals: null, error: null };
    const guard: GuardDependencies = { timings: {}, now, log };
    let readers: string | null | undefined;
    const share = (origin: string | null) => {
      readers = origin;
    };
    const response = await answer(request, waitUntil, notes, guard, share).catch(async (error: unknown) => {
      await drain(request);
      const failure = toEdgeError(error);
      notes.error = failure.code;
      if (failure.code === 'internal') log('internal', { requestId, error: String(failure.cause) });
      return toResponse(failure, requestId);
    });
    const final = request.method === 'HEAD' ? new Response(null, response) : response;
    const { cf } = request;
    const record: RequestRecord = {
      ...notes,
      time: new Date(began).toISOString(),
      requestId,
      method: request.method,
      status: final.status,
      duration: now() - began,
      plugins: guard.timings,
      colo: textOf(cf?.colo) ?? null,
      country: textOf(cf?.country) ?? null,
    };
    try {
      dependencies.record(record, waitUntil);
    } catch (error) {
      // What can't be written down is no concern of the page.
      log('record_failed', { requestId, error: String(error) });
    }
    return changeable(final, (headers) => {
      headers.set('x-request-id', requestId);
      if (readers !== undefined) shareWith(headers, readers);
    });
  };
}

/** What a fetch or a cache answered has headers that can't be changed: only then is a copy worth its price. */
function changeable(response: Response, change: (headers: Headers) => void): Response {
  try {
    change(response.headers);
    return response;
  } catch {
    return changeable(new Response(response.body, response), change);
  }
}
