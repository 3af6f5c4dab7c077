import * as z from 'zod/mini';
import { definePlugin, type PluginContext, type RouteInput } from '../contract.ts';
import { isNamedBy } from '../paths.ts';
import { OWN_SEGMENTS, TAG_SERVER_PATHS } from './config.ts';
import { vendorScriptRoute } from './vendor-script.ts';

const HEALTH = /^[^?]*\/health[yz](?:\?|$)/;

const ROBOTS = '/robots.txt';

/** Forwards a request to the site's tag server: method, raw path, query, body and (under a prefix, some) cookies. */
async function proxy({ request }: RouteInput, context: PluginContext): Promise<Response> {
  const { origin } = new URL(request.url);
  const target = request.url.slice(origin.length);
  // Monitors send HEAD, but the tag server answers its health only to GET (docs/facts.md, Health).
  const isMonitor = request.method === 'HEAD' && HEALTH.test(target);
  const response = await context.fetchOrigin(target, {
    method: isMonitor ? 'GET' : request.method,
    headers: request.headers,
    body: request.body,
  });
  const location = response.headers.get('location');
  if (location !== null) response.headers.set('location', keptUnder(context, location));
  return response;
}

/** The tag server doesn't know the prefix, so the base is put before its redirects to its own paths. */
function keptUnder({ base, url }: PluginContext, location: string): string {
  const target = /^[a-z]+:|^\//i.test(location) ? URL.parse(location, url) : null;
  const isOwn = base !== url.origin && target?.origin === url.origin;
  return isOwn ? base + target.pathname + target.search + target.hash : location;
}

/** Serves the tag server's own paths and the vendor's web container script, and forwards nothing to other servers. */
export default definePlugin({
  name: 'server_proxy',
  kind: 'mandatory',
  alwaysOn: true,
  // A site may forward every path to the tag server, but not that of the gateway.
  follows: ['google_tag_gateway'],
  // The manifest's schema has checked all options (config.ts). The registry has the paths and data layers.
  config: z.looseObject({ cookies: z._default(z.array(z.string()), []) }),
  variables: ['DATA_LAYER_NAMES'],
  tagServerCookies: ({ cookies }) => cookies,
  routes: [
    vendorScriptRoute,
    ...TAG_SERVER_PATHS.map((path) => ({
      method: 'ALL' as const,
      path,
      forwards: true as const,
      handle: proxy,
    })),
  ],
  dynamic: {
    forwards: true,
    owns: (path, site) =>
      path === ROBOTS ||
      (!OWN_SEGMENTS.includes(path.split('/')[1] ?? '') && isNamedBy(path, site.proxyPaths)),
    // No route, because a manifest may name this path for a client in the container.
    handle: async (input, context) =>
      new URL(input.request.url).pathname === ROBOTS && !context.site.proxyPaths.includes(ROBOTS)
        ? new Response('User-agent: *\nDisallow: /\n')
        : await proxy(input, context),
  },
});
