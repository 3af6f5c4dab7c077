import type { ConsentRules } from '../plugins/consent.ts';
import type { CacheScope, Plugin, PluginContext, SharedBody } from '../plugins/contract.ts';
import type { ProfileStore } from '../plugins/profile.ts';
import type { Sign } from './base/signing.ts';
import { consentRules } from './consent.ts';
import { type Enabled, gate } from './gate.ts';
import { botScoreOf, isBotRequest } from './http/arrival.ts';
import { EdgeError } from './http/errors.ts';
import { etagOf } from './http/etag.ts';
import { fetchOrigin } from './http/origin.ts';
import { NOWHERE } from './http/place.ts';
import { type Hop, hostnameOf, publicUrl } from './http/public-url.ts';
import { TOLD_HEADERS } from './http/request-headers.ts';
import { type MemberRequest, type RequestMembers, requestMembers } from './request-members.ts';
import type { ConfigStores } from './stores/config-store.ts';
import type { RequestScope } from './stores/document-store.ts';

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
interface ContextRequest extends MemberRequest {
  readonly requested: URL;
  /** The origin as the visitor's browser sees it. */
  readonly origin: string;
  /** The prefix in the URL, or empty. */
  readonly prefix: string;
  readonly hop: Hop;
  readonly profiles: () => ProfileStore;
}

/** What the contexts of a request's plugins have in common. */
interface Shared {
  readonly services: ContextServices;
  readonly given: ContextRequest;
  readonly visitor: PluginContext['visitor'];
  readonly rules: ConsentRules;
  readonly members: RequestMembers;
}

/** Names of counters. */
const COUNTER = /^[a-z][a-z_]{0,31}$/;
const MAY_BE_TOLD: ReadonlySet<string> = new Set(TOLD_HEADERS);

const problem: PluginContext['problem'] = (code, detail) => new EdgeError(code, { detail });

/** Builds the contexts of one request. They differ between plugins, for example in the settings and the cache scope. */
export function contextFactory(
  services: ContextServices,
  given: ContextRequest,
): (enabled: Enabled) => PluginContext {
  const { resolved, hop } = given;
  const { address, isTrusted, place } = hop;
  // If the address may be that of a server in between (one without a valid token), so may the place.
  const { country, region, city } = isTrusted ? place : NOWHERE;
  const visitor = { address, country, region, city, isTrusted };
  const rules = consentRules(resolved.consentSettings, visitor);
  const contexts = new Map<Enabled, PluginContext>();
  const contextOf = (enabled: Enabled): PluginContext => {
    const known = contexts.get(enabled) ?? new Context(shared, enabled);
    contexts.set(enabled, known);
    return known;
  };
  const members = requestMembers(given, { stores: services.stores, rules, contextOf });
  const shared: Shared = { services, given, visitor, rules, members };
  return contextOf;
}

/** A class, because an object literal with one getter costs a request ten times as much. */
class Context implements PluginContext {
  declare readonly settings: PluginContext['settings'];
  declare readonly site: PluginContext['site'];
  declare readonly base: PluginContext['base'];
  declare readonly visitor: PluginContext['visitor'];
  declare readonly vendor: PluginContext['vendor'];
  declare readonly variables: PluginContext['variables'];
  declare readonly features: PluginContext['features'];
  declare readonly pageScripts: PluginContext['pageScripts'];
  declare readonly wantedCookies: PluginContext['wantedCookies'];
  declare readonly keyCookies: PluginContext['keyCookies'];
  declare readonly fetch: PluginContext['fetch'];
  declare readonly now: PluginContext['now'];
  declare readonly domainOf: PluginContext['domainOf'];
  declare readonly ownsLoader: PluginContext['ownsLoader'];
  declare readonly keepsProfiles: PluginContext['keepsProfiles'];
  declare readonly identityMs: PluginContext['identityMs'];
  declare readonly profileKeys: PluginContext['profileKeys'];
  declare readonly sign: PluginContext['sign'];
  declare readonly isConfirmed: PluginContext['isConfirmed'];
  declare readonly consentRules: PluginContext['consentRules'];
  declare readonly consent: PluginContext['consent'];
  declare readonly bootstrap: PluginContext['bootstrap'];
  declare readonly fetchOrigin: PluginContext['fetchOrigin'];
  declare readonly log: PluginContext['log'];
  declare readonly count: PluginContext['count'];
  declare readonly tellTagServer: PluginContext['tellTagServer'];
  declare readonly report: PluginContext['report'];
  declare readonly waitUntil: PluginContext['waitUntil'];
  declare readonly etagOf: PluginContext['etagOf'];
  declare readonly problem: PluginContext['problem'];
  readonly #plugin: Plugin;
  readonly #services: ContextServices;
  readonly #request: ContextRequest;
  #url: URL | undefined;
  #profiles: ProfileStore | undefined;

