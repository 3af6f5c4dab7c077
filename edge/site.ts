import type { Plugin, Site } from '../plugins/contract.ts';
import {
  type ConsentSettings,
  type EdgeConfigDocument,
  FORWARDED_COOKIES,
  type RegistryDocument,
  type RoutingDocument,
  servedDomains,
} from '../plugins/document.ts';
import { within } from './base/single-flight.ts';
import { type Enabled, gate, OPEN_GATE } from './gate.ts';
import { valueOr } from './guard.ts';
import { EdgeError } from './http/errors.ts';
import { cookieFilter, type PassesCookie, type Prefixes, prefixesOf } from './http/prefix.ts';
import type { EventLog } from './logs/event-log.ts';
import type { ConfigStores } from './stores/config-store.ts';
import type { Lookup, RequestScope } from './stores/document-store.ts';

/** What follows from a site's documents alone. Computed once per version of the documents, not per request. */
export interface ResolvedSite {
  readonly site: Site;
  /** Base URL of the site's tag server, from the routing entry. */
  readonly origin: string;
  /** The registrable parts of all its proven domains, active or not. Hosts under them are the site's own. */
  readonly ownHosts: readonly string[];
  /** The enabled plugins, in list order. */
  readonly enabled: readonly Enabled[];
  /** The plugins that derive keys of profiles, enabled or not, except those whose options name no cookie. */
  readonly keepers: readonly Enabled[];
  /** Whether an enabled plugin keeps something in profiles; undefined without EDGE_CONFIG. */
  readonly keepsProfiles: boolean | undefined;
  /** Milliseconds from an identity's start to its end. */
  readonly identityMs: number;
  /** No request is answered. */
  readonly off: true | undefined;
  readonly features: Readonly<Record<string, boolean>>;
  readonly consentSettings: ConsentSettings;
  readonly pageScripts: readonly string[];
  readonly wantedCookies: readonly string[];
  readonly keyCookies: readonly string[];
  /** The prefixes under which the active domains' own servers forward requests. */
  readonly prefixes: Prefixes;
  /** Tells which cookies of a request under a prefix reach the plugins. */
  readonly passesCookie: PassesCookie;
  /** Tells which cookies of any request reach the tag server. */
  readonly reachesTagServer: PassesCookie;
  /** The request's lookup of EDGE_CONFIG, where it is late and the site was resolved without it. */
  readonly lateConfig?: Promise<Lookup<EdgeConfigDocument>>;
}

interface Known extends ResolvedSite {
  readonly registry: RegistryDocument;
  readonly config: EdgeConfigDocument | undefined;
}

const DAY_MS = 86_400_000;
/** 395 days, about 13 months. */
const DEFAULT_IDENTITY_DAYS = 395;

/** How long a request waits for EDGE_CONFIG once all other documents are read. */
const CONFIG_TIMEOUT_MS = 50;

export const storeUnavailable = () => new EdgeError('store_unavailable', { headers: { 'retry-after': '1' } });

function needed<T>(lookup: Lookup<T>, missing: 'unknown_host' | 'unknown_container'): T {
  if (lookup.state === 'found') return lookup.document;
  throw lookup.state === 'missing' ? new EdgeError(missing) : storeUnavailable();
}

/**
 * Resolves host → routing entry → registry and EDGE_CONFIG. Throws `unknown_host`, `unknown_container` or
 * `store_unavailable`. If EDGE_CONFIG fails or is late, the site is resolved without it:
 * of the optional plugins, only those that the registry names run.
 */
