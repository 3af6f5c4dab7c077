import type { BootDraft, PluginContext, ProfileStore, SharedBody, Shelf } from '../plugins/contract.ts';
import type { RegistryDomain } from '../plugins/document.ts';
import { decideConsent } from './consent.ts';
import type { Enabled } from './gate.ts';
import { type GuardDependencies, guardHook } from './guard.ts';
import { etagOf } from './http/conditional.ts';
import { EdgeError } from './http/errors.ts';
import { type Hop, isUnder } from './http/hops.ts';
import { fetchOrigin, type Visitor } from './http/origin.ts';
import { type ResolvedSite, storeUnavailable } from './site.ts';
import type { ConfigStores } from './stores/config-store.ts';
import type { Trip } from './stores/document-store.ts';

type LogFields = Parameters<PluginContext['log']>[0];

/** What contexts are made of, for as long as an isolate lives. */
export interface ContextServices {
  readonly stores: ConfigStores;
  readonly memory: (scope: string) => Shelf['memory'];
  readonly cache: Pick<Cache, 'match' | 'put'>;
  readonly fetch: typeof fetch;
  readonly vendor: string;
  readonly variables: PluginContext['variables'];
  readonly hopSecret: string | undefined;
  readonly flight: (
    key: string,
    waitUntil: Trip['waitUntil'],
    run: () => Promise<SharedBody>,
  ) => Promise<SharedBody>;
}

/** One request, as far as the core knows it before any plugin does. */
export interface ContextRequest {
  readonly request: Request;
  /** As the visitor's browser sees it. */
  readonly url: URL;
  readonly resolved: ResolvedSite;
  readonly hop: Hop;
  readonly trip: Trip;
  readonly profiles: ProfileStore;
  readonly guard: GuardDependencies;
  readonly record: (fields: LogFields) => void;
}

const LOADER_TOKEN = /^lt_[A-Za-z0-9]{16,64}$/;

/** Builds the contexts of one request: the same for every plugin but for its settings. */
export function contextFactory(
  services: ContextServices,
  { request, url, resolved, hop, trip, profiles, guard, record }: ContextRequest,
): (enabled: Enabled) => PluginContext {
  const { cache, stores } = services;
  const { site } = resolved;
  const cacheUrl = (key: string) => `${trip.cacheBase}/plugins${key}`;

  const shelf = (scope: string): Shelf => ({
    memory: services.memory(scope),
    shared: (key, run) => services.flight(scope + key, trip.waitUntil, run),
  });

  const contextOf = ({ plugin, settings }: Enabled): PluginContext => ({
    // No name of a plugin or a site has a slash in it, nor is one empty: no key reaches out of its scope.
    ...shelf(`${plugin.name}/${site.siteId}/`),
    acrossSites: shelf(`${plugin.name}//`),
    settings,
    site,
    url,
    vendor: services.vendor,
    variables: services.variables,
    features: resolved.features,
    pageScripts: resolved.pageScripts,
    wantedCookies: resolved.wantedCookies,
    profiles,
    cache: {
      match: (key) => cache.match(cacheUrl(key)),
      put: (key, response) =>
        cache
          .put(cacheUrl(key), response)
          .catch((error) => guard.log('store_failed', { store: 'cache', error: String(error) })),
    },
    fetch: services.fetch,
    now: guard.now,
    domainOf: (host) => longestMatch(site.domains, host),
    async ownsLoader(token) {
      if (!LOADER_TOKEN.test(token)) return false;
      const lookup = await stores.loaderTokens.get(token, trip);
      if (lookup.state === 'unavailable') throw storeUnavailable();
      if (lookup.state === 'missing' || lookup.document.containerId !== site.containerId) return false;
      const { until } = lookup.document;
      return until === undefined || guard.now() < Date.parse(until);
    },
    consent: (choices) =>
      decideConsent(resolved.consentMode, request.headers.get('sec-gpc') === '1', choices),
    async bootstrap(draft: BootDraft) {
      for (const enabled of resolved.enabled) {
        const { boot } = enabled.plugin;
        if (boot !== undefined) await guardHook(enabled.plugin, () => boot(contextOf(enabled), draft), guard);
      }
    },
    fetchOrigin: (pathAndQuery, init) =>
      fetchOrigin(resolved.origin, pathAndQuery, init, visitorOf(request, url, hop), services),
    log: record,
    waitUntil: (work) =>
      trip.waitUntil(work.catch((error) => guard.log('background_failed', { error: String(error) }))),
    etagOf,
    problem: (code, detail) => new EdgeError(code, { detail }),
  });
  return contextOf;
}

function longestMatch(domains: readonly RegistryDomain[], host: string): RegistryDomain | undefined {
  return domains
    .filter(({ domain }) => isUnder(host, domain))
    .toSorted((a, b) => b.domain.length - a.domain.length)[0];
}

function visitorOf(request: Request, url: URL, { address }: Hop): Visitor {
  return {
    address,
    url,
    country: textOf(request.cf?.country),
    region: textOf(request.cf?.regionCode),
  };
}

/** One of the platform's short names (a colo, a country, a region), and nothing else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[A-Za-z0-9-]{1,6}$/.test(value) ? value : undefined;
}
