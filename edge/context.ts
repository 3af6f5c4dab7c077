import { modeOf } from '../plugins/consent.ts';
import type { CacheScope, PluginContext, SharedBody } from '../plugins/contract.ts';
import type { RegistryDomain } from '../plugins/document.ts';
import type { ProfileStore } from '../plugins/profile.ts';
import type { Sign } from './base/signing.ts';
import { consentRules, decideConsent } from './consent.ts';
import { type Enabled, gate } from './gate.ts';
import { type GuardDependencies, guardHook, jsonOf } from './guard.ts';
import { isBot } from './http/bots.ts';
import { EdgeError } from './http/errors.ts';
import { etagOf } from './http/etag.ts';
import { fetchOrigin } from './http/origin.ts';
import { NOWHERE } from './http/place.ts';
import { keepCookies } from './http/prefix.ts';
import { type Hop, isUnder } from './http/public-url.ts';
import { type ResolvedSite, storeUnavailable } from './site.ts';
import type { ConfigStores } from './stores/config-store.ts';
import type { RequestScope } from './stores/document-store.ts';

type LogFields = Parameters<PluginContext['log']>[0];

/** Services of an isolate. The contexts of all its requests use them. */
interface ContextServices {
  readonly stores: ConfigStores;
  readonly memory: (scope: string) => CacheScope['memory'];
  readonly cache: Pick<Cache, 'match' | 'put'>;
  readonly fetch: typeof fetch;
  readonly vendor: string;
  readonly variables: PluginContext['variables'];
  readonly hopSecret: string | undefined;
  readonly sign: Sign;
  /** Milliseconds until an origin's answer must begin. */
  readonly originTimeout: number;
  readonly flight: (
    key: string,
    waitUntil: RequestScope['waitUntil'],
    start: () => Promise<SharedBody>,
  ) => Promise<SharedBody>;
}

/** Data of one request that the core has before plugin code runs. */
interface ContextRequest {
  readonly request: Request;
  /** The URL as the visitor's browser sees it. */
  readonly url: URL;
  /** The prefix in `url`, or empty. */
  readonly prefix: string;
  readonly resolved: ResolvedSite;
  readonly hop: Hop;
  readonly scope: RequestScope;
  readonly profiles: ProfileStore;
  readonly guard: GuardDependencies;
  readonly record: (fields: LogFields) => void;
}

const LOADER_TOKEN = /^lt_[A-Za-z0-9]{16,64}$/;

/** Builds the contexts of one request. They differ between plugins in the settings and the cache scope. */
export function contextFactory(
  services: ContextServices,
  { request, url, prefix, resolved, hop, scope, profiles, guard, record }: ContextRequest,
): (enabled: Enabled) => PluginContext {
  const { cache, stores } = services;
  const { site } = resolved;
  const { address, isTrusted, place } = hop;
  // Of a request through a server that proves nothing, the platform knows only where that server is.
  const visitor = { address, ...(isTrusted ? place : NOWHERE), isTrusted };
  const rules = consentRules(resolved.consentSettings, visitor);
  const cacheUrl = (key: string) => `${scope.cacheBase}/plugins${key}`;

  const cacheScope = (prefix: string): CacheScope => ({
    memory: services.memory(prefix),
    shared: (key, run) => services.flight(prefix + key, scope.waitUntil, run),
  });

  const contexts = new Map<Enabled, PluginContext>();
  const makeContext = ({ plugin, settings }: Enabled): PluginContext => ({
    // Names of plugins and sites are not empty and contain no slash, so keys of different scopes never collide.
    ...cacheScope(`${plugin.name}/${site.siteId}/`),
    acrossSites: cacheScope(`${plugin.name}//`),
    settings,
    site,
    url,
    base: url.origin + prefix,
    visitor,
    vendor: services.vendor,
    variables: services.variables,
    features: resolved.features,
    pageScripts: resolved.pageScripts,
    wantedCookies: resolved.wantedCookies,
    keyCookies: resolved.keyCookies,
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
      const lookup = await stores.loaderTokens.get(token, scope);
      if (lookup.state === 'unavailable') throw storeUnavailable();
      if (lookup.state === 'missing' || lookup.document.containerId !== site.containerId) return false;
      const { until } = lookup.document;
      return until === undefined || guard.now() < Date.parse(until);
    },
    // Only where it is asked for, because it may match a long list.
    get isBot() {
      // Below a prefix without a proof, the platform knows only the domain's own server.
      const isPeer = hop.forwardedHost === null && prefix === '';
      return isBot(request.headers.get('user-agent'), isPeer ? request.cf?.botManagement : undefined);
    },
    keepsProfiles: resolved.keepsProfiles,
    identityMs: resolved.identityMs,
    async profileKeys(cookies) {
      const keys: string[] = [];
      for (const keeper of resolved.keepers) {
        const { plugin } = keeper;
        const key = await guardHook(
          plugin,
          async () => plugin.profileKey?.(cookies, contextOf(keeper)),
          keyOf,
          guard,
        );
        if (key !== undefined) keys.push(key);
      }
      return keys;
    },
    sign: (text) => services.sign(`${plugin.name}\n${site.siteId}\n${text}`),
    async isConfirmed() {
      const lookup = await resolved.lateConfig;
      return lookup?.state !== 'found' || gate([plugin], lookup.document).enabled.length > 0;
    },
    consentRules: rules,
    consent: (choices) => decideConsent(modeOf(rules), request.headers.get('sec-gpc') === '1', choices),
    async bootstrap(draft) {
      const members: Record<string, unknown> = {};
      for (const enabled of resolved.enabled) {
        const { name, boot, bootMember = name } = enabled.plugin;
        if (boot === undefined) continue;
        const run = () => boot(contextOf(enabled), draft);
        const value = await guardHook(enabled.plugin, run, jsonOf, guard);
        if (value !== undefined) members[bootMember] = value;
      }
      return members;
    },
    fetchOrigin(pathAndQuery, init) {
      const dependencies = { ...services, origin: resolved.origin, url, visitor };
      if (prefix === '' || resolved.keyCookies.length === 0) {
        return fetchOrigin(pathAndQuery, init, dependencies);
      }
      // The value of such a cookie is the key of a visitor's record, and belongs to the pages' own server.
      const headers = new Headers(init.headers);
      keepCookies(headers, (name) => !resolved.keyCookies.includes(name));
      return fetchOrigin(pathAndQuery, { ...init, headers }, dependencies);
    },
    log: record,
    report: (event) => guard.log(event, { plugin: plugin.name, site: site.siteId }),
    waitUntil: (work) =>
      scope.waitUntil(work.catch((error) => guard.log('background_failed', { error: String(error) }))),
    etagOf,
    problem: (code, detail) => new EdgeError(code, { detail }),
  });
  return contextOf;

  function contextOf(enabled: Enabled): PluginContext {
    const known = contexts.get(enabled) ?? makeContext(enabled);
    contexts.set(enabled, known);
    return known;
  }
}

/** A key of the profile store that can't be a visitor's id. */
function keyOf(result: unknown): string {
  if (typeof result === 'string' && /^[a-z]+:[0-9a-f]{16,64}$/.test(result)) return result;
  throw new TypeError('not a key');
}

function longestMatch(domains: readonly RegistryDomain[], host: string): RegistryDomain | undefined {
  return domains
    .filter(({ domain }) => isUnder(host, domain))
    .toSorted((a, b) => b.domain.length - a.domain.length)[0];
}

/** A short name that the platform sets, such as a colo; `undefined` for any other value. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[A-Za-z0-9-]{1,6}$/.test(value) ? value : undefined;
}
