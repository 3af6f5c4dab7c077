import type { Applier, Observed, Plan, Resource } from '../contract.ts';
import { desiredRoute, ROUTE, type RouteSpec, routeHash, wildcardPattern } from './desired.ts';
import { applyRoute, observeRoutes, type RouteApplierOptions, type RouteRef } from './route.ts';

/**
 * One route for the whole zone, for zones that would exceed Cloudflare's limit of 1,000 routes. The first site that
 * needs it creates it. All hosts use it, so it is never deleted here. Once it exists, older routes of single sites are
 * deleted.
 */
export function wildcardRouteApplier(
  options: RouteApplierOptions & { readonly zone: string },
): Applier<RouteSpec, RouteRef> {
  const { client, zoneId, scriptName: script, identity } = options;
  const pattern = wildcardPattern(options.zone);
  return {
    ...ROUTE,
    desired: (manifest) => [desiredRoute(manifest, { pattern, script })],
    async observe(desired, signal, scope) {
      const observed = await observeRoutes(options, desired, signal, scope);
      const ours = routeHash({ pattern, script });
      return observed.map((route) =>
        route.key === pattern && route.hash === ours
          ? { ...route, owner: { kind: 'ours', site: '*', host: identity.host } }
          : route,
      );
    },
    plan: (desired, observed) => planWildcard(pattern, desired, observed),
    apply: (change, signal) => applyRoute(client, zoneId, change, signal),
  };
}

function planWildcard(
  pattern: string,
  desired: readonly Resource<RouteSpec>[],
  observed: readonly Observed<RouteRef>[],
): Plan<RouteSpec, RouteRef> {
  const wildcard = observed.find(({ key }) => key === pattern);
  const bySite = desired.toSorted((a, b) => (a.site < b.site ? -1 : 1));
  const [first] = bySite;
  if (wildcard === undefined) {
    if (first === undefined) return { changes: [], conflicts: [] };
    const { target, site, key, summary } = first;
    return { changes: [{ target, site, key, op: 'create', summary, desired: first }], conflicts: [] };
  }
  const { owner: holder } = wildcard;
  if (holder.kind === 'foreign') {
    const detail = `${pattern} belongs to ${holder.by}`;
    return { changes: [], conflicts: bySite.map(({ target, site, key }) => ({ target, site, key, detail })) };
  }
  const changes = observed.flatMap((route) =>
    route.key === pattern || route.owner.kind === 'foreign'
      ? []
      : [
          {
            target: route.target,
            site: route.owner.site,
            key: route.key,
            op: 'delete' as const,
            summary: `remove ${route.key}, ${pattern} covers it`,
            observed: route,
          },
        ],
  );
  return { changes: changes.toSorted((a, b) => (a.key < b.key ? -1 : 1)), conflicts: [] };
}
