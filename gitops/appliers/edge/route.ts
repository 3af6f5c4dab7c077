import { coalesce } from '../../../base/coalesce.ts';
import { QuotaReachedError, RetryableError, TerminalError } from '../../../base/errors.ts';
import { warner } from '../../../base/log.ts';
import type { Identity } from '../../../base/ownership.ts';
import { quotaRemedy } from '../../../base/quota-remedy.ts';
import { withSharedSignal } from '../../../base/shared-signal.ts';
import type { CloudflareClient } from '../../clients/cloudflare.ts';
import type { WorkersRoute } from '../../clients/cloudflare-answers.ts';
import { CloudflareRefusal } from '../../clients/cloudflare-errors.ts';
import type { QuotaFigures } from '../../report/quotas.ts';
import type { Applier, Change, Observed, Resource, Scope } from '../contract.ts';
import { planResources } from '../plan.ts';
import {
  desiredRoute,
  patternHost,
  ROUTE,
  type RouteSpec,
  routeHash,
  sitePattern,
  wildcardPattern,
} from './desired.ts';
import { applyRoute, type RouteChange } from './route-change.ts';
import { modeInUse, modeOfNew, type RouteMode, type ZoneFacts } from './route-mode.ts';
import type { EdgeStore } from './store.ts';
import {
  coveredRoute,
  isCoverableRoute,
  type RouteRef,
  superfluousWildcard,
  unsharedWildcard,
} from './wildcard-route.ts';
import { ownedRoutes, provenOwner, type ZoneRoute } from './zone-routes.ts';

const WINDOW_MS = 20;

interface RouteApplierOptions {
  readonly client: CloudflareClient;
  readonly store: EdgeStore;
  readonly identity: Identity;
  readonly zoneId: string;
  readonly scriptName: string;
  /** The wildcard covers the names under this domain. */
  readonly domain: string;
  /** `auto`: the zone decides, see route-mode.ts. */
  readonly mode: RouteMode | 'auto';
  /** How many routes the zone may have. */
  readonly limit: number;
  /** Receives what an operator should know although nothing has failed. */
  readonly warn?: (message: string) => void;
}

interface Zone {
  readonly mode: RouteMode;
  /** All its routes, those of others included. */
  readonly used: number;
  readonly hasWildcard: boolean;
  /** A wildcard would replace routes of this host's sites. */
  readonly isReplaceable: boolean;
}

/**
 * Workers routes from edge hostnames to the worker: `<edge hostname>/*` for each site, or one wildcard for all names
 * under the domain, which covers the sites' patterns. All hosts of an instance use the wildcard. It is created before
 * sites' own routes are deleted, and deleted only when every site has its own route.
 */
