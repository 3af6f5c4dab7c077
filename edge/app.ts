import type { Plugin, SharedBody } from '../plugins/contract.ts';
import { PROBE_HEADER, probeJudge, RECOGNISED } from './base/probe.ts';
import { signer } from './base/signing.ts';
import { singleFlight, within } from './base/single-flight.ts';
import { contextFactory } from './context.ts';
import { dispatch, dispatchDynamic, dispatchPrefixed, type Handling } from './dispatch.ts';
import type { GuardDependencies } from './guard.ts';
import { type Arrival, arrive, FORWARDER_VARY, isBotRequest } from './http/arrival.ts';
import { endingAfter } from './http/body.ts';
import { allowOrigin } from './http/cors.ts';
import { EdgeError, toEdgeError, toResponse } from './http/errors.ts';
import { hasHopHeader, isFromProxy, readHop } from './http/hops.ts';
import { type Hop, publicOrigin } from './http/public-url.ts';
import { withHeaders } from './http/with-headers.ts';
import type { EventLog, WaitUntil } from './logs/event-log.ts';
import {
  knownMethod,
  type Notes,
  octetsOf,
  platformName,
  type RequestRecord,
} from './logs/request-record.ts';
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
  /** A second secret that is accepted in requests while the hop secret is being replaced. It is never sent. */
  readonly previousHopSecret?: string | undefined;
  /** Milliseconds until an origin's answer must begin. */
  readonly originTimeout: number;
  /** How long a copy of a document is fresh, in milliseconds. */
  readonly configTtl: number;
}

/** Answers a request; never rejects. */
export type Edge = (request: Request, waitUntil: WaitUntil) => Promise<Response>;

/** What is known of a request's arrival once its site is known. */
type Arrived = { -readonly [Member in 'bodyHolder' | 'prefix']: Arrival[Member] } & { hop?: Hop };

/** A request, and what its record needs whether it succeeds or fails. */
interface Received {
  readonly request: Request;
  /** Milliseconds of the epoch. */
  readonly startedAt: number;
  readonly arrived: Arrived;
  readonly notes: Notes;
  readonly waitUntil: WaitUntil;
  readonly guard: GuardDependencies;
}

/** How long a record waits for the rest of a request's body once the answer has begun. */
const MAX_PASSING_MS = 10_000;

const CALLERS_ID = /^[\w.-]{1,128}$/;

/** What one isolate builds once for all requests. */
type Services = ReturnType<typeof servicesOf>;

function servicesOf(dependencies: EdgeDependencies) {
  const { plugins, namespaces, now, log, hopSecret } = dependencies;
  const stores = configStores(namespaces, { ...dependencies, ttl: dependencies.configTtl });
  const sign = signer(hopSecret);
  return {
    ...dependencies,
    stores,
    sign,
    flight: singleFlight<SharedBody>(now),
    memory: bodyMemory(),
    router: buildRouter(plugins),
    resolveSite: siteResolver(plugins, stores, log),
    isProbe: probeJudge(sign),
  };
}

/**
 * Builds the edge, once per isolate.
 *
 * @example
 * const edge = buildEdge({ plugins, namespaces: env, fetch, now: Date.now, ...settings });
 * export default { fetch: (request, env, context) => edge(request, context.waitUntil.bind(context)) };
 */
export function buildEdge(dependencies: EdgeDependencies): Edge {
  const services = servicesOf(dependencies);
  const { now, log } = services;
  return async (request, waitUntil) => {
    const arrived: Arrived = { bodyHolder: () => request, prefix: '' };
    const notes = emptyNotes(crypto.randomUUID());
    const guard = { timings: {}, now, log };
    const received: Received = { request, waitUntil, startedAt: now(), arrived, notes, guard };
    let cors: Handling['cors'];
    let response: Response;
    try {
      const handling = await route(services, received);
      cors = handling.cors;
      response = await handling.handle();
    } catch (error) {
      const answer = await passed(request, error, services.fetch);
      if (answer) return answer;
      response = await refusal(error, received, log);
    }
    const final = request.method === 'HEAD' ? new Response(null, response) : response;
    const isProbe = await writeRecord(services, received, final);
    return withHeaders(final, (headers) => {
      if (isProbe) headers.set(PROBE_HEADER, RECOGNISED);
      const callersId = request.headers.get('x-request-id') ?? '';
      headers.set('x-request-id', CALLERS_ID.test(callersId) ? callersId : notes.requestId);
      headers.set('x-tagyard-request-id', notes.requestId);
      if (arrived.prefix !== '') headers.append('vary', FORWARDER_VARY);
      if (cors !== undefined) allowOrigin(headers, cors);
    });
  };
}

function emptyNotes(requestId: string): Notes {
  return {
    requestId,
    route: '',
    site: null,
    container: null,
    country: null,
    cache: null,
    signals: null,
    error: null,
    cause: null,
    consent: null,
    events: new Map(),
    counters: {},
    told: {},
    webContainerVersion: null,
  };
}

