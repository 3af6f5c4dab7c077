import { type Identity, type Ownership, readMark } from '../../../base/ownership.ts';
import { wildcardPattern } from './desired.ts';
import { isSiteRoute, type ZoneRoute } from './zone-routes.ts';

/** `site`: a route for each site. `wildcard`: one route for all names under the domain. */
export type RouteMode = 'site' | 'wildcard';

interface ZoneRecord {
  readonly name: string;
  readonly proxied: boolean;
  readonly comment?: string | null | undefined;
}

export interface ZoneFacts {
  readonly domain: string;
  readonly scriptName: string;
  readonly identity: Identity;
  readonly routes: readonly ZoneRoute[];
}

/**
 * The mode that `EDGE_ROUTE_MODE=auto` selects by the zone's routes; a pure function. `null`: they don't decide it,
 * because the zone has no route of this instance yet.
 */
export function modeInUse({ domain, scriptName, routes }: ZoneFacts): RouteMode | null {
  const wildcard = wildcardPattern(domain);
  if (routes.some(({ pattern, script }) => pattern === wildcard && script === scriptName)) return 'wildcard';
  return routes.some(isSiteRoute) ? 'site' : null;
}

/**
 * The mode for a zone without a route of this instance; a pure function. It is `wildcard` only if no route
 * catches a name under the domain and others have no proxied name there.
 */
export function modeOfNew(facts: ZoneFacts, records: readonly ZoneRecord[]): RouteMode {
  const { domain, identity, routes } = facts;
  const isCaught = (name: string) => name === domain || name.endsWith(`.${domain}`);
  const others = records.filter(
    ({ name, proxied, comment }) =>
      proxied && isCaught(name.toLowerCase()) && isOfOthers(readMark(identity, comment).owner),
  );
  const caught = routes.filter(({ pattern }) => {
    const host = pattern.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
    const name = host.replace(/^\*\.?/, '').toLowerCase();
    return isCaught(name) || (host.startsWith('*') && (name === '' || domain.endsWith(name)));
  });
  return others.length + caught.length === 0 ? 'wildcard' : 'site';
}

function isOfOthers(owner: Ownership): boolean {
  return owner.kind === 'foreign' && owner.site === undefined;
}