  constructor({ services, given, visitor, rules, members }: Shared, { plugin, settings }: Enabled) {
    const { origin, prefix, resolved, guard, notes } = given;
    const { site } = resolved;
    this.#plugin = plugin;
    this.#services = services;
    this.#request = given;
    this.settings = settings;
    this.site = site;
    this.base = origin + prefix;
    this.visitor = visitor;
    this.vendor = services.vendor;
    this.variables = services.variables;
    this.features = resolved.features;
    this.pageScripts = resolved.pageScripts;
    this.wantedCookies = resolved.wantedCookies;
    this.keyCookies = resolved.keyCookies;
    this.fetch = services.fetch;
    this.now = guard.now;
    this.domainOf = members.domainOf;
    this.ownsLoader = members.ownsLoader;
    this.keepsProfiles = resolved.keepsProfiles;
    this.identityMs = resolved.identityMs;
    this.profileKeys = members.profileKeys;
    this.sign = (text) => services.sign(`${plugin.name}\n${site.siteId}\n${text}`);
    this.isConfirmed = async () => {
      const lookup = await resolved.lateConfig;
      return lookup?.state !== 'found' || gate([plugin], lookup.document).enabled.length > 0;
    };
    this.consentRules = rules;
    this.consent = members.consent;
    this.bootstrap = members.bootstrap;
    this.fetchOrigin = (pathAndQuery, init) => {
      const { origin, reachesTagServer: passesCookie } = resolved;
      const dependencies = {
        ...services,
        origin,
        url: this.url,
        visitor,
        passesCookie,
        notes,
        now: guard.now,
      };
      return fetchOrigin(pathAndQuery, init, dependencies);
    };
    this.log = members.log;
    this.count = (name) => {
      const key = `${plugin.name}.${name}`;
      if (COUNTER.test(name)) notes.counters[key] = (notes.counters[key] ?? 0) + 1;
    };
    this.tellTagServer = (told) => {
      const [strange] = Object.keys(told.headers ?? {}).filter((name) => !MAY_BE_TOLD.has(name));
      if (strange !== undefined) throw new TypeError(`${strange} is not one of TOLD_HEADERS`);
      const { headers, address } = notes.told;
      // What one plugin withholds, no other tells.
      const kept = address === null || told.address === undefined ? address : told.address;
      notes.told = {
        headers: { ...headers, ...told.headers },
        ...(kept === undefined ? {} : { address: kept }),
      };
    };
    this.report = (event) => guard.log(event, { plugin: plugin.name, site: site.siteId });
    this.waitUntil = members.waitUntil;
    this.etagOf = etagOf;
    this.problem = problem;
  }

  // The members that few requests use are made when they are read.

  get memory(): PluginContext['memory'] {
    return this.#ownScope().memory;
  }

  get shared(): PluginContext['shared'] {
    return this.#ownScope().shared;
  }

  get acrossSites(): CacheScope {
    return this.#cacheScope('');
  }

  /** Takes the id from the request's own site, because a plugin could have replaced the context's `site`. */
  #ownScope(): CacheScope {
    return this.#cacheScope(this.#request.resolved.site.siteId);
  }

  /** Names of plugins and sites are not empty and contain no slash, so keys of different scopes never collide. */
  #cacheScope(siteId: string): CacheScope {
    const { memory, flight } = this.#services;
    const { waitUntil } = this.#request.scope;
    const prefix = `${this.#plugin.name}/${siteId}/`;
    return { memory: memory(prefix), shared: (key, run) => flight(prefix + key, waitUntil, run) };
  }

  get profiles(): ProfileStore {
    this.#profiles ??= this.#request.profiles();
    return this.#profiles;
  }

  get cache(): PluginContext['cache'] {
    const { cache } = this.#services;
    const { scope, guard } = this.#request;
    const address = (key: string) => `${scope.cacheBase}/plugins${key}`;
    return {
      match: (key) => cache.match(address(key)),
      put: (key, response) =>
        cache
          .put(address(key), response)
          .catch((error) => guard.log('store_failed', { store: 'cache', error: String(error) })),
    };
  }

  get hostname(): string {
    return hostnameOf(this.#request.origin);
  }

  get search(): string {
    return this.#request.requested.search;
  }

  /** Parsed on first use: parsing costs as much as answering a loader. */
  get url(): URL {
    this.#url ??= publicUrl(this.#request.requested, this.#request.origin);
    return this.#url;
  }

  /** Computed only when a plugin reads it, because it may match a long list. */
  get isBot(): boolean {
    return isBotRequest(this.#request.request, this.#request);
  }

  get botScore(): number {
    return botScoreOf(this.#request.request, this.#request);
  }
}
