import type { Identity, Ownership } from '../../../base/ownership.ts';
import type { KvKey, WorkersRoute } from '../../clients/cloudflare-answers.ts';
import { patternHost } from './desired.ts';
import { readKeyMark } from './store.ts';

/** Whose a route is. `unknown`: it leads to our worker, but no routing entry of this instance has its host. */
type RouteOwner = Ownership | { readonly kind: 'unknown' };

export interface ZoneRoute extends WorkersRoute {
  readonly owner: RouteOwner;
}

/**
 * The zone's routes with their owners, pure. A route can't carry a mark. It is ours if it points `<host>/*` to our
 * script and the routing entry of that host in KV (`entries`) carries our mark.
 */
export function ownedRoutes(
  routes: readonly WorkersRoute[],
  entries: readonly KvKey[],
  { identity, scriptName }: { readonly identity: Identity; readonly scriptName: string },
): ZoneRoute[] {
  const witnesses = new Map(entries.map((entry) => [entry.name, entry]));
  const ownerOf = ({ pattern, script }: WorkersRoute): RouteOwner => {
    if (script !== scriptName)
      return { kind: 'foreign', by: script ? `the worker ${script}` : 'a bypass route' };
    const entry = witnesses.get(patternHost(pattern) ?? '');
    return entry === undefined ? { kind: 'unknown' } : readKeyMark(identity, entry).owner;
  };
  return routes.map((route) => ({ ...route, owner: ownerOf(route) }));
}

/** True for a route of this instance for one site, made by any of its hosts. */
export function isSiteRoute({ owner }: ZoneRoute): boolean {
  return owner.kind === 'ours' || (owner.kind === 'foreign' && owner.site !== undefined);
}

/** The owner as an observation states it: what isn't proven ours is foreign. */
export function provenOwner({ owner }: ZoneRoute): Ownership {
  if (owner.kind !== 'unknown') return owner;
  return { kind: 'foreign', by: 'an unknown owner (no routing entry of ours)' };
}