export function siteResolver(plugins: readonly Plugin[], stores: ConfigStores, log: EventLog) {
  /** Keyed by the parsed routing entry, so that a site is dropped together with its entry. */
  const known = new WeakMap<RoutingDocument, Known>();

  function resolve(
    { siteId, containerId, origin }: RoutingDocument,
    edgeHost: string,
    registry: RegistryDocument,
    config: EdgeConfigDocument | undefined,
  ): Known {
    const { enabled, keepers: deriving, rejected } = gate(plugins, config ?? registry.closed ?? OPEN_GATE);
    for (const { plugin, reason } of rejected) {
      log('options_rejected', { container: containerId, plugin, reason });
    }
    const domains = activeDomains(enabled, registry, config !== undefined, log);
    const wantedCookies = enabled.flatMap(({ plugin, settings }) =>
      valueOr(plugin.name, () => plugin.wantedCookies?.(settings) ?? [], [], log),
    );
    const named = enabled.flatMap(({ plugin, settings }) =>
      valueOr(plugin.name, () => plugin.tagServerCookies?.(settings) ?? [], [], log),
    );
    const keyNames = ({ plugin, settings }: Enabled) =>
      valueOr(plugin.name, () => plugin.keyCookies?.(settings), undefined, log);
    const keepers = deriving.filter((keeper) => keyNames(keeper)?.length !== 0);
    const keyCookies = keepers.flatMap((keeper) => keyNames(keeper) ?? []);
    const isNamed = cookieFilter(named);
    const isUsual = cookieFilter([...FORWARDED_COOKIES, ...wantedCookies]);
    return {
      registry,
      config,
      site: {
        siteId,
        containerId,
        edgeHost,
        domains,
        proxyPaths: registry.proxyPaths,
        dataLayers: registry.dataLayers ?? [],
      },
      origin,
      enabled,
      keepers,
      keepsProfiles: config && enabled.some(({ plugin }) => plugin.keeps),
      identityMs: identityDays(enabled) * DAY_MS,
      off: registry.off,
      features: config?.features ?? {},
      consentSettings: config ?? registry,
      ownHosts: registry.domains.flatMap(({ domain, cookieDomain, unproven }) =>
        unproven ? [] : (cookieDomain ?? domain),
      ),
      pageScripts: enabled.flatMap(({ plugin }) => plugin.pageScript ?? []),
      wantedCookies,
      keyCookies,
      prefixes: prefixesOf(domains),
      passesCookie: cookieFilter([...FORWARDED_COOKIES, ...wantedCookies, ...keyCookies, ...named]),
      // The value of a key cookie is the key of a visitor's record, and belongs to the pages' own server.
      reachesTagServer: (name) => isNamed(name) || (isUsual(name) && !keyCookies.includes(name)),
    };
  }

  return async (edgeHost: string, scope: RequestScope): Promise<ResolvedSite> => {
    const routing = needed(await stores.routes.get(edgeHost, scope), 'unknown_host');
    const { siteId, containerId } = routing;
    const configLookup = stores.edgeConfig.get(containerId, scope);
    const registry = needed(await stores.registry.get(containerId, scope), 'unknown_container');
    if (registry.siteId !== siteId) throw new EdgeError('unknown_container');

    const lookup =
      configLookup instanceof Promise ? await within(configLookup, CONFIG_TIMEOUT_MS) : configLookup;
    const config = lookup?.state === 'found' ? lookup.document : undefined;
    let site = known.get(routing);
    if (site?.registry !== registry || site.config !== config) {
      site = resolve(routing, edgeHost, registry, config);
      known.set(routing, site);
    }
    return lookup ? site : { ...site, lateConfig: Promise.resolve(configLookup) };
  };
}

function identityDays(enabled: readonly Enabled[]): number {
  for (const { plugin, settings } of enabled) {
    const days = plugin.identityDays?.(settings);
    if (days !== undefined) return days;
  }
  return DEFAULT_IDENTITY_DAYS;
}

/**
 * Without EDGE_CONFIG, the registry's `active` decides alone: gitops writes it by `multi_domain`, and a second domain
 * must not lose its tags because one store is slow. An inactive domain stays inactive, whatever a plugin chooses.
 */
function activeDomains(
  enabled: readonly Enabled[],
  { domains }: RegistryDocument,
  configured: boolean,
  log: EventLog,
): RegistryDocument['domains'] {
  const chosen = enabled
    .map(({ plugin }) => valueOr(plugin.name, () => plugin.domains?.(domains), undefined, log))
    .find((answer) => answer !== undefined);
  const served = configured ? (chosen ?? servedDomains(domains, false)) : domains;
  return served.filter(({ active }) => active);
}
