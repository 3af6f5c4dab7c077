import { IttyRouter } from 'itty-router/IttyRouter';
import type { Plugin, Route } from '../plugins/contract.ts';

/** A route and the plugin that it belongs to. */
export interface Mounted {
  readonly plugin: Plugin;
  readonly route: Route;
}

/** What a path leads to; `routes` by method, `ALL` beside the others. */
export interface Match {
  readonly path: string;
  readonly routes: ReadonlyMap<Route['method'], Mounted>;
  readonly params: Readonly<Record<string, string>>;
}

/** Paths whose matches are remembered. A path is at most 16 KB long (Cloudflare's bound on addresses), most have 50. */
const MAX_KNOWN = 500;

export type Router = (pathname: string) => Promise<Match | undefined>;

/**
 * All routes of all plugins, by path. That no two claim the same is known since the build (claims.ts).
 *
 * itty-router is used for matching only and only through `all`, because a mistyped verb registers silently, HEAD
 * doesn't match GET and a matched handler can't tell 404 from 405. It ignores trailing slashes and leaves parameters
 * encoded; both are put right below.
 */
export function buildRouter(plugins: readonly Plugin[]): Router {
  const paths = new Map<string, Map<Route['method'], Mounted>>();
  for (const plugin of plugins) {
    for (const route of plugin.routes) {
      const methods = paths.get(route.path) ?? new Map<Route['method'], Mounted>();
      paths.set(route.path, methods.set(route.method, { plugin, route }));
    }
  }

  const router = IttyRouter();
  for (const [path, routes] of paths) {
    router.all(path, ({ params }): Omit<Match, 'params'> & { params: Record<string, string> } => ({
      path,
      routes,
      params,
    }));
  }
  async function find(pathname: string): Promise<Match | undefined> {
    const match: Match | undefined = await router.fetch({
      method: 'GET',
      url: `http://_${pathname}`,
    });
    if (match === undefined) return undefined;
    if (pathname.endsWith('/') && !match.path.endsWith('*')) return undefined;
    const params = decodeParams(match.params);
    return params === undefined ? undefined : { ...match, params };
  }

  // Matching is a good part of what a warm request costs, and a site's pages ask for the same few paths.
  const known = new Map<string, Match>();
  return async (pathname) => {
    const match = known.get(pathname) ?? (await find(pathname));
    if (known.size >= MAX_KNOWN) known.clear();
    if (match !== undefined) known.set(pathname, match);
    return match;
  };
}

/** `undefined` where a parameter isn't valid percent-encoded UTF-8. */
function decodeParams(params: Readonly<Record<string, string>>): Record<string, string> | undefined {
  try {
    return Object.fromEntries(
      Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)]),
    );
  } catch {
    return undefined;
  }
}
