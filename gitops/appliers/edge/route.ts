import { RetryableError } from '../../base/errors.ts';
import type { Identity, Ownership } from '../../base/ownership.ts';
import type { CloudflareClient } from '../../clients/cloudflare.ts';
import type { KvKey, WorkersRoute } from '../../clients/cloudflare-answers.ts';
import { CloudflareRefusal } from '../../clients/cloudflare-errors.ts';
import type { Applier, Change, Observed, Resource, Scope } from '../contract.ts';
import { planResources } from '../plan.ts';
import { desiredRoute, patternHost, ROUTE, type RouteSpec, routeHash, sitePattern } from './desired.ts';
import { type EdgeStore, readKeyMark } from './store.ts';

/** A route's id. */
export type RouteRef = string;

export interface RouteApplierOptions {
  readonly client: CloudflareClient;
  readonly store: EdgeStore;
  readonly identity: Identity;
  readonly zoneId: string;
  readonly scriptName: string;
}

/** One Workers route for each site, `<edge hostname>/*`. */
export function routeApplier(options: RouteApplierOptions): Applier<RouteSpec, RouteRef> {
  const { client, zoneId, scriptName: script } = options;
  return {
    ...ROUTE,
    desired: (manifest) => [
      desiredRoute(manifest, { pattern: sitePattern(manifest.hostnames.edge), script }),
    ],
    observe: (desired, signal, scope) => observeRoutes(options, desired, signal, scope),
    plan: (desired, observed) => planResources(desired, observed, ROUTE),
    apply: (change, signal) => applyRoute(client, zoneId, change, signal),
  };
}

/**
 * A route can't carry a mark. It is ours if it points `<host>/*` to our script and the routing entry of that host in KV
 * carries our mark. All others are foreign, and observed only under a desired pattern.
 */
export async function observeRoutes(
  { client, store, identity, zoneId, scriptName }: RouteApplierOptions,
  desired: readonly Resource<RouteSpec>[],
  signal: AbortSignal,
  scope?: Scope,
): Promise<Observed<RouteRef>[]> {
  const patterns = [...desired.map(({ key }) => key), ...(scope?.keys ?? [])];
  const hosts = scope && new Set(patterns.flatMap((pattern) => patternHost(pattern) ?? []));
  const [routes, entries] = await Promise.all([
    client.routes(zoneId, signal),
    store.keys('ROUTES', signal, hosts),
  ]);
  const witnesses = new Map(entries.map((entry) => [entry.name, entry]));
  const wanted = new Set(desired.map(({ key }) => key));
  return routes.flatMap((route): Observed<RouteRef>[] => {
    const { id, pattern, script } = route;
    const owner = ownerOf(route, scriptName, identity, witnesses);
    if (owner.kind === 'foreign' && !wanted.has(pattern)) return [];
    return [
      {
        target: ROUTE.target,
        key: pattern,
        owner,
        hash: script ? routeHash({ pattern, script }) : null,
        ref: id,
      },
    ];
  });
}

function ownerOf(
  { pattern, script }: WorkersRoute,
  scriptName: string,
  identity: Identity,
  witnesses: ReadonlyMap<string, KvKey>,
): Ownership {
  if (script !== scriptName)
    return { kind: 'foreign', by: script ? `the worker ${script}` : 'a bypass route' };
  const entry = witnesses.get(patternHost(pattern) ?? '');
  if (entry === undefined) return { kind: 'foreign', by: 'an unknown owner (no routing entry of ours)' };
  return readKeyMark(identity, entry).owner;
}

/** Creates, updates or deletes one route. A route that is already as desired counts as success. */
export async function applyRoute(
  client: CloudflareClient,
  zoneId: string,
  { desired, observed }: Change<RouteSpec, RouteRef>,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (desired === undefined) {
      if (observed !== undefined) await client.deleteRoute(zoneId, observed.ref, signal);
    } else if (observed === undefined) {
      await client.createRoute(zoneId, desired.spec, signal);
    } else {
      await client.updateRoute(zoneId, observed.ref, desired.spec, signal);
    }
  } catch (error) {
    const meaning = error instanceof CloudflareRefusal ? error.meaning : undefined;
    if (meaning === 'absent' && desired === undefined) return;
    if (meaning === 'exists' && desired !== undefined) {
      const { pattern, script } = desired.spec;
      const routes = await client.routes(zoneId, signal);
      if (routes.some((route) => route.pattern === pattern && route.script === script)) return;
    }
    if (meaning === 'absent' || meaning === 'exists') {
      throw new RetryableError('the route changed since it was observed', { cause: error });
    }
    throw error;
  }
}
