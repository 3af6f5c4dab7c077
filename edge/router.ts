import { IttyRouter } from 'itty-router/IttyRouter';
import type { Plugin, Route } from '../plugins/contract.ts';
import { setBounded } from './base/bounded-map.ts';

/** A route and the plugin that it belongs to. */
export interface Mounted {
  readonly plugin: Plugin;
  readonly route: Route;
}

/** The routes of a path by method; `ALL` is a key beside the others. */
export interface Match {
  readonly path: string;
  readonly routes: ReadonlyMap<Route['method'], Mounted>;
  readonly params: Readonly<Record<string, string>>;
}

/** The maximum number of cached matches. Cloudflare limits a URL to 16 KB; most paths have about 50 octets. */
const MAX_CACHED = 500;

/** Synchronous where a path was matched before. */
type Router = (pathname: string) => Match | Promise<Match | undefined>;

/**
 * Matches paths against the routes of all plugins. Routes don't clash: the build refuses that (claims.ts).
 *
 * Here itty-router only matches paths, by `all`. Its methods are not used: it registers a mistyped one silently, does
 * not match HEAD to GET, and lets no matched handler tell 404 from 405. It also ignores trailing slashes and does not
 * decode parameters. The code below rejects trailing slashes and decodes.
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
    if (params === undefined) return undefined;
    const found = { ...match, params };
    setBounded(cached, MAX_CACHED, pathname, found);
    return found;
  }

  // Matching is a large part of a warm request's cost, and the pages of a site request few paths.
  const cached = new Map<string, Match>();
  return (pathname) => cached.get(pathname) ?? find(pathname);
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