/** Decides how to answer a request: resolves its site and its route. */
async function route(
  services: Services,
  { request, arrived, notes, waitUntil, guard }: Received,
): Promise<Handling> {
  const { namespaces, now, log, hopSecret, previousHopSecret, router } = services;
  const requested = new URL(request.url);
  const isProxied = isFromProxy(request.headers, [hopSecret, previousHopSecret]);
  const peer = readHop(request, isProxied);
  notes.country = peer.place.country;
  const scope = {
    waitUntil,
    cacheBase: `https://${requested.hostname}/.tagyard`,
    staleUntil: now() + STALE_TIMEOUT_MS,
  };
  const resolved = await services.resolveSite(requested.hostname, scope);
  const { site } = resolved;
  notes.site = site.siteId;
  notes.container = site.containerId;
  if (resolved.off) throw new EdgeError('serving_off');

  const { prefixes, passesCookie, ownHosts, enabled } = resolved;
  const arrival = await arrive(request, requested, { prefixes, passesCookie, peer, isProxied, now });
  const { served, header, bodyHolder, path, prefix, hop } = arrival;
  arrived.bodyHolder = bodyHolder;
  arrived.prefix = prefix;
  arrived.hop = hop;
  notes.country = hop.place.country;
  const contextOf = contextFactory(services, {
    request,
    requested,
    origin: publicOrigin(requested, hop, ownHosts),
    prefix,
    resolved,
    hop,
    scope,
    guard,
    profiles: () =>
      profileStore(namespaces.COOKIES, site.siteId, {
        waitUntil,
        now,
        log,
        writtenUntil: scope.staleUntil,
      }),
    notes,
  });
  const call = { request, served, header, site, ownHosts, enabled, contextOf, guard };
  let match = await router(path);
  // Frameworks of pages redirect to a path with a slash, which the path without the prefix has then, too.
  const slashless = prefix !== '' && /.\/$/.test(path) ? path.slice(0, -1) : null;
  if (match === undefined && slashless !== null) {
    match = await router(slashless);
    if (match !== undefined) arrival.takeOffSlash();
  }
  // A route of many paths, such as `/_/*`, takes precedence over what plugins own under the prefix.
  const prefixed =
    prefix && !match?.path.endsWith('/*') ? dispatchPrefixed(call, path, requested.search) : undefined;
  if (prefixed) return prefixed;
  notes.route = match?.path ?? '';
  let handling = match ? dispatch(call, match) : dispatchDynamic(call, path);
  if (handling === undefined && match === undefined && slashless !== null) {
    arrival.takeOffSlash();
    handling = dispatchDynamic(call, slashless);
  }
  if (!handling) throw new EdgeError('not_found');
  return handling;
}

/**
 * The answer of another party's server to a request for its host, which a wildcard route also catches. Request
 * and answer are passed on unchanged, and so is Cloudflare's own status for a server that it can't reach.
 * `undefined`: this is no such request, or no server answers. Two kinds of requests are never passed on: those from
 * our proxy, because they are for a site and no other server may see their secret, and those for the cache's own
 * addresses.
 */
async function passed(
  request: Request,
  error: unknown,
  fetch: EdgeDependencies['fetch'],
): Promise<Response | undefined> {
  const isOurs = hasHopHeader(request.headers) || new URL(request.url).pathname.startsWith('/.tagyard/');
  if (toEdgeError(error).code !== 'unknown_host' || isOurs) return undefined;
  return await fetch(request).catch(() => undefined);
}

/** The answer to a request that can't be handled. */
function refusal(error: unknown, { notes, arrived }: Received, log: EventLog): Promise<Response> {
  const failure = toEdgeError(error);
  const { requestId } = notes;
  notes.error = failure.code;
  if (failure.code === 'internal') log('internal', { requestId, error: String(failure.cause) });
  return endingAfter(arrived.bodyHolder(), toResponse(failure, requestId));
}

/**
 * Writes the record of an answered request: after the rest of its body has arrived, for which the answer doesn't wait.
 * Returns whether the request is a probe of our own.
 */
async function writeRecord(
  { isProbe, now, log, record }: Services,
  { request, arrived, notes, waitUntil, guard, startedAt }: Received,
  answer: Response,
): Promise<boolean> {
  const { requestId, passing, events } = notes;
  const hasNoBody = request.method === 'HEAD' || answer.status === 304;
  // Copied, because the record must not have what background work adds to the notes later.
  const fields = {
    time: new Date(startedAt).toISOString(),
    requestId,
    method: knownMethod(request.method),
    route: notes.route,
    status: answer.status,
    duration: now() - startedAt,
    site: notes.site,
    container: notes.container,
    plugins: guard.timings,
    cache: notes.cache,
    colo: platformName(request.cf?.colo),
    country: notes.country,
    signals: notes.signals,
    error: notes.error,
    cause: notes.cause,
    bytesIn: octetsOf(request),
    // An answer to HEAD and a 304 have no body, but may state the length of a full one.
    bytesOut: hasNoBody ? 0 : octetsOf(answer),
    bot: isBotRequest(request, arrived),
    consent: notes.consent,
    webContainerVersion: notes.webContainerVersion,
    counters: { ...notes.counters },
    probe: await isProbe(request, startedAt),
  };
  const write = () => {
    try {
      record({ ...fields, events: Object.fromEntries(events) }, waitUntil);
    } catch (error) {
      // The page gets its answer even if the record is lost.
      log('record_failed', { requestId, error: String(error) });
    }
  };
  if (passing) waitUntil(within(passing, MAX_PASSING_MS).then(write));
  else write();
  return fields.probe;
}
