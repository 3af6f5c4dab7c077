import { withinTime } from '../../base/time-limit.ts';
import { leadsToWorker, matchRoute } from '../../edge/front/route-patterns.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { provenHosts } from '../../sites/manifest/schema.ts';
import type { CloudflareClient } from '../clients/cloudflare.ts';
import type { WorkersDomain, WorkersRoute } from '../clients/cloudflare-answers.ts';
import { CloudflareRefusal } from '../clients/cloudflare-errors.ts';
import { checkPart, NotChecked, PartFault } from '../report/check-part.ts';
import type { PartCheck } from '../report/report.ts';
import { RUNBOOKS } from '../report/runbooks.ts';

/** What stands between visitors and the worker. */
interface EdgePath {
  /** `null`: nothing, as far as it could be read. */
  readonly problem: string | null;
  readonly fix: string | null;
  /** What could not be read, so nothing is known of it; `null`: all of it was read. */
  readonly unread: string | null;
}

export interface EdgePathDeps {
  readonly client: Pick<CloudflareClient, 'routes' | 'workersDomains' | 'tagGateway'>;
  readonly zoneId: string;
  readonly script: string;
}

/** The hostnames of a site. */
interface SiteHosts {
  /** Where visitors reach the worker. */
  readonly edge: string;
  /** Those that lead to the host past the worker: origin, preview, and first-party hosts. */
  readonly others: readonly string[];
}

export function siteHosts(manifest: LoadedManifest): SiteHosts {
  const { edge, origin, preview } = manifest.hostnames;
  return { edge, others: [origin, preview, ...provenHosts(manifest)] };
}

/** Routes and custom domains that a message lists. */
const MAX_LISTED = 5;

/**
 * Finds what takes requests of these sites before they reach the worker: more specific Workers routes without a script or
 * with another one, custom domains of other workers, and Google's tag gateway, which Cloudflare puts before all hosts of
 * the zone.
 */
async function findEdgePath(
  { client, zoneId, script }: EdgePathDeps,
  sites: readonly SiteHosts[],
  signal: AbortSignal,
): Promise<EdgePath & { readonly remarks: readonly string[] }> {
  const [routes, domains, gateway] = await Promise.all([
    client.routes(zoneId, signal),
    unlessRefused(client.workersDomains(signal)),
    unlessRefused(client.tagGateway(zoneId, signal)),
  ]);
  const found: { readonly problem: string; readonly fix: string }[] = [];
  const hosts = sites.map(({ edge }) => edge);
  const caught = routesBefore(routes, script, hosts).map(({ route, host }) => {
    const leads = route.script ? `to the worker ${route.script}` : 'past all workers (it has no script)';
    return `the Workers route ${route.pattern} leads requests of ${host} ${leads}`;
  });
  if (caught.length > 0) {
    found.push({
      problem: listed(caught, 'routes'),
      fix: RUNBOOKS.edge_routes.fixes.route,
    });
  }
  const unread: string[] = [];
  const remarks: string[] = [];
  if (domains instanceof CloudflareRefusal) {
    unread.push(`Workers custom domains of other workers (${remedy(domains, 'Workers Scripts: Read')})`);
  } else {
    const { before, behind } = foreignDomains(domains, routes, { script, sites });
    if (before.length > 0) {
      const shown = before.map(
        ({ hostname, service }) =>
          `the Workers custom domain ${hostname} leads requests of this hostname to the worker ${service}`,
      );
      found.push({
        problem: listed(shown, 'custom domains'),
        fix: RUNBOOKS.edge_routes.fixes.domain,
      });
    }
    const shown = behind.map(
      ({ hostname, service }) =>
        `the Workers custom domain ${hostname} of the worker ${service} stands behind the site’s own route`,
    );
    if (shown.length > 0) remarks.push(listed(shown, 'custom domains'));
  }
  if (gateway instanceof CloudflareRefusal) {
    unread.push(`Google’s tag gateway (${remedy(gateway, 'Zone Settings: Read')})`);
  } else if (gateway?.enabled) {
    found.push({
      problem: `Google’s tag gateway is switched on for the zone (${gateway.endpoint ?? 'its path'}, ${gateway.measurementId ?? 'a tag'}): Cloudflare handles that path on every host before the worker`,
      fix: RUNBOOKS.edge_routes.fixes.gateway,
    });
  }
  return {
    problem: found.map(({ problem }) => problem).join('; ') || null,
    fix: found.map(({ fix }) => fix).join(' ') || null,
    unread: unread.length === 0 ? null : `not checked: ${unread.join('; ')}`,
    remarks,
  };
}