export function routeApplier(options: RouteApplierOptions): Applier<RouteSpec, RouteRef> {
  const { client, store, identity, zoneId, scriptName: script, domain, limit } = options;
  const wildcard: RouteSpec = { pattern: wildcardPattern(domain), script };
  /** The zone as of the last observation or change. */
  let zone: Zone | null = null;
  const warnOnce = warner((message) => options.warn?.(message));
  const routesOfZone = { client, zoneId, isFull: () => zone !== null && zone.used >= limit };

  async function change(one: RouteChange, signal: AbortSignal): Promise<void> {
    await applyRoute(routesOfZone, one, signal).catch((error: unknown) => {
      if (!(error instanceof QuotaReachedError)) throw error;
      throw error.withRemedy(quotaRemedy('worker_routes', zone?.isReplaceable ? 'site' : 'wildcard'));
    });
    const added = (one.desired === undefined ? 0 : 1) - (one.before === undefined ? 0 : 1);
    if (zone !== null) zone = { ...zone, used: zone.used + added };
  }

  const findWildcard = (routes: readonly WorkersRoute[]) =>
    routes.find(({ pattern }) => pattern === wildcard.pattern);

  async function modeOf(routes: readonly ZoneRoute[], signal: AbortSignal): Promise<RouteMode> {
    if (options.mode !== 'auto') return options.mode;
    const facts = { domain, scriptName: script, identity, routes };
    return modeInUse(facts) ?? (await modeByRecords(facts, signal));
  }

  /**
   * Decides by the zone's records. If DNS is at another provider, the token may lack the permission to read them. Then
   * nothing shows that a wildcard is safe.
   */
  async function modeByRecords(facts: ZoneFacts, signal: AbortSignal): Promise<RouteMode> {
    try {
      return modeOfNew(facts, await client.dnsRecords(zoneId, {}, signal));
    } catch (error) {
      if (!(error instanceof CloudflareRefusal) || error.meaning !== 'unauthorized') throw error;
      warnOnce(
        'each site gets a Workers route, because CLOUDFLARE_API_TOKEN may not read the zone’s DNS records: set EDGE_ROUTE_MODE, or add the permission DNS: Read',
      );
      return 'site';
    }
  }

  async function observe(
    desired: readonly Resource<RouteSpec>[],
    signal: AbortSignal,
    scope?: Scope,
  ): Promise<Observed<RouteRef>[]> {
    const patterns = [...desired.map(({ key }) => key), ...(scope?.keys ?? [])];
    const known = scope === undefined ? null : zone;
    const hosts = known === null ? undefined : new Set(patterns.flatMap((one) => patternHost(one) ?? []));
    const [listed, entries] = await Promise.all([
      client.routes(zoneId, signal),
      store.keys('ROUTES', signal, hosts),
    ]);
    const routes = ownedRoutes(listed, entries, { identity, scriptName: script });
    const mode = known?.mode ?? (await modeOf(routes, signal));
    const own = new Map(routes.map((route) => [route.pattern, route]));
    const found = own.get(wildcard.pattern);
    const observedWildcard = { identity, spec: wildcard, found };
    const isReplaceable =
      known?.isReplaceable || (mode === 'site' && desired.some(({ key }) => isCoverableRoute(key, domain)));
    zone = { mode, used: routes.length, hasWildcard: found?.script === script, isReplaceable };

    const wanted = new Set(desired.map(({ key }) => key));
    const seen = desired.flatMap((resource) => {
      const route = own.get(resource.key);
      return mode === 'wildcard' && isCoverableRoute(resource.key, domain)
        ? (coveredRoute(resource, route, observedWildcard) ?? [])
        : route === undefined
          ? []
          : observedRoute(route);
    });
    const others = routes.filter(({ pattern, owner }) => owner.kind === 'ours' && !wanted.has(pattern));
    const [first] = desired.map(({ site }) => site).sort();
    const surplus =
      options.mode === 'site' && scope === undefined && first !== undefined
        ? superfluousWildcard(first, entries, routes, observedWildcard)
        : null;
    return [...seen, ...others.map(observedRoute), ...(surplus === null ? [] : [surplus])];
  }

  /** One call for all sites that need the wildcard. `spare`: a site's own route. */
  const createWildcard = coalesce(
    async (items: readonly { spare: string | undefined; signal: AbortSignal }[]) => {
      await withSharedSignal(
        items.map(({ signal }) => signal),
        async (signal) => {
          if (zone?.hasWildcard) return;
          await change({ desired: wildcard }, signal).catch((error: unknown) => {
            const before = items.find(({ spare }) => spare !== undefined)?.spare;
            if (!(error instanceof QuotaReachedError) || before === undefined) throw error;
            // One site's route becomes the wildcard, so the zone needs no further route, and there is no gap.
            return change({ desired: wildcard, before }, signal);
          });
          if (zone !== null) zone = { ...zone, hasWildcard: true };
        },
      );
      return items.map(() => ({ status: 'fulfilled', value: undefined }) as const);
    },
    { windowMs: WINDOW_MS },
  );

  async function apply({ desired, observed }: Change<RouteSpec, RouteRef>, signal: AbortSignal) {
    const { id, kind = 'own' } = observed?.ref ?? {};
    // Another pass may have observed the zone since this change was planned.
    if (desired !== undefined && kind === 'covered' && zone?.hasWildcard === false) {
      throw new RetryableError(`${wildcard.pattern} was deleted since it was observed`);
    }
    if (desired === undefined || kind === 'covered') {
      return await change({ before: id }, signal);
    }
    if (kind === 'wildcard') {
      throw new TerminalError(`${wildcard.pattern} leads elsewhere: delete it, or set EDGE_ROUTE_MODE=site`);
    }
    const needsWildcard =
      observed === undefined && zone?.mode === 'wildcard' && isCoverableRoute(desired.key, domain);
    if (needsWildcard || kind === 'spare') return await createWildcard({ spare: id, signal });
    await change({ desired: desired.spec, before: id }, signal);
  }

  return {
    ...ROUTE,
    desired: (manifest) => [
      desiredRoute(manifest, { pattern: sitePattern(manifest.hostnames.edge), script }),
    ],
    observe,
    async ofHost(signal) {
      const [routes, entries] = await Promise.all([
        client.routes(zoneId, signal),
        store.keys('ROUTES', signal),
      ]);
      return unsharedWildcard(entries, { identity, spec: wildcard, found: findWildcard(routes) });
    },
    plan: (desired, observed) => planResources(desired, observed, ROUTE),
    apply,
    quota(): QuotaFigures | null {
      if (zone === null) return null;
      const perSite = zone.mode === 'wildcard' && zone.hasWildcard ? 0 : 1;
      return { name: 'worker_routes', mode: zone.mode, used: zone.used, limit, perSite };
    },
  };
}

function observedRoute(route: ZoneRoute): Observed<RouteRef> {
  const { id, pattern, script } = route;
  const hash = script ? routeHash({ pattern, script }) : null;
  return { target: ROUTE.target, key: pattern, owner: provenOwner(route), hash, ref: { id, kind: 'own' } };
}
