import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import type { RunningDaemon } from '../gitops/daemon.ts';
import type { Snapshot, Stage } from './stage.ts';

interface Request {
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  readonly body: unknown;
}

/** Requests to the daemon, one for each site. */
export interface Asked {
  readonly name: string;
  readonly requests: readonly Request[];
}

/** The life of a site from creation to removal; each step is requested for all `sites` at once. */
export function lifeOf(sites: readonly string[], manifest: Stage['manifest']): Asked[] {
  const each = (name: string, request: (site: string, number: number) => Request): Asked => ({
    name,
    requests: sites.map(request),
  });
  const provision = (body: ManifestInput): Request => ({ method: 'POST', path: '/provision', body });
  const changed = {
    image: `sha256:${'b'.repeat(64)}`,
    name: 'Renamed',
    features: { cookie_restoration: true },
  };
  const domain = (site: string) => ({ site, domain: `metrics.${site}.example` });
  return [
    each('create', (site, number) => provision(manifest(site, number))),
    each('change', (site, number) =>
      provision(
        manifest(site, number, {
          ...changed,
          loaderToken: `lt_changed0token${String(number).padStart(4, '0')}`,
        }),
      ),
    ),
    each('add a custom domain', (site) => ({ method: 'POST', path: '/custom-domain', body: domain(site) })),
    each('remove a custom domain', (site) => ({
      method: 'DELETE',
      path: '/custom-domain',
      body: domain(site),
    })),
    each('remove', (site) => ({ method: 'POST', path: '/deprovision', body: { site } })),
  ];
}

/** Sends all requests at once. Returns those not accepted, because the daemon was killed or answered 503. */
export async function ask(daemon: RunningDaemon, requests: readonly Request[]): Promise<Request[]> {
  const answers = await Promise.all(
    requests.map(async (request) => {
      const { method, path, body } = request;
      const status = await daemon.call(method, path, body).then(
        (answer) => answer.status,
        () => 0,
      );
      if (status >= 400 && status !== 503) throw new Error(`${method} ${path}: ${status}`);
      return { request, accepted: status !== 0 && status < 300 };
    }),
  );
  return answers.flatMap(({ request, accepted }) => (accepted ? [] : [request]));
}

/**
 * How many resources of each kind a site has, in the order of dependency. A wildcard belongs to all sites, so it counts
 * only for those whose edge hostname has a record: without one, no request for the site arrives.
 */
export function standing(world: Snapshot, site: string) {
  const { containers, proxy, kv, routes, dns } = world;
  const [edge, ...local] = ['', '-origin', '-preview'].map((end) => `${site}${end}.example.net`);
  const marked = (mark: unknown) => String(mark).includes(` ${site} `);
  const own = dns.filter(({ comment }) => marked(comment));
  const isNamed = own.some(({ name }) => name === edge);
  const covered = local.filter((name) => isNamed && addressOf(world, name).by === 'wildcard');
  return {
    containers: containers.filter(([, { mark }]) => marked(mark)).length,
    proxy: proxy.filter(([, { mark }]) => marked(mark)).length,
    kv: kv.filter(({ metadata }) => marked(metadata)).length,
    routes: routes.filter(({ pattern }) => pattern === `${edge}/*` || (isNamed && pattern === WILDCARD_ROUTE))
      .length,
    dns: own.length + covered.length,
  };
}

const WILDCARD_ROUTE = '*.example.net/*';

/** Where a name leads, by a record of its own, or by the wildcard where nothing is at or below the name (RFC 4592). */
export function addressOf({ dns }: Snapshot, name: string) {
  const ofName = dns.find((one) => one.name === name && one.type === 'A');
  if (ofName !== undefined) return { by: 'record', content: ofName.content };
  const isTaken = dns.some((one) => one.name === name || String(one.name).endsWith(`.${name}`));
  const wildcard = isTaken ? undefined : dns.find((one) => one.name === '*.example.net');
  return { by: wildcard && 'wildcard', content: wildcard?.content };
}
