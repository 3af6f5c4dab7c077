import { withinTime } from '../../base/time-limit.ts';
import { leadsToWorker, matchRoute } from '../../edge/front/route-patterns.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import type { WorkersRoute } from '../clients/cloudflare-answers.ts';
import { CloudflareRefusal } from '../clients/cloudflare-errors.ts';
import type { PartCheck } from '../report/report.ts';
import { checkPart, PartFault } from './check-part.ts';

/** What stands between visitors and the worker. */
interface EdgePath {
  /** `null`: nothing, as far as it could be read. */
  readonly problem: string | null;
  readonly fix: string | null;
}

export interface EdgePathDeps {
  readonly client: Pick<CloudflareClient, 'routes' | 'tagGateway'>;
  readonly zoneId: string;
  readonly script: string;
}

/** Routes that a message lists. */
const MAX_LISTED = 5;

/**
 * Finds what takes requests of these edge hostnames before they reach the worker: more specific Workers routes without
 * a script or with another one, and Google's tag gateway, which Cloudflare puts before all hosts of the zone.
 */
async function findEdgePath(
  { client, zoneId, script }: EdgePathDeps,
  hosts: readonly string[],
  signal: AbortSignal,
): Promise<EdgePath & { readonly unread: string | null }> {
  const [routes, gateway] = await Promise.all([
    client.routes(zoneId, signal),
    client.tagGateway(zoneId, signal).catch((error: unknown) => {
      if (!(error instanceof CloudflareRefusal)) throw error;
      return error;
    }),
  ]);
  const caught = routesBefore(routes, script, hosts);
  const problems: string[] = [];
  const fixes: string[] = [];
  if (caught.length > 0) {
    const shown = caught.slice(0, MAX_LISTED).map(({ route, host }) => {
      const leads = route.script ? `to the worker ${route.script}` : 'past all workers (it has no script)';
      return `the Workers route ${route.pattern} leads requests of ${host} ${leads}`;
    });
    const more = caught.length > MAX_LISTED ? `; and ${caught.length - MAX_LISTED} more routes` : '';
    problems.push(`${shown.join('; ')}${more}`);
    fixes.push(
      'Delete the named route in Cloudflare’s dashboard (the zone, Workers Routes), or let its pattern not match edge hostnames.',
    );
  }
  if (!(gateway instanceof CloudflareRefusal) && gateway?.enabled) {
    problems.push(
      `Google’s tag gateway is switched on for the zone (${gateway.endpoint ?? 'its path'}, ${gateway.measurementId ?? 'a tag'}): Cloudflare handles that path on every host before the worker`,
    );
    fixes.push(
      'Switch it off in Cloudflare’s dashboard (the zone, Google tag gateway), or use another zone for EDGE_DOMAIN.',
    );
  }
  return {
    problem: problems.length === 0 ? null : problems.join('; '),
    fix: fixes.length === 0 ? null : fixes.join(' '),
    unread:
      gateway instanceof CloudflareRefusal && gateway.meaning === 'unauthorized'
        ? 'give CLOUDFLARE_API_TOKEN the permission Zone Settings: Read to check Google’s tag gateway, too'
        : null,
  };
}

/** The same as a part's check. Never throws. */
export async function checkEdgePart(deps: EdgePathDeps, hosts: readonly string[]): Promise<PartCheck> {
  return await checkPart('edge_routes', {
    fix: 'Check that Cloudflare’s API answers, and that CLOUDFLARE_API_TOKEN may read the zone’s Workers routes.',
    async ask(signal) {
      const { problem, fix, unread } = await findEdgePath(deps, hosts, signal);
      if (problem !== null) throw new PartFault(problem, fix ?? '');
      const passed = 'no other Workers route takes requests of the edge hostnames';
      return unread === null ? `${passed}, and Google’s tag gateway is off` : `${passed}; ${unread}`;
    },
  });
}

/** The same of one site, within a time limit; `undefined`: Cloudflare's API didn't answer. */
export async function edgePathOf(
  deps: EdgePathDeps,
  host: string,
  timeoutMs: number,
): Promise<EdgePath | undefined> {
  try {
    const ask = async (signal: AbortSignal) => await findEdgePath(deps, [host], signal);
    const { problem, fix } = await withinTime(timeoutMs, ask);
    return { problem, fix };
  } catch {
    return undefined;
  }
}

/**
 * The routes that take requests of these hosts from the worker `script`, pure; each with the first of its hosts. The most
 * specific route of a request counts (docs/facts.md, Cloudflare Workers). A route for some paths of many hosts counts
 * here, too: which one Cloudflare prefers, that route or one for all paths of a single host, is not documented.
 */
function routesBefore(
  routes: readonly WorkersRoute[],
  script: string,
  hosts: readonly string[],
): { readonly route: WorkersRoute; readonly host: string }[] {
  const ours = routes
    .filter(({ pattern, script: own }) => own === script && pathOf(pattern) === '/*')
    .map(({ pattern }) => pattern);
  return routes.flatMap((route) => {
    const path = pathOf(route.pattern);
    // The edge serves nothing under `/` itself.
    if (route.script === script || path === '/') return [];
    const host = hosts.find((one) => {
      const url = new URL(`https://${one}${path.replace(/\*$/, '')}`);
      if (!matchRoute([route.pattern], url)) return false;
      return path !== '/*' || !leadsToWorker(ours, [route.pattern], url);
    });
    return host === undefined ? [] : [{ route, host }];
  });
}

/** The path of a route pattern; without one, it is only for `/`. */
function pathOf(pattern: string): string {
  return /^(?:https?:\/\/)?[^/]*(\/.*)$/i.exec(pattern)?.[1] ?? '/';
}