function listed(shown: readonly string[], what: string): string {
  const more = shown.length > MAX_LISTED ? `; and ${shown.length - MAX_LISTED} more ${what}` : '';
  return `${shown.slice(0, MAX_LISTED).join('; ')}${more}`;
}

/** A refusal is an answer; other errors are thrown. */
async function unlessRefused<T>(call: Promise<T>): Promise<T | CloudflareRefusal> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof CloudflareRefusal) return error;
    throw error;
  }
}

function remedy({ meaning, message }: CloudflareRefusal, permission: string): string {
  return meaning === 'unauthorized' ? `give CLOUDFLARE_API_TOKEN the permission ${permission}` : message;
}

/** The same as a part's check. Never throws. */
export async function checkEdgePart(deps: EdgePathDeps, sites: readonly SiteHosts[]): Promise<PartCheck> {
  return await checkPart('edge_routes', {
    fix: 'silent',
    async ask(signal) {
      const { problem, fix, unread, remarks } = await findEdgePath(deps, sites, signal);
      if (problem !== null) throw new PartFault([problem, unread ?? []].flat().join('; '), fix ?? '');
      if (unread !== null) throw new NotChecked(unread);
      const passed =
        'no other Workers route and no custom domain takes requests of the sites’ hostnames, and Google’s tag gateway is off';
      return [passed, ...remarks].join('; ');
    },
  });
}

/** The same of one site, within a time limit; `undefined`: Cloudflare's API didn't answer. */
export async function edgePathOf(
  deps: EdgePathDeps,
  site: SiteHosts,
  timeoutMs: number,
): Promise<EdgePath | undefined> {
  try {
    const ask = async (signal: AbortSignal) => await findEdgePath(deps, [site], signal);
    const { problem, fix, unread } = await withinTime(timeoutMs, ask);
    return { problem, fix, unread };
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

/**
 * The custom domains of other workers on hostnames of the sites, pure. Cloudflare runs the routes of a hostname before the
 * worker of its custom domain (docs/facts.md, Cloudflare Workers), so on an edge hostname with a route of its own, that
 * worker stands `behind`. For a wildcard route, this is not documented. On the other hostnames, no worker of ours runs
 * first: the edge's own fetch of an origin hostname reaches the custom domain's worker.
 */
function foreignDomains(
  domains: readonly WorkersDomain[],
  routes: readonly WorkersRoute[],
  { script, sites }: { readonly script: string; readonly sites: readonly SiteHosts[] },
): Readonly<Record<'before' | 'behind', readonly WorkersDomain[]>> {
  const edges = new Set(sites.map(({ edge }) => edge));
  const others = new Set(sites.flatMap((site) => site.others));
  const patterns = new Set(
    routes.flatMap((route) => (route.script === script ? route.pattern.replace(/^https?:\/\//, '') : [])),
  );
  const before: WorkersDomain[] = [];
  const behind: WorkersDomain[] = [];
  for (const domain of domains) {
    const { hostname, service } = domain;
    if (service === script || !(edges.has(hostname) || others.has(hostname))) continue;
    const comesLater = patterns.has(`${hostname}/*`) && !others.has(hostname);
    (comesLater ? behind : before).push(domain);
  }
  return { before, behind };
}

/** The path of a route pattern; without one, it is only for `/`. */
function pathOf(pattern: string): string {
  return /^(?:https?:\/\/)?[^/]*(\/.*)$/i.exec(pattern)?.[1] ?? '/';
}
