import { ALL_SITES, type Identity, type Ownership } from '../../../base/ownership.ts';
import type { KvKey, WorkersRoute } from '../../clients/cloudflare-answers.ts';
import type { Observed, Resource } from '../contract.ts';
import { patternHost, ROUTE, type RouteSpec, routeHash, sitePattern } from './desired.ts';
import { readKeyMark } from './store.ts';
import { provenOwner, type ZoneRoute } from './zone-routes.ts';

/**
 * A route as it was observed. `own`: the one under the key. `wildcard`: the wildcard in place of it. `covered`: a site's
 * own route beside the wildcard, to be deleted. `spare`: the same before the wildcard exists.
 */
export interface RouteRef {
  readonly id: string;
  readonly kind: 'own' | 'wildcard' | 'covered' | 'spare';
}

interface Wildcard {
  readonly identity: Identity;
  readonly spec: RouteSpec;
  /** The zone's wildcard route as it was observed, ours or not. */
  readonly found: WorkersRoute | undefined;
}

/**
 * What is observed under a site's pattern if one route serves all sites; a pure function. `null`: nothing. The wildcard
 * counts as the site's route. A route that the site has beside it is to be deleted, but only once the wildcard was
 * observed.
 */
export function coveredRoute(
  { site, key }: Resource<RouteSpec>,
  own: ZoneRoute | undefined,
  { identity, spec, found }: Wildcard,
): Observed<RouteRef> | null {
  const { target } = ROUTE;
  const { script } = spec;
  const isServing = found?.script === script;
  if (own !== undefined && own.script !== script) {
    return { target, key, owner: provenOwner(own), hash: null, ref: { id: own.id, kind: 'own' } };
  }
  if (own !== undefined && own.owner.kind !== 'unknown') {
    const ref: RouteRef = { id: own.id, kind: isServing ? 'covered' : 'spare' };
    return { target, key, owner: own.owner, hash: null, outdated: true, ref };
  }
  if (found === undefined) return null;
  const by = found.script ? `the worker ${found.script}` : 'a bypass route';
  const owner: Ownership = isServing
    ? { kind: 'ours', site, host: identity.host }
    : { kind: 'foreign', by: `${by} (${spec.pattern})` };
  const hash = isServing ? routeHash({ pattern: key, script }) : null;
  return { target, key, owner, hash, ref: { id: found.id, kind: 'wildcard' } };
}

/**
 * The wildcard as an observed object for the plan to delete; a pure function. `null`: a hostname with a routing entry
 * still needs the wildcard, or the wildcard isn't ours.
 * `entries`: all routing entries, with those of other hosts of the instance.
 */
export function superfluousWildcard(
  site: string,
  entries: readonly KvKey[],
  routes: readonly ZoneRoute[],
  wildcard: Wildcard,
): Observed<RouteRef> | null {
  const { spec, found } = wildcard;
  if (found?.script !== spec.script) return null;
  const served = new Set(routes.flatMap(({ pattern, script }) => (script === found.script ? [pattern] : [])));
  if (!entries.every(({ name }) => served.has(sitePattern(name)))) return null;
  return observedWildcard(found, site, wildcard);
}

/**
 * The wildcard as an observed object for the plan to delete, where no other host has a routing entry that may need it; a
 * pure function.
 */
export function unsharedWildcard(
  entries: readonly KvKey[],
  { identity, spec, found }: Wildcard,
): Observed<RouteRef>[] {
  const isShared = entries.some((entry) => readKeyMark(identity, entry).owner.kind === 'foreign');
  if (found?.script !== spec.script || isShared) return [];
  return [observedWildcard(found, ALL_SITES, { identity, spec, found })];
}

function observedWildcard({ id }: WorkersRoute, site: string, { identity, spec }: Wildcard) {
  const owner = { kind: 'ours', site, host: identity.host } as const;
  const ref: RouteRef = { id, kind: 'own' };
  return { target: ROUTE.target, key: spec.pattern, owner, hash: routeHash(spec), ref };
}

/** True where the wildcard of the domain covers the host of a site's pattern. */
export function isCoverableRoute(pattern: string, domain: string): boolean {
  return patternHost(pattern)?.endsWith(`.${domain}`) === true;
}
