import type { Plugin, Site } from '../plugins/contract.ts';
import type { ConsentMode, EdgeConfigDocument, RegistryDocument } from '../plugins/document.ts';
import type { ConfigStores } from './config-store.ts';
import type { Lookup, Trip } from './document-store.ts';
import { EdgeError } from './errors.ts';
import { type Gated, gate, OPEN_GATE } from './gate.ts';
import { ask } from './guard.ts';
import type { Hop } from './hops.ts';
import type { EventLog } from './logs.ts';
import { within } from './single-flight.ts';

/** A request's site with all that the core found out about it, once. */
export interface ResolvedSite {
  readonly site: Site;
  /** Where the site's tag server answers, as the routing entry has it. */
  readonly origin: string;
  /** The address as the visitor's browser sees it. */
  readonly url: URL;
  readonly gated: Gated;
  readonly features: Readonly<Record<string, boolean>>;
  readonly consentMode: ConsentMode;
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
  const gates = new WeakMap<EdgeConfigDocument, Gated>();
  const openGate = gate(plugins, OPEN_GATE);

  function gateOf(document: EdgeConfigDocument, container: string): Gated {
    const known = gates.get(document);
    if (known !== undefined) return known;
    const gated = gate(plugins, document);
    for (const { plugin, reason } of gated.rejected) log('options_rejected', { container, plugin, reason });
    gates.set(document, gated);
    return gated;
  }

  return async (requested: URL, hop: Hop, trip: Trip): Promise<ResolvedSite> => {
    const edgeHost = requested.hostname;
    const routing = needed(await stores.routes.get(edgeHost, trip), 'unknown_host');
    const { siteId, containerId } = routing;
    const configLookup = stores.edgeConfig.get(containerId, trip);
    const registry = needed(await stores.registry.get(containerId, trip), 'unknown_container');
    if (registry.siteId !== siteId) throw new EdgeError('unknown_container');

    const lookup =
      configLookup instanceof Promise ? await within(configLookup, CONFIG_PATIENCE) : configLookup;
    const config = lookup?.state === 'found' ? lookup.document : undefined;
    const gated = config === undefined ? openGate : gateOf(config, containerId);
    return {
      site: {
        siteId,
        containerId,
        edgeHost,
        domains: activeDomains(gated, registry, config !== undefined, log),
        proxyPaths: registry.proxyPaths,
      },
      origin: routing.origin,
      url: publicUrl(requested, hop, registry),
      gated,
      features: config?.features ?? {},
      consentMode: config?.consent ?? registry.consent,
    };
  };
}

/**
 * Without EDGE_CONFIG the registry's own word counts, which gitops wrote from the same flags: a second domain must not
 * lose its tags because one store is slow.
 */
function activeDomains(
  { enabled }: Gated,
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

/** The proxy's word on host and scheme, where it names a host that is the site's own; else the edge hostname. */
function publicUrl(requested: URL, hop: Hop, { domains }: RegistryDocument): URL {
  if (hop.forwardedHost === null && hop.forwardedProto === null) return requested;
  const protocol = hop.forwardedProto ?? requested.protocol.slice(0, -1);
  const forwarded = hop.forwardedHost?.replace(/:\d+$/, '');
  const ours =
    forwarded !== undefined &&
    domains.some(({ domain, cookieDomain }) => {
      const own = cookieDomain ?? domain;
      return forwarded === own || forwarded.endsWith(`.${own}`);
    });
  const host = ours ? hop.forwardedHost : requested.host;
  return new URL(`${protocol}://${host}${requested.pathname}${requested.search}`);
}
