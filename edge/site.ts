import type { Plugin, Site } from '../plugins/contract.ts';
import type {
  ConsentMode,
  EdgeConfigDocument,
  RegistryDocument,
  RoutingDocument,
} from '../plugins/document.ts';
import { within } from './base/single-flight.ts';
import { type Enabled, gate, OPEN_GATE } from './gate.ts';
import { ask } from './guard.ts';
import { EdgeError } from './http/errors.ts';
import type { EventLog } from './logs/request-record.ts';
import type { ConfigStores } from './stores/config-store.ts';
import type { Lookup, Trip } from './stores/document-store.ts';

/** What follows from a site's documents alone: found out once for each state of them, not for each request. */
export interface ResolvedSite {
  readonly site: Site;
  /** Where the site's tag server answers, as the routing entry has it. */
  readonly origin: string;
  /** The registrable parts of all its domains, active or not: hosts there are the site's own. */
  readonly ownHosts: readonly string[];
  /** The plugins that are on, in list order. */
  readonly enabled: readonly Enabled[];
  readonly features: Readonly<Record<string, boolean>>;
  readonly consentMode: ConsentMode;
  readonly pageScripts: readonly string[];
  readonly wantedCookies: readonly string[];
}

interface Known extends ResolvedSite {
  readonly registry: RegistryDocument;
  readonly config: EdgeConfigDocument | undefined;
}

/** How long EDGE_CONFIG may keep a request waiting after everything else is known, in milliseconds. */
const CONFIG_PATIENCE = 50;

export const storeUnavailable = () => new EdgeError('store_unavailable', { headers: { 'retry-after': '1' } });

function needed<T>(lookup: Lookup<T>, missing: 'unknown_host' | 'unknown_container'): T {
  if (lookup.state === 'found') return lookup.document;
  throw lookup.state === 'missing' ? new EdgeError(missing) : storeUnavailable();
}

/**
 * host → routing entry → registry and EDGE_CONFIG. Throws `unknown_host`, `unknown_container` or `store_unavailable`;
 * EDGE_CONFIG that fails or is late is done without.
 */
export function siteResolver(plugins: readonly Plugin[], stores: ConfigStores, log: EventLog) {
  /** By the routing entry as it was parsed: gone with it, and the entry of one host only. */
  const known = new WeakMap<RoutingDocument, Known>();

  function resolve(
    { siteId, containerId, origin }: RoutingDocument,
    edgeHost: string,
    registry: RegistryDocument,
    config: EdgeConfigDocument | undefined,
  ): Known {
    const { enabled, rejected } = gate(plugins, config ?? OPEN_GATE);
    for (const { plugin, reason } of rejected) {
      log('options_rejected', { container: containerId, plugin, reason });
    }
    const domains = activeDomains(enabled, registry, config !== undefined, log);
    return {
      registry,
      config,
      site: { siteId, containerId, edgeHost, domains, proxyPaths: registry.proxyPaths },
      origin,
      enabled,
      features: config?.features ?? {},
      consentMode: config?.consent ?? registry.consent,
      ownHosts: registry.domains.map(({ domain, cookieDomain }) => cookieDomain ?? domain),
      pageScripts: enabled.flatMap(({ plugin }) => plugin.pageScript ?? []),
      wantedCookies: enabled.flatMap(({ plugin, settings }) =>
        ask(plugin.name, () => plugin.wantedCookies?.(settings) ?? [], [], log),
      ),
    };
  }

  return async (edgeHost: string, trip: Trip): Promise<ResolvedSite> => {
    const routing = needed(await stores.routes.get(edgeHost, trip), 'unknown_host');
    const { siteId, containerId } = routing;
    const configLookup = stores.edgeConfig.get(containerId, trip);
    const registry = needed(await stores.registry.get(containerId, trip), 'unknown_container');
    if (registry.siteId !== siteId) throw new EdgeError('unknown_container');

    const lookup =
      configLookup instanceof Promise ? await within(configLookup, CONFIG_PATIENCE) : configLookup;
    const config = lookup?.state === 'found' ? lookup.document : undefined;
    const before = known.get(routing);
    if (before?.registry === registry && before.config === config) return before;
    const now = resolve(routing, edgeHost, registry, config);
    known.set(routing, now);
    return now;
  };
}

/**
 * Without EDGE_CONFIG the registry's own word counts, which gitops wrote from the same flags: a second domain must not
 * lose its tags because one store is slow.
 */
function activeDomains(
  enabled: readonly Enabled[],
  { domains }: RegistryDocument,
  configured: boolean,
  log: EventLog,
): RegistryDocument['domains'] {
  const active = domains.filter((entry) => entry.active);
  if (!configured) return active;
  const chosen = enabled
    .map(({ plugin }) => ask(plugin.name, () => plugin.domains?.(domains), undefined, log))
    .find((answer) => answer !== undefined);
  return chosen === undefined ? active.filter((entry) => entry === domains[0]) : [...chosen];
}
